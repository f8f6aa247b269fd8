//! One line of an agent's output → what it tells.

use crate::core::event::Usage;
use crate::core::money::Usd;
use crate::core::outcome::{ApiError, ResultSeen};
use crate::core::spending::ModelUse;
use crate::core::text::{shorten, visible_line};

use super::background::TaskNews;
use super::consumption::{Sent, Used};
use super::stream_json::{
    Block, Denial, Field, Line, Message, MessageUsage, ModelUsages, RateLimit, Task, ToolInput,
};

/// The longest description of what the agent does now.
const MAX_DOING: usize = 200;
/// The longest name of a version or a model.
const MAX_NAME: usize = 100;
/// The model name under which the CLI puts its own words into the conversation.
const SYNTHETIC: &str = "<synthetic>";
/// So many models are told apart.
const MAX_MODELS: usize = 16;

/// What one line tells. Most lines tell nothing that matters here.
#[derive(Debug, Default, PartialEq)]
pub struct Told {
    /// Blocks of the main agent's own text.
    pub said: Vec<String>,
    /// What it does now, one line each.
    pub doing: Vec<String>,
    /// Tokens in the main agent's context, with what it said.
    pub context: Option<u64>,
    pub news: Option<News>,
    pub used: Used,
}

#[derive(Debug, PartialEq)]
pub enum News {
    Started {
        version: Option<String>,
        model: Option<String>,
        login: Login,
    },
    Retry(ApiError),
    ApiError(ApiError),
    /// The service refuses until then (seconds since the epoch).
    Limited {
        resets_at: Option<i64>,
    },
    Denied {
        tool: String,
    },
    Task(TaskNews),
    Result {
        seen: Box<ResultSeen>,
        usage: Usage,
        models: Vec<ModelUse>,
        /// Tokens that the main model's context can hold; 0 when it does not say.
        window: u64,
        /// Every call that was denied, as the rule that would allow it.
        denied: Vec<String>,
    },
}

/// How the agent shows the service who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// A key from the environment: it is right or wrong.
    Key,
    /// Something that the CLI itself can get anew.
    #[default]
    Renewable,
}

/// None when the line is not one of Claude's events: then it is plain text.
pub fn decode(text: &str) -> Option<Told> {
    let line = Line::parse(text).filter(Line::is_known)?;
    let mut told = Told::default();
    if line.kind.is("assistant") {
        assistant(&line, &mut told);
    } else if line.kind.is("result") {
        told.news = Some(result(&line));
    } else if line.kind.is("system") {
        system(&line, &mut told);
    } else if line.kind.is("rate_limit_event") {
        told.news = limited(line.rate_limit_info);
        // Only a subscription has such limits; beyond them the dollar may pay.
        told.used.subscription = Some(!is_beyond(line.rate_limit_info));
    }
    Some(told)
}

fn assistant(line: &Line<'_>, told: &mut Told) {
    if line.aborted.is_true() {
        return;
    }
    let Some(message) = line.message.raw().and_then(Message::parse) else { return };
    let is_main = !line.parent_tool_use_id.is_present();
    if message.model.is(SYNTHETIC) || line.is_api_error_message.is_true() {
        told.news = is_main.then(|| News::ApiError(api_error(line)));
        return;
    }
    told.used.sent = sent(&message);
    if is_main {
        told.context = message.usage.read::<MessageUsage>().map(|usage| usage.all());
    }
    for block in message.content.items().into_iter().filter_map(|item| Block::parse(item.raw()?)) {
        let is_call = block.kind.is("tool_use");
        told.used.tool_calls += u64::from(is_call);
        if is_main && block.kind.is("text") {
            told.said.extend(block.text.text());
        } else if is_main && is_call {
            told.doing.push(tool_call(&block));
        }
    }
}

/// Without what it wrote: that is only known when the answer is whole.
fn sent(message: &Message<'_>) -> Option<Sent> {
    let used = message.usage.read::<MessageUsage>()?;
    let usage = Usage {
        input_tokens: used.input_tokens.unwrap_or_default(),
        cache_read_tokens: used.cache_read_input_tokens.unwrap_or_default(),
        cache_write_tokens: used.cache_creation_input_tokens.unwrap_or_default(),
        ..Usage::default()
    };
    Some(Sent { message: message.id.text()?, usage })
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

fn system(line: &Line<'_>, told: &mut Told) {
    if line.subtype.is("init") {
        let name = |field: Field<'_>| Some(shorten(&visible_line(&field.text()?), MAX_NAME));
        let (version, model) = (name(line.claude_code_version), name(line.model));
        let is_key = line.api_key_source.is("ANTHROPIC_API_KEY");
        let login = if is_key { Login::Key } else { Login::Renewable };
        told.news = Some(News::Started { version, model, login });
        told.used.subscription = is_key.then_some(false);
    } else if line.subtype.is("api_retry") {
        told.doing.push(retry(line));
        told.news = Some(News::Retry(api_error(line)));
    } else if line.subtype.is("permission_denied") {
        let tool = line.tool_name.text().unwrap_or_default();
        told.news = Some(News::Denied { tool });
    } else {
        told.news = task(line).map(News::Task);
    }
}

/// Sub-agents that the agent waits for are tasks too, but none in the background.
fn task(line: &Line<'_>) -> Option<TaskNews> {
    if line.subtype.is("task_started") && !line.is_backgrounded.is_false() {
        Some(TaskNews::Started(line.task_id.text()?))
    } else if line.subtype.is("task_notification") {
        Some(TaskNews::Ended(line.task_id.text()?))
    } else if line.subtype.is("background_tasks_changed") {
        let id = |task: Field<'_>| Task::parse(task.raw()?)?.id.text();
        Some(TaskNews::Running(line.tasks.items().into_iter().filter_map(id).collect()))
    } else {
        None
    }
}

fn retry(line: &Line<'_>) -> String {
    let number = |field: Field<'_>| field.read::<u64>().unwrap_or_default();
    let (attempt, most) = (number(line.attempt), number(line.max_retries));
    let reason = line.error.text().unwrap_or_default();
    shorten(&visible_line(&format!("retry {attempt} of {most}: {reason}")), MAX_DOING)
}

/// The event also comes with successful runs; only a refusal limits.
fn limited(info: Field<'_>) -> Option<News> {
    let info = RateLimit::parse(info.raw()?)?;
    info.status.is("rejected").then(|| News::Limited { resets_at: info.resets_at.read() })
}

fn is_beyond(info: Field<'_>) -> bool {
    info.raw().and_then(RateLimit::parse).is_some_and(|info| info.is_using_overage.is_true())
}

fn result(line: &Line<'_>) -> News {
    let words = line.errors.read::<Vec<String>>().unwrap_or_default().join("; ");
    let seen = ResultSeen {
        is_error: line.is_error.is_true(),
        subtype: line.subtype.text().unwrap_or_default(),
        terminal_reason: line.terminal_reason.text().unwrap_or_default(),
        stop_reason: line.stop_reason.text().unwrap_or_default(),
        text: line.result.text().unwrap_or(words),
        api_error: api_error(line),
    };
    let denied = line.permission_denials.items().into_iter().filter_map(denied_rule).collect();
    let models = models(line);
    News::Result {
        seen: Box::new(seen),
        usage: usage(line, &models),
        models,
        window: window(line),
        denied,
    }
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

/// Of the model that wrote most: sub-agents may have another.
fn window(line: &Line<'_>) -> u64 {
    let models = line.model_usage.read::<ModelUsages>().unwrap_or_default();
    let main = models.into_values().max_by_key(|model| model.output_tokens);
    main.map(|model| model.context_window).unwrap_or_default()
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

fn models(line: &Line<'_>) -> Vec<ModelUse> {
    let models = line.model_usage.read::<ModelUsages>().unwrap_or_default();
    let used = models.into_iter().take(MAX_MODELS).map(|(name, used)| ModelUse {
        model: shorten(&visible_line(&name), MAX_NAME),
        cost: Usd::of(used.cost_usd.unwrap_or_default()),
        input_tokens: used.input_tokens,
        output_tokens: used.output_tokens,
        cache_read_tokens: used.cache_read_input_tokens,
        cache_write_tokens: used.cache_creation_input_tokens,
    });
    used.collect()
}
