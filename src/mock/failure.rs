//! Failures, event for event as recordings of Claude Code 2.1.325 show them.
//!
//! The values must change only when the real agent does, since the driver tells its failures apart
//! by them.

use std::io::{self, Write};

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};
use uuid::Uuid;

use super::step::{FailureClass, Retried};
use super::stream::{MODEL, Stream, timestamp};

/// A request that failed for good, as the message and the result tell it.
struct MockApiError {
    error: &'static str,
    /// The fields that both have in common.
    details: Value,
    text: &'static str,
}

impl FailureClass {
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

    /// None: it is told in another way.
    #[rustfmt::skip]
    fn api_error(self) -> Option<MockApiError> {
        let answered = |error, status: u16, kind: &str, text| {
            let details = json!({ "api_error_status": status, "api_error_type": kind });
            Some(MockApiError { error, details, text })
        };
        let unanswered = |error, api_error: &str, text| {
            Some(MockApiError { error, details: json!({ "api_error": api_error }), text })
        };
        match self {
            Self::RateLimit => answered("rate_limit", 429, "rate_limit_error",
                "API Error: Request rejected (429) · This request would exceed your organization's rate limit of 50 requests per minute."),
            Self::Overloaded => answered("server_error", 529, "overloaded_error",
                "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment."),
            Self::Server => answered("server_error", 500, "api_error",
                "API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment."),
            Self::Login => answered("authentication_failed", 401, "authentication_error",
                "Invalid API key · Fix external API key"),
            Self::Billing => answered("billing_error", 400, "invalid_request_error",
                "Credit balance is too low"),
            Self::PromptTooLong => answered("invalid_request", 400, "invalid_request_error",
                "Prompt is too long · the request is ~1234567 tokens (limit 1000000)"),
            Self::ModelNotFound => answered("model_not_found", 404, "not_found_error",
                "There's an issue with the selected model (mock). It may not exist or you may not have access to it. Run --model to pick a different model."),
            Self::Connection => unanswered("server_error", "connection_failed",
                "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)"),
            // An error that is none of the others: an answer longer than answers may be.
            Self::Error => unanswered("max_output_tokens", "max_output_tokens",
                "API Error: Claude's response exceeded the 128000 output token maximum. To configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable."),
            Self::UsageLimit | Self::TurnLimit | Self::Budget | Self::Refusal => None,
        }
    }
}

impl<W: Write> Stream<W> {
    /// `resets_at`, in Unix seconds, matters to a usage limit only.
    pub fn fail(
        &mut self,
        class: FailureClass,
        retries: Option<u32>,
        resets_at: i64,
    ) -> io::Result<()> {
        if let Some((retried, usually)) = class.retried() {
            self.retries(retried, retries.unwrap_or(usually))?;
        }
        match (class, class.api_error()) {
            (_, Some(failed)) => {
                let is_too_long = class == FailureClass::PromptTooLong;
                let reason = if is_too_long { "prompt_too_long" } else { "api_error" };
                self.synthetic(failed.text, failed.error, "stop_sequence", &failed.details)?;
                self.failed_result(failed.text, reason, &failed.details)
            }
            (FailureClass::UsageLimit, _) => self.usage_limit(resets_at),
            (FailureClass::TurnLimit, _) => self.turn_limit(),
            (FailureClass::Budget, _) => self.budget(),
            (_, None) => self.refusal(),
        }
    }

    pub fn retries(&mut self, retried: Retried, times: u32) -> io::Result<()> {
        let (status, error) = match retried {
            Retried::RateLimit => (Some(429), "rate_limit"),
            Retried::Overloaded => (Some(529), "overloaded"),
            Retried::Server => (Some(500), "server_error"),
            Retried::Connection => (None, "unknown"),
            Retried::Login => (Some(401), "authentication_failed"),
        };
        for attempt in 1..=times {
            self.event(json!({
                "type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": times,
                "retry_delay_ms": 250_u64 << attempt.min(7), "error_status": status, "error": error,
            }))?;
        }
        Ok(())
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
        message["api_error_params"] = json!({ "rate_limit_info": info });
        self.synthetic(&text, "rate_limit", "stop_sequence", &message)?;
        self.failed_result(&text, "api_error", &details)
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
        self.synthetic(text, "invalid_request", "refusal", &json!({}))?;
        self.failed_result(
            text,
            "api_error",
            &json!({ "stop_reason": "refusal", "safety_stops": 1 }),
        )
    }

    /// A message that did not come from the model.
    pub fn synthetic(
        &mut self,
        text: &str,
        error: &str,
        stop_reason: &str,
        details: &Value,
    ) -> io::Result<()> {
        if self.is_plain() {
            return self.line(text.as_bytes());
        }
        let mut event = json!({
            "type": "assistant",
            "message": {
                "id": Uuid::now_v7().to_string(), "type": "message", "role": "assistant",
                "model": "<synthetic>", "content": [{ "type": "text", "text": text }],
                "stop_reason": stop_reason, "stop_sequence": "",
                "usage": { "input_tokens": 0, "output_tokens": 0 },
            },
            "parent_tool_use_id": null, "error": error, "is_api_error_message": true,
            "timestamp": timestamp(),
        });
        extend(&mut event, details);
        self.event(event)
    }

    /// Calls itself a success, and an error in the same breath, as the real one does.
    pub fn failed_result(
        &mut self,
        text: &str,
        terminal_reason: &str,
        details: &Value,
    ) -> io::Result<()> {
        let mut ending = json!({
            "subtype": "success", "is_error": true, "terminal_reason": terminal_reason,
            "stop_reason": "stop_sequence", "api_error_status": null, "result": text,
        });
        extend(&mut ending, details);
        self.result(ending)
    }
}

/// Adds the fields of one object to another.
fn extend(event: &mut Value, more: &Value) {
    if let (Some(fields), Value::Object(more)) = (event.as_object_mut(), more) {
        fields.extend(more.clone());
    }
}

/// `5am`, `5:30am`: the way the agent tells it.
fn hour(second: i64) -> String {
    let moment = Timestamp::from_second(second).unwrap_or_default().to_zoned(TimeZone::UTC);
    let shape = if moment.minute() == 0 { "%-I%P" } else { "%-I:%M%P" };
    moment.strftime(shape).to_string()
}
