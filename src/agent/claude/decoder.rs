//! Claude Code's stream-json, as `AgentEvent`s.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Deserialize;
use serde_json::json;

use crate::agent::backend::{
    AgentEnd, AgentEvent, AgentIdentity, Decoder, EventListener, UsageUpdate, detail,
};
use crate::agent::json::{JsonObject, RawJson};
use crate::model::{ModelUse, Outcome, StepKind, Usage, Usd, shorten, visible_line};

/// The longest description of what the agent does now, in characters.
const MAX_DOING: usize = 200;
/// The longest name of a version or a model, in characters.
const MAX_NAME: usize = 100;
/// The model name under which the CLI puts its own words into the conversation.
const SYNTHETIC: &str = "<synthetic>";
/// The most models to report.
const MAX_MODELS: usize = 16;
/// More background tasks, or longer ids, are ignored.
const MAX_TASKS: usize = 64;
const MAX_TASK_ID: usize = 64;
/// How many messages may arrive in parts at the same time: the main agent's and its sub-agents'.
const MAX_AT_ONCE: usize = 32;
/// The CLI's word for a key or login that is refused.
const AUTHENTICATION_FAILED: &str = "authentication_failed";
/// The detail of a login that was refused and retried until ralph ended the agent.
const LOGIN_REFUSED: &str =
    "the service refused the key or login; run `/login` in `claude`, or fix the API key";
/// Fields that say what a tool call is about; the first one that is there counts.
const SUBJECTS: [&str; 7] =
    ["command", "file_path", "path", "pattern", "url", "query", "description"];

#[derive(Debug, Default)]
pub struct ClaudeDecoder {
    /// The last error that the CLI, not the model, put into the conversation.
    api_error: ApiError,
    /// The service refuses until then, in seconds since the epoch.
    limit_resets_at: Option<i64>,
    /// The login is a key from the environment, which the CLI cannot renew.
    has_key: bool,
    /// How often the login was refused and retried since the service last accepted it.
    refused: u32,
    /// Tasks that are known to run in the background, also after the result.
    background: BTreeSet<String>,
    /// The latest messages whose request is counted: every part of a message repeats it.
    counted: VecDeque<String>,
}

/// An API error in the CLI's own words.
#[derive(Clone, Debug, Default)]
struct ApiError {
    /// `rate_limit`, `server_error`, `authentication_failed`, `billing_error`, …
    error: Option<String>,
    /// `usage_limit_reached`, `connection_failed`, …
    api_error: Option<String>,
    status: Option<u16>,
}

/// What a message or a model used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenCounts {
    #[serde(alias = "inputTokens")]
    input_tokens: Option<u64>,
    #[serde(alias = "outputTokens")]
    output_tokens: Option<u64>,
    #[serde(alias = "cacheReadInputTokens")]
    cache_read_input_tokens: Option<u64>,
    #[serde(alias = "cacheCreationInputTokens")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(rename = "costUSD")]
    cost_usd: Option<f64>,
    #[serde(rename = "contextWindow")]
    context_window: Option<u64>,
}

impl Decoder for ClaudeDecoder {
    fn line(&mut self, line: &str, tell: EventListener<'_>) -> bool {
        let line = &mut JsonObject::new(line);
        match line.get("type").word() {
            // Most of a stream: results of tools, and parts of messages that come whole later.
            "user" | "stream_event" => {}
            "system" if is_init(line) => self.begin_turn(line, tell),
            "system" if line.is_whole() => self.system(line, tell),
            "assistant" if line.is_whole() => self.assistant(line, tell),
            "rate_limit_event" if line.is_whole() => self.rate_limit(line, tell),
            // Other agents have a `result` too, but none that says whether it is an error.
            "result" if line.is_whole() && line.get("is_error").is_present() => {
                self.end_turn(line, tell);
            }
            "control_request" if line.is_whole() => deny(line, tell),
            _ => return false,
        }
        true
    }

    /// One line of `--input-format stream-json`.
    fn message(&mut self, text: &str, tell: EventListener<'_>) {
        let message = json!({ "type": "user", "message": { "role": "user", "content": text } });
        tell(&AgentEvent::Reply(&format!("{message}\n")));
    }

    /// The CLI renews a login, but reports the first refusal before that.
    fn hopeless(&self) -> Option<Outcome> {
        let refusals = if self.has_key { 1 } else { 2 };
        (self.refused >= refusals).then(|| Outcome::Login { detail: LOGIN_REFUSED.to_owned() })
    }

    /// The CLI turns the signals that it handles into codes.
    fn of_exit_code(&self, code: i32) -> Option<Outcome> {
        matches!(code, 129 | 130 | 143)
            .then_some(Outcome::KilledBySomeoneElse { signal: code - 128 })
    }
}

impl ClaudeDecoder {
    fn assistant(&mut self, line: &mut JsonObject<'_>, tell: EventListener<'_>) {
        if line.get("aborted").read() == Some(true) {
            return;
        }
        let mut message = line.get("message").object();
        let is_main = !line.get("parent_tool_use_id").is_present();
        if message.get("model").word() == SYNTHETIC
            || line.get("is_api_error_message").read() == Some(true)
        {
            if is_main {
                self.api_error = ApiError::default().or(line);
            }
            return;
        }
        let mut update = self.request(&mut message, is_main);
        for item in message.get("content").items() {
            let mut block = item.object();
            match block.get("type").word() {
                "text" if is_main => {
                    if let Some(text) = block.get("text").text() {
                        self.refused = 0;
                        tell(&AgentEvent::Said(&text));
                    }
                }
                "tool_use" => {
                    update.used.tool_calls += 1;
                    if is_main {
                        self.refused = 0;
                        let (kind, what) = tool_call(&mut block);
                        tell(&AgentEvent::Doing(kind, &what));
                    }
                }
                _ => {}
            }
        }
        tell(&AgentEvent::Usage(update));
    }

    /// Without the tokens of the answer, which are only known when it is complete.
    fn request(&mut self, message: &mut JsonObject<'_>, is_main: bool) -> UsageUpdate {
        let mut update = UsageUpdate::default();
        let Some(counts) = message.get("usage").read::<TokenCounts>() else { return update };
        let used = counts.usage();
        // All of it is in the context of the next request.
        let context = used.tokens_read().saturating_add(used.output_tokens);
        update.context = is_main.then_some(context);
        let id = message.get("id").word();
        if !id.is_empty() && self.counted.iter().all(|counted| counted != id) {
            update.used = Usage { output_tokens: 0, ..used };
            self.counted.push_front(id.to_owned());
            self.counted.truncate(MAX_AT_ONCE);
        }
        update
    }

    fn system(&mut self, line: &mut JsonObject<'_>, tell: EventListener<'_>) {
        match line.get("subtype").word() {
            "api_retry" => {
                let error = line.get("error").text().unwrap_or_default();
                self.refused = if error == AUTHENTICATION_FAILED { self.refused + 1 } else { 0 };
                let mut number = |name| line.get(name).read::<u64>().unwrap_or_default();
                let (attempt, most) = (number("attempt"), number("max_retries"));
                let retry = format!("retry {attempt} of {most}: {error}");
                tell(&AgentEvent::Doing(StepKind::Other, &one_line(&retry, MAX_DOING)));
            }
            "permission_denied" => {
                let tool = line.get("tool_name").text().unwrap_or_default();
                tell(&AgentEvent::Denied(&one_line(&tool, MAX_DOING)));
            }
            subtype => {
                if self.change_tasks(subtype, line).is_some() {
                    tell(&AgentEvent::Background(self.background.len()));
                }
            }
        }
    }

    fn begin_turn(&mut self, line: &mut JsonObject<'_>, tell: EventListener<'_>) {
        self.has_key = line.get("apiKeySource").word() == "ANTHROPIC_API_KEY";
        self.refused = 0;
        // An error of an earlier turn did not end the process.
        self.api_error = ApiError::default();
        let mut name = |name| Some(one_line(&line.get(name).text()?, MAX_NAME));
        let (version, model) = (name("claude_code_version"), name("model"));
        tell(&AgentEvent::Started(AgentIdentity { version, model }));
        if self.has_key {
            tell_who_pays(Some(false), tell);
        }
    }

    /// None: nothing changed. Sub-agents that the agent waits for are tasks too, but not in the
    /// background.
    fn change_tasks(&mut self, subtype: &str, line: &mut JsonObject<'_>) -> Option<()> {
        match subtype {
            "task_started" if line.get("is_backgrounded").read() != Some(false) => {
                self.add_task(line.get("task_id").text()?);
            }
            "task_notification" => _ = self.background.remove(&line.get("task_id").text()?),
            "background_tasks_changed" => {
                self.background.clear();
                let tasks = line.get("tasks").items();
                let ids = tasks.filter_map(|task| task.object().get("task_id").text());
                ids.for_each(|id| self.add_task(id));
            }
            _ => return None,
        }
        Some(())
    }

    fn add_task(&mut self, id: String) {
        if self.background.len() < MAX_TASKS && id.len() <= MAX_TASK_ID {
            self.background.insert(id);
        }
    }

    /// Successful runs have this event too; only a refusal limits. Only a subscription has such
    /// limits; beyond them the dollar may pay.
    fn rate_limit(&mut self, line: &mut JsonObject<'_>, tell: EventListener<'_>) {
        let mut info = line.get("rate_limit_info").object();
        if info.get("status").word() == "rejected" {
            self.limit_resets_at = info.get("resetsAt").read();
        }
        tell_who_pays(Some(info.get("isUsingOverage").read() != Some(true)), tell);
    }

    fn end_turn(&mut self, line: &mut JsonObject<'_>, tell: EventListener<'_>) {
        let errors: Vec<String> = line.get("errors").read().unwrap_or_default();
        let text = line.get("result").text().unwrap_or_else(|| errors.join("; "));
        let mut usage = Usage {
            cost_usd: line.get("total_cost_usd").read(),
            turns: line.get("num_turns").read().unwrap_or_default(),
            ..Usage::default()
        };
        // Only `modelUsage` includes sub-agents.
        let models: BTreeMap<String, TokenCounts> =
            line.get("modelUsage").read().unwrap_or_default();
        models.values().take(MAX_MODELS).for_each(|counts| usage.add(&counts.usage()));
        // Of the model that wrote most: sub-agents may have another.
        let main = models.values().max_by_key(|counts| counts.output_tokens.unwrap_or_default());
        let window = main.and_then(|counts| counts.context_window);
        tell(&AgentEvent::Usage(UsageUpdate { window, ..UsageUpdate::default() }));
        self.refused = 0;
        tell(&AgentEvent::Ended(&AgentEnd {
            result: match line.get("is_error").read() {
                Some(true) => Err(self.failure(line, &text)),
                _ => Ok(()),
            },
            text,
            usage: Some(usage),
            models: models.into_iter().take(MAX_MODELS).map(model_use).collect(),
            denied: line.get("permission_denials").items().filter_map(denied_rule).collect(),
        }));
    }

    fn failure(&self, line: &mut JsonObject<'_>, text: &str) -> Outcome {
        let detail = detail(text);
        match ["subtype", "terminal_reason", "stop_reason"].map(|name| line.get(name).word()) {
            ["error_max_turns", ..] => Outcome::TurnLimit,
            ["error_max_budget_usd", ..] => Outcome::IterationBudget,
            [_, "prompt_too_long", _] => Outcome::PromptTooLong { detail },
            [_, "aborted_streaming" | "aborted_tools", _] => {
                Outcome::KilledBySomeoneElse { signal: 2 }
            }
            [.., "refusal"] => Outcome::Refusal { detail },
            _ => self.api_error.clone().or(line).outcome(detail, self.limit_resets_at),
        }
    }
}

impl ApiError {
    /// With what the line says, where nothing is known yet.
    fn or(self, line: &mut JsonObject<'_>) -> Self {
        Self {
            error: self.error.or_else(|| line.get("error").text()),
            api_error: self.api_error.or_else(|| line.get("api_error").text()),
            status: self.status.or_else(|| line.get("api_error_status").read()),
        }
    }

    fn outcome(self, detail: String, resets_at: Option<i64>) -> Outcome {
        let words = [self.api_error, self.error].map(Option::unwrap_or_default);
        match (words.each_ref().map(String::as_str), self.status) {
            (["usage_limit_reached", _], _) => Outcome::UsageLimit { resets_at, detail },
            (["connection_failed", _], _) => Outcome::Connection { detail },
            ([_, AUTHENTICATION_FAILED], _) | (_, Some(401 | 403)) => Outcome::Login { detail },
            ([_, "billing_error"], _) | (_, Some(402)) => Outcome::Billing { detail },
            ([_, "model_not_found"], _) | (_, Some(404)) => Outcome::ModelNotFound { detail },
            ([_, "overloaded" | "rate_limit"], _) | (_, Some(429 | 529)) => {
                Outcome::Overloaded { detail }
            }
            (_, Some(500..=599)) => Outcome::ServerError { detail },
            // Without a status there was no answer at all.
            ([_, "server_error" | "unknown"], None) => Outcome::Connection { detail },
            _ => Outcome::AgentError { detail },
        }
    }
}

impl TokenCounts {
    fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input_tokens.unwrap_or_default(),
            output_tokens: self.output_tokens.unwrap_or_default(),
            cache_read_tokens: self.cache_read_input_tokens.unwrap_or_default(),
            cache_write_tokens: self.cache_creation_input_tokens.unwrap_or_default(),
            ..Usage::default()
        }
    }
}

/// The line is long, and what follows these fields is not needed.
fn is_init(line: &mut JsonObject<'_>) -> bool {
    let wanted = ["claude_code_version", "model", "apiKeySource"];
    line.get("subtype").word() == "init"
        && (wanted.iter().all(|name| line.get(name).is_present()) || line.is_whole())
}

/// With `--permission-prompt-tool stdio` it asks before it uses a tool, and waits.
fn deny(line: &mut JsonObject<'_>, tell: EventListener<'_>) {
    let denial = json!({ "behavior": "deny", "message": "this run is unattended" });
    let id = line.get("request_id").text();
    let answer = json!({ "subtype": "success", "request_id": id, "response": denial });
    let line = json!({ "type": "control_response", "response": answer });
    tell(&AgentEvent::Reply(&format!("{line}\n")));
}

fn tell_who_pays(subscription: Option<bool>, tell: EventListener<'_>) {
    tell(&AgentEvent::Usage(UsageUpdate { subscription, ..UsageUpdate::default() }));
}

fn one_line(text: &str, max: usize) -> String {
    shorten(&visible_line(text), max)
}

fn tool_call(block: &mut JsonObject<'_>) -> (StepKind, String) {
    let mut input = block.get("input").object();
    let subject = SUBJECTS.iter().find_map(|name| input.get(name).text()).unwrap_or_default();
    let tool = block.get("name").text().unwrap_or_default();
    let kind = match tool.as_str() {
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" | "Update" => StepKind::Edit,
        "Bash" => StepKind::Run,
        "Read" | "Grep" | "Glob" | "LS" => StepKind::Read,
        _ => StepKind::Other,
    };
    (kind, one_line(&format!("{tool} {subject}"), MAX_DOING))
}

/// What would have to be allowed: a command word for word, any other tool by its name.
fn denied_rule(denial: RawJson<'_>) -> Option<String> {
    let mut denial = denial.object();
    let tool = denial.get("tool_name").text()?;
    let rule = match denial.get("tool_input").object().get("command").text() {
        Some(command) => format!("{tool}({})", visible_line(&command)),
        None => tool,
    };
    Some(one_line(&rule, MAX_DOING))
}

fn model_use((name, counts): (String, TokenCounts)) -> ModelUse {
    let used = counts.usage();
    ModelUse {
        model: one_line(&name, MAX_NAME),
        cost: Usd::of(counts.cost_usd.unwrap_or_default()),
        input_tokens: used.input_tokens,
        output_tokens: used.output_tokens,
        cache_read_tokens: used.cache_read_tokens,
        cache_write_tokens: used.cache_write_tokens,
    }
}
