//! The lines of Claude Code's stream-json, as far as they matter here.
//!
//! Key order is not stable, fields come and go between versions, and their types
//! are the CLI's own business: every field is taken raw and read leniently, so
//! that a surprise in one of them never loses the line.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Deserialize;

use super::shallow;

/// A field that may be missing, null, or of a type nobody expected.
#[derive(Clone, Copy, Debug, Default)]
pub struct Field<'a>(Option<&'a str>);

impl<'a> Field<'a> {
    fn of(raw: &'a str) -> Self {
        Self((raw != "null").then_some(raw))
    }

    pub fn read<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.0?).ok()
    }

    /// As it is written.
    pub fn raw(self) -> Option<&'a str> {
        self.0
    }

    pub fn is_present(self) -> bool {
        self.0.is_some()
    }

    /// Comparison with a text that needs no escapes.
    pub fn is(self, text: &str) -> bool {
        self.0.and_then(|raw| raw.strip_prefix('"')?.strip_suffix('"')) == Some(text)
    }

    pub fn text(self) -> Option<String> {
        self.read::<Cow<'_, str>>().map(Cow::into_owned)
    }

    pub fn is_true(self) -> bool {
        self.0 == Some("true")
    }

    pub fn is_false(self) -> bool {
        self.0 == Some("false")
    }

    /// What a list holds.
    pub fn items(self) -> Vec<Field<'a>> {
        let items = self.read::<Vec<&serde_json::value::RawValue>>().unwrap_or_default();
        items.into_iter().map(|raw| Field::of(raw.get())).collect()
    }
}

/// Objects of which some fields matter.
macro_rules! object {
    ($(#[$about:meta])* $name:ident { $($field:ident = $key:literal),* $(,)? } until $enough:expr) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub struct $name<'a> {
            $(pub $field: Field<'a>,)*
        }

        impl<'a> $name<'a> {
            /// None when the text is no JSON object.
            pub fn parse(text: &'a str) -> Option<Self> {
                let mut found = Self::default();
                shallow::fields(text, |key, value| {
                    match key {
                        $($key => found.$field = Field::of(value),)*
                        _ => return ControlFlow::Continue(()),
                    }
                    if $enough(&found) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
                Some(found)
            }
        }
    };
}

object! {
    /// One line: what is common, and what some kinds have.
    Line {
        kind = "type",
        subtype = "subtype",
        parent_tool_use_id = "parent_tool_use_id",
        message = "message",
        aborted = "aborted",
        is_api_error_message = "is_api_error_message",
        error = "error",
        api_error = "api_error",
        api_error_status = "api_error_status",
        error_status = "error_status",
        attempt = "attempt",
        max_retries = "max_retries",
        rate_limit_info = "rate_limit_info",
        tool_name = "tool_name",
        model = "model",
        claude_code_version = "claude_code_version",
        api_key_source = "apiKeySource",
        is_error = "is_error",
        terminal_reason = "terminal_reason",
        stop_reason = "stop_reason",
        result = "result",
        errors = "errors",
        total_cost_usd = "total_cost_usd",
        model_usage = "modelUsage",
        num_turns = "num_turns",
        permission_denials = "permission_denials",
        task_id = "task_id",
        is_backgrounded = "is_backgrounded",
        tasks = "tasks",
    } until Line::is_enough
}

impl Line<'_> {
    /// Kinds that only Claude's stream has in this form; other JSON is just text. Other agents
    /// have a `result` too, but none that says whether it is an error.
    pub fn is_known(&self) -> bool {
        let is_its_own = !self.kind.is("result") || self.is_error.is_present();
        self.is_passed_over() || (self.is_of_interest() && is_its_own)
    }

    fn is_of_interest(&self) -> bool {
        ["assistant", "result", "system", "rate_limit_event"].iter().any(|kind| self.kind.is(kind))
    }

    /// Most of a stream: what tools gave back, and pieces of what comes whole later.
    fn is_passed_over(&self) -> bool {
        self.kind.is("user") || self.kind.is("stream_event")
    }

    /// The kind mostly comes first, so the rest of many a line need not be looked at.
    fn is_enough(&self) -> bool {
        if self.kind.is("system") && self.subtype.is("init") {
            let wanted = [self.claude_code_version, self.model, self.api_key_source];
            return wanted.iter().all(|field| field.is_present());
        }
        self.kind.is_present() && !self.is_of_interest()
    }
}

object! {
    Message { id = "id", model = "model", content = "content", usage = "usage" }
    until |found: &Message<'_>| {
        [found.id, found.model, found.content, found.usage].iter().all(|field| field.is_present())
    }
}

object! {
    Block { kind = "type", text = "text", name = "name", input = "input" } until |_: &Block<'_>| false
}

object! {
    /// What a tool call is about: the first of these that it has.
    ToolInput {
        command = "command",
        file_path = "file_path",
        path = "path",
        pattern = "pattern",
        url = "url",
        query = "query",
        description = "description",
    } until |_: &ToolInput<'_>| false
}

object! {
    Denial { tool = "tool_name", input = "tool_input" } until |_: &Denial<'_>| false
}

object! {
    Task { id = "task_id" } until |found: &Task<'_>| found.id.is_present()
}

object! {
    RateLimit { status = "status", resets_at = "resetsAt", is_using_overage = "isUsingOverage" }
    until |_: &RateLimit<'_>| false
}

pub type ModelUsages = BTreeMap<String, ModelUsage>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_input_tokens: u64,
    pub cache_creation_input_tokens: u64,
    #[serde(rename = "costUSD")]
    pub cost_usd: Option<f64>,
    pub context_window: u64,
}

/// What one message of the service was made of.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct MessageUsage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_input_tokens: Option<u64>,
    pub cache_creation_input_tokens: Option<u64>,
}

impl MessageUsage {
    /// All of it is in the context when the next message is made.
    pub fn all(&self) -> u64 {
        let parts = [
            self.input_tokens,
            self.output_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
        ];
        parts.into_iter().flatten().fold(0, u64::saturating_add)
    }
}
