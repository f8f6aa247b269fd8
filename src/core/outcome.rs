//! How an attempt's process ended, as one class.
//!
//! One pure function from what was seen, how it exited and how we ended it. Only
//! structure counts: events of their own kind, and the result. What an agent
//! says, reads or quotes never makes a class.

use serde::{Deserialize, Serialize};

use super::text::{shorten, visible_line};

/// The longest `detail` that is kept of an error.
const MAX_DETAIL: usize = 400;

/// The CLI's word for a key or login that is refused.
pub const AUTHENTICATION_FAILED: &str = "authentication_failed";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum Outcome {
    /// Exit 0, a result, and the result is no error. What it achieved is another question.
    Completed,
    NoResult {
        detail: String,
    },
    /// `resets_at` is in seconds since the Unix epoch.
    UsageLimit {
        resets_at: Option<i64>,
        detail: String,
    },
    Overloaded {
        detail: String,
    },
    ServerError {
        detail: String,
    },
    Connection {
        detail: String,
    },
    Login {
        detail: String,
    },
    Billing {
        detail: String,
    },
    PromptTooLong {
        detail: String,
    },
    ModelNotFound {
        detail: String,
    },
    TurnLimit,
    IterationBudget,
    Refusal {
        detail: String,
    },
    /// The agent reported an error that fits no other class.
    AgentError {
        detail: String,
    },
    SpawnFailed {
        detail: String,
    },
    FirstEventTimeout,
    IdleTimeout,
    IterationTimeout,
    /// It was heard and got nowhere, for too long.
    Stuck,
    EndedByUs,
    KilledBySomeoneElse {
        signal: i32,
    },
}

/// How the process exited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// It never started.
    NotSpawned {
        error: String,
    },
    /// Nobody can tell: its supervisor is gone.
    Unknown,
}

/// Why we ended it, if we did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    Human,
    /// Its result was in; it only did not exit.
    AfterResult,
    /// It could not have come to anything, and said so.
    HopelessRetry,
    FirstEventTimeout,
    IdleTimeout,
    IterationTimeout,
    Stuck,
}

/// What was seen of a structured agent, as far as classes depend on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// It spoke in events, not in plain text.
    pub structured: bool,
    pub result: Option<ResultSeen>,
    /// The last error that the CLI, not the model, put into the conversation.
    pub api_error: Option<ApiError>,
    /// The service refused for now, and said until when (seconds since the epoch).
    pub limit_resets_at: Option<i64>,
    /// The error of the last retry, when nothing came after it.
    pub retrying: Option<ApiError>,
    /// The end of what it wrote to standard error, or in plain text.
    pub last_words: String,
}

/// The last `result` event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultSeen {
    pub is_error: bool,
    pub subtype: String,
    pub terminal_reason: String,
    pub stop_reason: String,
    pub text: String,
    pub api_error: ApiError,
}

/// An API error in the CLI's own words for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiError {
    /// `rate_limit`, `server_error`, `authentication_failed`, `billing_error`, …
    pub error: String,
    /// `usage_limit_reached`, `connection_failed`, …
    pub api_error: String,
    pub status: Option<u16>,
}

pub fn classify(seen: &Seen, exit: &Exit, ended_by: Option<EndedBy>) -> Outcome {
    if let Exit::NotSpawned { error } = exit {
        return Outcome::SpawnFailed { detail: detail(error) };
    }
    match ended_by {
        // A result that was in before the human's word counts.
        Some(EndedBy::Human) if has_good_result(seen) => return Outcome::Completed,
        Some(EndedBy::Human) => return Outcome::EndedByUs,
        Some(EndedBy::FirstEventTimeout) => return Outcome::FirstEventTimeout,
        Some(EndedBy::IdleTimeout) => return Outcome::IdleTimeout,
        Some(EndedBy::IterationTimeout) => return Outcome::IterationTimeout,
        Some(EndedBy::Stuck) if has_good_result(seen) => return Outcome::Completed,
        Some(EndedBy::Stuck) => return Outcome::Stuck,
        Some(EndedBy::AfterResult) => return after_result(seen),
        // It may have come to its own end before the order reached it.
        Some(EndedBy::HopelessRetry) if seen.result.is_some() => return after_result(seen),
        Some(EndedBy::HopelessRetry) => return of_retry(seen),
        None => {}
    }
    match &seen.result {
        Some(result) if result.is_error => of_error_result(seen, result),
        Some(_) => of_good_result(seen, exit),
        None => without_result(seen, exit),
    }
}

fn has_good_result(seen: &Seen) -> bool {
    seen.result.as_ref().is_some_and(|result| !result.is_error)
}

fn after_result(seen: &Seen) -> Outcome {
    match &seen.result {
        Some(result) if result.is_error => of_error_result(seen, result),
        Some(_) => Outcome::Completed,
        None => Outcome::EndedByUs,
    }
}

fn of_retry(seen: &Seen) -> Outcome {
    let error = seen.retrying.as_ref().or(seen.api_error.as_ref());
    error
        .and_then(|error| of_api_error(seen, error, &error.error))
        .unwrap_or(Outcome::Login { detail: AUTHENTICATION_FAILED.to_owned() })
}

fn of_good_result(seen: &Seen, exit: &Exit) -> Outcome {
    match exit {
        Exit::Code(0) => Outcome::Completed,
        Exit::Signal(signal) => Outcome::KilledBySomeoneElse { signal: *signal },
        _ => without_result(seen, exit),
    }
}

fn without_result(seen: &Seen, exit: &Exit) -> Outcome {
    match exit {
        Exit::Signal(signal) => Outcome::KilledBySomeoneElse { signal: *signal },
        // The CLI turns the signals that it handles into codes.
        Exit::Code(code @ (129 | 130 | 143)) if seen.structured => {
            Outcome::KilledBySomeoneElse { signal: code - 128 }
        }
        Exit::Code(0) if !seen.structured => Outcome::Completed,
        Exit::Code(code) => Outcome::NoResult { detail: ended_with(*code, &seen.last_words) },
        _ => Outcome::NoResult { detail: detail(&seen.last_words) },
    }
}

fn ended_with(code: i32, last_words: &str) -> String {
    let words = detail(last_words);
    match (code, words.is_empty()) {
        (0, true) => "the agent ended without a result".to_owned(),
        (0, false) => format!("the agent ended without a result: {words}"),
        (_, true) => format!("the agent ended with exit code {code}"),
        (_, false) => format!("the agent ended with exit code {code}: {words}"),
    }
}

fn of_error_result(seen: &Seen, result: &ResultSeen) -> Outcome {
    match (result.subtype.as_str(), result.terminal_reason.as_str()) {
        ("error_max_turns", _) => return Outcome::TurnLimit,
        ("error_max_budget_usd", _) => return Outcome::IterationBudget,
        (_, "prompt_too_long") => return Outcome::PromptTooLong { detail: detail(&result.text) },
        (_, "aborted_streaming" | "aborted_tools") => {
            return Outcome::KilledBySomeoneElse { signal: 2 };
        }
        _ => {}
    }
    if result.stop_reason == "refusal" {
        return Outcome::Refusal { detail: detail(&result.text) };
    }
    let synthetic = seen.api_error.clone().unwrap_or_default();
    let error = synthetic.or(&result.api_error);
    of_api_error(seen, &error, &result.text)
        .unwrap_or_else(|| Outcome::AgentError { detail: detail(&result.text) })
}

fn of_api_error(seen: &Seen, error: &ApiError, text: &str) -> Option<Outcome> {
    let detail = detail(text);
    let class = match (error.api_error.as_str(), error.error.as_str(), error.status) {
        ("usage_limit_reached", _, _) => {
            Outcome::UsageLimit { resets_at: seen.limit_resets_at, detail }
        }
        ("connection_failed", _, _) => Outcome::Connection { detail },
        (_, AUTHENTICATION_FAILED, _) | (_, _, Some(401 | 403)) => Outcome::Login { detail },
        (_, "billing_error", _) | (_, _, Some(402)) => Outcome::Billing { detail },
        (_, "model_not_found", _) | (_, _, Some(404)) => Outcome::ModelNotFound { detail },
        (_, "overloaded", _) | (_, _, Some(529)) => Outcome::Overloaded { detail },
        (_, "rate_limit", _) | (_, _, Some(429)) => Outcome::Overloaded { detail },
        (_, _, Some(500..=599)) => Outcome::ServerError { detail },
        // Without a status no answer came at all.
        (_, "server_error" | "unknown", None) => Outcome::Connection { detail },
        _ => return None,
    };
    Some(class)
}

impl ApiError {
    fn or(self, other: &Self) -> Self {
        let first = |a: String, b: &str| if a.is_empty() { b.to_owned() } else { a };
        Self {
            error: first(self.error, &other.error),
            api_error: first(self.api_error, &other.api_error),
            status: self.status.or(other.status),
        }
    }
}

fn detail(text: &str) -> String {
    shorten(&visible_line(text), MAX_DETAIL)
}

impl Outcome {
    /// What happened, in a few words for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Completed => "the agent finished".to_owned(),
            Self::NoResult { detail } | Self::AgentError { detail } if detail.is_empty() => {
                "the agent ended without a result".to_owned()
            }
            Self::NoResult { detail } => detail.clone(),
            Self::AgentError { detail } => format!("the agent reported an error: {detail}"),
            Self::UsageLimit { detail, .. } => format!("usage limit: {detail}"),
            Self::Overloaded { detail } => format!("the service is overloaded: {detail}"),
            Self::ServerError { detail } => format!("the service failed: {detail}"),
            Self::Connection { detail } => format!("no connection to the service: {detail}"),
            Self::Login { detail } if detail == AUTHENTICATION_FAILED => {
                "the agent is not logged in: the service refused its key or login".to_owned()
            }
            Self::Login { detail } => format!("the agent is not logged in: {detail}"),
            Self::Billing { detail } => format!("billing: {detail}"),
            Self::PromptTooLong { detail } => format!("the agent refused the prompt: {detail}"),
            Self::ModelNotFound { detail } => format!("no such model: {detail}"),
            Self::TurnLimit => "the agent used all of its turns".to_owned(),
            Self::IterationBudget => "the iteration's budget is used up".to_owned(),
            Self::Refusal { detail } => format!("the model refused: {detail}"),
            Self::SpawnFailed { detail } => format!("the agent could not be started: {detail}"),
            Self::FirstEventTimeout => "the agent said nothing at all".to_owned(),
            Self::IdleTimeout => "the agent went silent".to_owned(),
            Self::IterationTimeout => "the iteration took too long".to_owned(),
            Self::Stuck => "the agent got nowhere for too long and was ended".to_owned(),
            Self::EndedByUs => "ended by ralph".to_owned(),
            Self::KilledBySomeoneElse { signal } => {
                format!("the agent was killed from outside (signal {signal})")
            }
        }
    }

    /// The class alone, for telling one error from another.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NoResult { .. } => "no_result",
            Self::UsageLimit { .. } => "usage_limit",
            Self::Overloaded { .. } => "overloaded",
            Self::ServerError { .. } => "server_error",
            Self::Connection { .. } => "connection",
            Self::Login { .. } => "login",
            Self::Billing { .. } => "billing",
            Self::PromptTooLong { .. } => "prompt_too_long",
            Self::ModelNotFound { .. } => "model_not_found",
            Self::TurnLimit => "turn_limit",
            Self::IterationBudget => "iteration_budget",
            Self::Refusal { .. } => "refusal",
            Self::AgentError { .. } => "agent_error",
            Self::SpawnFailed { .. } => "spawn_failed",
            Self::FirstEventTimeout => "first_event_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::IterationTimeout => "iteration_timeout",
            Self::Stuck => "stuck",
            Self::EndedByUs => "ended_by_us",
            Self::KilledBySomeoneElse { .. } => "killed_by_someone_else",
        }
    }
}

#[cfg(test)]
mod tests;
