//! Claude Code's stream-json, as `AgentEvent`s.

use std::collections::BTreeSet;

use crate::agent::event::{
    AgentEnd, AgentEvent, AgentIdentity, Decoder, Listener, RequestUsage, UsageUpdate,
};
use crate::model::{ModelUse, Outcome, Usage, Usd, shorten, visible_line};

use super::end::{AUTHENTICATION_FAILED, ApiError, TurnResult};
use super::wire::{
    Block, Denial, Field, Line, Message, MessageUsage, ModelUsage, ModelUsages, RateLimit, Task,
    ToolInput,
};

/// The longest description of what the agent does now.
const MAX_DOING: usize = 200;
/// The longest name of a version or a model.
const MAX_NAME: usize = 100;
/// The model name under which the CLI puts its own words into the conversation.
const SYNTHETIC: &str = "<synthetic>";
/// So many models are told apart.
const MAX_MODELS: usize = 16;
/// More tasks at once, or longer names of them, are not told apart.
const MAX_TASKS: usize = 64;
const MAX_TASK_ID: usize = 64;
/// Why a login failed that was ended while it was tried again.
const LOGIN_REFUSED: &str =
    "the service refused its key or login; run `/login` in `claude`, or fix the API key";

#[derive(Debug, Default)]
pub struct ClaudeDecoder {
    result: Option<TurnResult>,
    /// The last error that the CLI, not the model, put into the conversation.
    api_error: Option<ApiError>,
    /// The service refuses until then, in seconds since the epoch.
    limit_resets_at: Option<i64>,
    login: Login,
    /// How often the login was refused, and tried again, since the service last took it.
    refused: u32,
    /// Tasks that are known to run in the background, after the result too.
    background: BTreeSet<String>,
}

/// How the agent shows the service who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Login {
    /// A key from the environment: it is right or wrong.
    Key,
    /// Something that the CLI itself can get anew.
    #[default]
    Renewable,
}

impl Decoder for ClaudeDecoder {
    fn line(&mut self, text: &str, tell: Listener<'_>) -> bool {
        let Some(line) = Line::parse(text).filter(Line::is_known) else { return false };
        if line.kind.is("assistant") {
            self.assistant(&line, tell);
        } else if line.kind.is("result") {
            self.end_turn(&line, tell);
        } else if line.kind.is("system") {
            self.system(&line, tell);
        } else if line.kind.is("rate_limit_event") {
            self.rate_limit(line.rate_limit_info, tell);
        }
        true
    }

    fn result(&self) -> Option<Result<(), Outcome>> {
        let result = self.result.as_ref()?;
        Some(result.outcome(self.api_error.as_ref(), self.limit_resets_at))
    }

    /// A login that can be renewed is, but only after its first refusal was told.
    fn hopeless(&self) -> Option<Outcome> {
        let refusals = match self.login {
            Login::Key => 1,
            Login::Renewable => 2,
        };
        (self.refused >= refusals).then(|| Outcome::Login { detail: LOGIN_REFUSED.to_owned() })
    }

    /// The CLI turns the signals that it handles into codes.
    fn of_exit_code(&self, code: i32) -> Option<Outcome> {
        matches!(code, 129 | 130 | 143)
            .then_some(Outcome::KilledBySomeoneElse { signal: code - 128 })
    }
}

impl ClaudeDecoder {
    fn assistant(&mut self, line: &Line<'_>, tell: Listener<'_>) {
        if line.aborted.is_true() {
            return;
        }
        let Some(message) = line.message.raw().and_then(Message::parse) else { return };
        let is_main = !line.parent_tool_use_id.is_present();
        if message.model.is(SYNTHETIC) || line.is_api_error_message.is_true() {
            if is_main {
                self.api_error = Some(api_error(line));
            }
            return;
        }
        let mut used = UsageUpdate { request: request(&message), ..UsageUpdate::default() };
        if is_main {
            used.context = message.usage.read::<MessageUsage>().map(|usage| usage.all());
        }
        for item in message.content.items() {
            let Some(block) = item.raw().and_then(Block::parse) else { continue };
            let is_call = block.kind.is("tool_use");
            used.tool_calls += u64::from(is_call);
            if is_main && block.kind.is("text") {
                if let Some(text) = block.text.text() {
                    self.refused = 0;
                    tell(AgentEvent::Said(&text));
                }
            } else if is_main && is_call {
                self.refused = 0;
                tell(AgentEvent::Doing(&tool_call(&block)));
            }
        }
        tell(AgentEvent::Usage(used));
    }

    fn system(&mut self, line: &Line<'_>, tell: Listener<'_>) {
        if line.subtype.is("init") {
            self.begin_turn(line, tell);
        } else if line.subtype.is("api_retry") {
            let is_refusal = line.error.is(AUTHENTICATION_FAILED);
            self.refused = if is_refusal { self.refused + 1 } else { 0 };
            tell(AgentEvent::Doing(&retry(line)));
        } else if line.subtype.is("permission_denied") {
            tell(AgentEvent::Denied(line.tool_name.text().unwrap_or_default()));
        } else if self.task(line).is_some() {
            tell(AgentEvent::Background(self.background.len()));
        }
    }

    fn begin_turn(&mut self, line: &Line<'_>, tell: Listener<'_>) {
        let name = |field: Field<'_>| Some(shorten(&visible_line(&field.text()?), MAX_NAME));
        let (version, model) = (name(line.claude_code_version), name(line.model));
        let is_key = line.api_key_source.is("ANTHROPIC_API_KEY");
        self.login = if is_key { Login::Key } else { Login::Renewable };
        self.refused = 0;
        // What failed in an earlier turn did not end the process.
        self.api_error = None;
        tell(AgentEvent::Started(AgentIdentity { version, model }));
        if is_key {
            tell(AgentEvent::Usage(UsageUpdate::paid_by_subscription(false)));
        }
    }

    /// Sub-agents that the agent waits for are tasks too, but none in the background.
    fn task(&mut self, line: &Line<'_>) -> Option<()> {
        if line.subtype.is("task_started") && !line.is_backgrounded.is_false() {
            self.add_task(line.task_id.text()?);
        } else if line.subtype.is("task_notification") {
            self.background.remove(&line.task_id.text()?);
        } else if line.subtype.is("background_tasks_changed") {
            self.background.clear();
            let id = |task: Field<'_>| Task::parse(task.raw()?)?.id.text();
            line.tasks.items().into_iter().filter_map(id).for_each(|id| self.add_task(id));
        } else {
            return None;
        }
        Some(())
    }

    fn add_task(&mut self, id: String) {
        if self.background.len() < MAX_TASKS && id.len() <= MAX_TASK_ID {
            self.background.insert(id);
        }
    }

    /// The event also comes with successful runs; only a refusal limits. Only a subscription has
    /// such limits; beyond them the dollar may pay.
    fn rate_limit(&mut self, info: Field<'_>, tell: Listener<'_>) {
        let info = info.raw().and_then(RateLimit::parse).unwrap_or_default();
        if info.status.is("rejected") {
            self.limit_resets_at = info.resets_at.read();
        }
        let is_beyond = info.is_using_overage.is_true();
        tell(AgentEvent::Usage(UsageUpdate::paid_by_subscription(!is_beyond)));
    }

    fn end_turn(&mut self, line: &Line<'_>, tell: Listener<'_>) {
        let errors = || line.errors.read::<Vec<String>>().unwrap_or_default().join("; ");
        let text = line.result.text().unwrap_or_else(errors);
        let models = line.model_usage.read::<ModelUsages>().unwrap_or_default();
        // Of the model that wrote most: sub-agents may have another.
        let main = models.values().max_by_key(|model| model.output_tokens);
        let window = main.map(|model| model.context_window).unwrap_or_default();
        let models: Vec<ModelUse> = models.into_iter().take(MAX_MODELS).map(model_use).collect();
        let end = AgentEnd {
            text: text.clone(),
            usage: usage(line, &models),
            models,
            window,
            denied: line.permission_denials.items().into_iter().filter_map(denied_rule).collect(),
        };
        self.refused = 0;
        self.result = Some(TurnResult {
            is_error: line.is_error.is_true(),
            subtype: line.subtype.text().unwrap_or_default(),
            terminal_reason: line.terminal_reason.text().unwrap_or_default(),
            stop_reason: line.stop_reason.text().unwrap_or_default(),
            text,
            api_error: api_error(line),
        });
        tell(AgentEvent::Ended(Box::new(end)));
    }
}

/// Without what it wrote: that is only known when the answer is whole.
fn request(message: &Message<'_>) -> Option<RequestUsage> {
    let used = message.usage.read::<MessageUsage>()?;
    let usage = Usage {
        input_tokens: used.input_tokens.unwrap_or_default(),
        cache_read_tokens: used.cache_read_input_tokens.unwrap_or_default(),
        cache_write_tokens: used.cache_creation_input_tokens.unwrap_or_default(),
        ..Usage::default()
    };
    Some(RequestUsage { message: message.id.text()?, usage })
}

fn tool_call(block: &Block<'_>) -> String {
    let input = block.input.raw().and_then(ToolInput::parse).unwrap_or_default();
    let subject = [
        input.command,
        input.file_path,
        input.path,
        input.pattern,
        input.url,
        input.query,
        input.description,
    ]
    .into_iter()
    .find_map(Field::text)
    .unwrap_or_default();
    let call = format!("{} {subject}", block.name.text().unwrap_or_default());
    shorten(&visible_line(&call), MAX_DOING)
}

fn api_error(line: &Line<'_>) -> ApiError {
    ApiError {
        error: line.error.text().unwrap_or_default(),
        api_error: line.api_error.text().unwrap_or_default(),
        status: line.api_error_status.read().or_else(|| line.error_status.read()),
    }
}

fn retry(line: &Line<'_>) -> String {
    let number = |field: Field<'_>| field.read::<u64>().unwrap_or_default();
    let (attempt, most) = (number(line.attempt), number(line.max_retries));
    let reason = line.error.text().unwrap_or_default();
    shorten(&visible_line(&format!("retry {attempt} of {most}: {reason}")), MAX_DOING)
}

/// What would have to be allowed: a command by its very words, any other tool by its name.
fn denied_rule(denial: Field<'_>) -> Option<String> {
    let denial = Denial::parse(denial.raw()?)?;
    let tool = denial.tool.text()?;
    let input = denial.input.raw().and_then(ToolInput::parse).unwrap_or_default();
    let rule = match input.command.text() {
        Some(command) => format!("{tool}({})", visible_line(&command)),
        None => tool,
    };
    Some(shorten(&visible_line(&rule), MAX_DOING))
}

/// Only `modelUsage` counts what sub-agents used too.
fn usage(line: &Line<'_>, models: &[ModelUse]) -> Usage {
    let mut usage = Usage {
        cost_usd: line.total_cost_usd.read(),
        turns: line.num_turns.read().unwrap_or_default(),
        ..Usage::default()
    };
    for model in models {
        usage.input_tokens += model.input_tokens;
        usage.output_tokens += model.output_tokens;
        usage.cache_read_tokens += model.cache_read_tokens;
        usage.cache_write_tokens += model.cache_write_tokens;
    }
    usage
}

fn model_use((name, used): (String, ModelUsage)) -> ModelUse {
    ModelUse {
        model: shorten(&visible_line(&name), MAX_NAME),
        cost: Usd::of(used.cost_usd.unwrap_or_default()),
        input_tokens: used.input_tokens,
        output_tokens: used.output_tokens,
        cache_read_tokens: used.cache_read_input_tokens,
        cache_write_tokens: used.cache_creation_input_tokens,
    }
}

#[cfg(test)]
mod tests;
