//! The ways a real agent fails, event for event as Claude Code 2.1.325 showed them.

use std::io::{self, Write};

use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use serde_json::json;

use super::api_error::{self, Retried};
use super::stream::{MODEL, Stream};

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    UsageLimit,
    RateLimit,
    Overloaded,
    Server,
    Connection,
    Login,
    Billing,
    PromptTooLong,
    ModelNotFound,
    TurnLimit,
    Budget,
    Refusal,
    Error,
}

impl<W: Write> Stream<W> {
    /// `resets_at`, in Unix seconds, matters to a usage limit only.
    pub fn fail(&mut self, class: Class, retries: Option<u32>, resets_at: i64) -> io::Result<()> {
        if let Some((retried, usually)) = class.retried() {
            self.retries(retried, retries.unwrap_or(usually))?;
        }
        match class {
            Class::UsageLimit => self.usage_limit(resets_at),
            Class::RateLimit => self.api_error(&api_error::RATE_LIMIT),
            Class::Overloaded => self.api_error(&api_error::OVERLOADED),
            Class::Server => self.api_error(&api_error::SERVER),
            Class::Connection => self.api_error(&api_error::CONNECTION),
            Class::Login => self.api_error(&api_error::LOGIN),
            Class::Billing => self.api_error(&api_error::BILLING),
            Class::PromptTooLong => self.api_error(&api_error::PROMPT_TOO_LONG),
            Class::ModelNotFound => self.api_error(&api_error::MODEL_NOT_FOUND),
            Class::TurnLimit => self.turn_limit(),
            Class::Budget => self.budget(),
            Class::Refusal => self.refusal(),
            Class::Error => self.api_error(&api_error::OUTPUT_LIMIT),
        }
    }

    fn usage_limit(&mut self, resets_at: i64) -> io::Result<()> {
        let info = json!({
            "status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour",
            "overageStatus": "rejected", "overageDisabledReason": "org_level_disabled",
            "isUsingOverage": false,
        });
        let mut windows = info.clone();
        windows["unifiedWindows"] = json!({
            "five_hour": { "utilization": 1, "resetsAt": resets_at, "status": "rejected" },
        });
        self.event(json!({ "type": "rate_limit_event", "rate_limit_info": windows }))?;
        let text = format!("You've hit your 5-hour limit · resets {} (UTC)", hour(resets_at));
        let details = json!({
            "api_error_status": 429, "api_error_type": "rate_limit_error",
            "api_error": "usage_limit_reached",
        });
        let mut message = details.clone();
        if let Some(message) = message.as_object_mut() {
            message.insert("api_error_params".to_owned(), json!({ "rate_limit_info": info }));
        }
        self.synthetic(&text, "rate_limit", "stop_sequence", message)?;
        self.failed_result(&text, "api_error", details)
    }

    fn turn_limit(&mut self) -> io::Result<()> {
        let call = self.tool_use("Bash", &json!({ "command": "true" }))?;
        self.tool_result(&call, &Ok("(Bash completed with no output)".to_owned()))?;
        let turns = self.totals.stated_turns.unwrap_or(self.totals.turns);
        let error = format!("Reached maximum number of turns ({turns})");
        self.ran_out("error_max_turns", "max_turns", &error)
    }

    fn budget(&mut self) -> io::Result<()> {
        self.tool_use("Bash", &json!({ "command": "true" }))?;
        // A budget that ran out was not free.
        if self.totals.cost <= 0.0 {
            self.totals.cost = 1.0;
        }
        let error = format!("Reached maximum budget (${})", self.totals.cost);
        self.ran_out("error_max_budget_usd", "budget_exhausted", &error)
    }

    fn ran_out(&mut self, subtype: &str, terminal_reason: &str, error: &str) -> io::Result<()> {
        if self.is_plain() {
            return self.line(format!("Error: {error}").as_bytes());
        }
        self.result(json!({
            "subtype": subtype, "is_error": true, "terminal_reason": terminal_reason,
            "stop_reason": "tool_use", "errors": [error],
        }))
    }

    fn refusal(&mut self) -> io::Result<()> {
        self.text("I can")?;
        self.event(json!({
            "type": "system", "subtype": "model_refusal_no_fallback", "original_model": MODEL,
            "api_refusal_category": null, "api_refusal_explanation": null, "content": "",
        }))?;
        let text = "API Error: The model's safeguards flagged this message \
                    (https://www.anthropic.com/legal/aup). \
                    This sometimes happens with safe, normal conversations.";
        self.synthetic(text, "invalid_request", "refusal", json!({}))?;
        self.failed_result(
            text,
            "api_error",
            json!({ "stop_reason": "refusal", "safety_stops": 1 }),
        )
    }
}

impl Class {
    /// How often the agent tried again in the recordings, where it did.
    fn retried(self) -> Option<(Retried, u32)> {
        match self {
            Self::RateLimit => Some((Retried::RateLimit, 2)),
            Self::Overloaded => Some((Retried::Overloaded, 2)),
            Self::Server => Some((Retried::Server, 2)),
            Self::Connection => Some((Retried::Connection, 2)),
            Self::Login => Some((Retried::Login, 1)),
            _ => None,
        }
    }
}

/// `5am`, `5:30am`: the way the agent tells it.
fn hour(second: i64) -> String {
    let moment = Timestamp::from_second(second).unwrap_or_default().to_zoned(TimeZone::UTC);
    let shape = if moment.minute() == 0 { "%-I%P" } else { "%-I:%M%P" };
    moment.strftime(shape).to_string()
}
