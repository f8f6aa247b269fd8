//! The lines of Claude Code's stream-json, as far as they matter here.
//!
//! Key order is not stable, fields come and go between versions, and their types
//! are the CLI's own business: every field is taken raw and read leniently, so
//! that a surprise in one of them never loses the line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A field that may be missing, null, or of a type nobody expected.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Field<'a>(#[serde(borrow)] Option<&'a RawValue>);

impl<'a> Field<'a> {
    pub fn read<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.0?.get()).ok()
    }

    pub fn is_present(self) -> bool {
        self.0.is_some()
    }

    /// Cheap comparison with a text that needs no escapes.
    pub fn is(self, text: &str) -> bool {
        let raw = self.0.map(RawValue::get);
        raw.and_then(|raw| raw.strip_prefix('"')?.strip_suffix('"')) == Some(text)
    }

    pub fn text(self) -> Option<String> {
        self.read::<Cow<'_, str>>().map(Cow::into_owned)
    }

    pub fn is_true(self) -> bool {
        self.read() == Some(true)
    }
}

/// One line: what is common, and what some kinds have.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Field<'a>,
    #[serde(borrow)]
    pub subtype: Field<'a>,
    #[serde(borrow)]
    pub parent_tool_use_id: Field<'a>,
    #[serde(borrow)]
    pub message: Field<'a>,
    #[serde(borrow)]
    pub aborted: Field<'a>,
    #[serde(borrow)]
    pub is_api_error_message: Field<'a>,
    #[serde(borrow)]
    pub error: Field<'a>,
    #[serde(borrow)]
    pub api_error: Field<'a>,
    #[serde(borrow)]
    pub api_error_status: Field<'a>,
    #[serde(borrow)]
    pub error_status: Field<'a>,
    #[serde(borrow)]
    pub attempt: Field<'a>,
    #[serde(borrow)]
    pub max_retries: Field<'a>,
    #[serde(borrow)]
    pub rate_limit_info: Field<'a>,
    #[serde(borrow)]
    pub tool_name: Field<'a>,
    #[serde(borrow)]
    pub model: Field<'a>,
    #[serde(borrow)]
    pub claude_code_version: Field<'a>,
    #[serde(borrow)]
    pub is_error: Field<'a>,
    #[serde(borrow)]
    pub terminal_reason: Field<'a>,
    #[serde(borrow)]
    pub stop_reason: Field<'a>,
    #[serde(borrow)]
    pub result: Field<'a>,
    #[serde(borrow)]
    pub errors: Field<'a>,
    #[serde(borrow)]
    pub total_cost_usd: Field<'a>,
    #[serde(borrow, rename = "modelUsage")]
    pub model_usage: Field<'a>,
    #[serde(borrow)]
    pub num_turns: Field<'a>,
}

impl<'a> Line<'a> {
    /// None when the text is no JSON object with a kind.
    pub fn parse(text: &'a str) -> Option<Self> {
        if !text.trim_start().starts_with('{') {
            return None;
        }
        serde_json::from_str::<Self>(text).ok().filter(|line| line.kind.is_present())
    }

    /// Kinds that only Claude's stream has in this form; other JSON is just text.
    pub fn is_known(&self) -> bool {
        ["assistant", "user", "system", "result", "stream_event", "rate_limit_event"]
            .iter()
            .any(|kind| self.kind.is(kind))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Message<'a> {
    #[serde(borrow)]
    pub model: Field<'a>,
    #[serde(borrow)]
    pub content: Field<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Field<'a>,
    #[serde(borrow)]
    pub text: Field<'a>,
    #[serde(borrow)]
    pub name: Field<'a>,
    #[serde(borrow)]
    pub input: Field<'a>,
}

/// What a tool call is about: the first of these that it has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolInput<'a> {
    #[serde(borrow)]
    pub command: Field<'a>,
    #[serde(borrow)]
    pub file_path: Field<'a>,
    #[serde(borrow)]
    pub path: Field<'a>,
    #[serde(borrow)]
    pub pattern: Field<'a>,
    #[serde(borrow)]
    pub url: Field<'a>,
    #[serde(borrow)]
    pub query: Field<'a>,
    #[serde(borrow)]
    pub description: Field<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RateLimit<'a> {
    #[serde(borrow)]
    pub status: Field<'a>,
    #[serde(borrow, rename = "resetsAt")]
    pub resets_at: Field<'a>,
}

pub type ModelUsages = BTreeMap<String, ModelUsage>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_input_tokens: u64,
    pub cache_creation_input_tokens: u64,
}
