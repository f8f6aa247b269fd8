//! How Claude Code's turns end, in its own words for it.

use crate::agent::event::detail;
use crate::model::Outcome;

/// Its word for a key or login that is refused.
pub const AUTHENTICATION_FAILED: &str = "authentication_failed";

/// The last `result` event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnResult {
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

impl TurnResult {
    /// `shown`: the last error that the CLI, not the model, put into the conversation.
    pub fn outcome(&self, shown: Option<&ApiError>, resets_at: Option<i64>) -> Result<(), Outcome> {
        let words = [&self.subtype, &self.terminal_reason, &self.stop_reason].map(String::as_str);
        let detail = detail(&self.text);
        Err(match words {
            _ if !self.is_error => return Ok(()),
            ["error_max_turns", ..] => Outcome::TurnLimit,
            ["error_max_budget_usd", ..] => Outcome::IterationBudget,
            [_, "prompt_too_long", _] => Outcome::PromptTooLong { detail },
            [_, "aborted_streaming" | "aborted_tools", _] => {
                Outcome::KilledBySomeoneElse { signal: 2 }
            }
            [.., "refusal"] => Outcome::Refusal { detail },
            _ => {
                let error = shown.cloned().unwrap_or_default().or(&self.api_error);
                error.outcome(&self.text, resets_at).unwrap_or(Outcome::AgentError { detail })
            }
        })
    }
}

impl ApiError {
    /// None: it fits no class of its own.
    pub fn outcome(&self, text: &str, resets_at: Option<i64>) -> Option<Outcome> {
        let detail = detail(text);
        let class = match (self.api_error.as_str(), self.error.as_str(), self.status) {
            ("usage_limit_reached", _, _) => Outcome::UsageLimit { resets_at, detail },
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

    fn or(self, other: &Self) -> Self {
        let first = |a: String, b: &str| if a.is_empty() { b.to_owned() } else { a };
        Self {
            error: first(self.error, &other.error),
            api_error: first(self.api_error, &other.api_error),
            status: self.status.or(other.status),
        }
    }
}
