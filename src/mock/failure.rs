//! Failures, with the same events as in recordings of Claude Code 2.1.325.
//!
//! The driver classifies failures by these values, so change them only if the real agent changes.

use std::io;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use crate::model::unique_id;

use super::step::{FailureClass, Retried};
use super::stream::{MODEL, Stream, extend, timestamp, tool_result};
use super::tools::NO_OUTPUT;

/// A request that failed for good, as a message and the result report it.
struct FailedRequest {
    error: &'static str,
    text: String,
    stop_reason: &'static str,
    /// Fields of both, of the message only, and of the result only.
    details: Value,
    in_message: Value,
    in_result: Value,
}

impl FailedRequest {
    fn new(error: &'static str, text: &str, details: Value) -> Self {
        let (text, stop_reason) = (text.to_owned(), "stop_sequence");
        Self { error, text, stop_reason, details, in_message: Value::Null, in_result: Value::Null }
    }
}

impl FailureClass {
    /// How often the agent retried in the recordings, if it did.
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

    /// None: the caller's own limit, not a request that failed.
    #[rustfmt::skip]
    fn request(self, resets_at: i64) -> Option<FailedRequest> {
        let answered = |error, status: u16, kind: &str, text: &str| {
            let details = json!({ "api_error_status": status, "api_error_type": kind });
            FailedRequest::new(error, text, details)
        };
        let unanswered = |error, api_error: &str, text: &str| {
            FailedRequest::new(error, text, json!({ "api_error": api_error }))
        };
        Some(match self {
            Self::TurnLimit | Self::Budget => return None,
            Self::UsageLimit => FailedRequest {
                in_message: json!({ "api_error_params": { "rate_limit_info": limit(resets_at) } }),
                ..FailedRequest::new("rate_limit",
                    &format!("You've hit your 5-hour limit · resets {} (UTC)", hour(resets_at)),
                    json!({
                        "api_error_status": 429, "api_error_type": "rate_limit_error",
                        "api_error": "usage_limit_reached",
                    }))
            },
            Self::Refusal => FailedRequest {
                stop_reason: "refusal",
                in_result: json!({ "safety_stops": 1 }),
                ..FailedRequest::new("invalid_request",
                    "API Error: The model's safeguards flagged this message (https://www.anthropic.com/legal/aup). This sometimes happens with safe, normal conversations.",
                    Value::Null)
            },
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
            Self::PromptTooLong => FailedRequest {
                in_result: json!({ "terminal_reason": "prompt_too_long" }),
                ..answered("invalid_request", 400, "invalid_request_error",
                    "Prompt is too long · the request is ~1234567 tokens (limit 1000000)")
            },
            Self::ModelNotFound => answered("model_not_found", 404, "not_found_error",
                "There's an issue with the selected model (mock). It may not exist or you may not have access to it. Run --model to pick a different model."),
            Self::Connection => unanswered("server_error", "connection_failed",
                "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)"),
            // An error that is none of the others: an answer longer than answers may be.
            Self::Error => unanswered("max_output_tokens", "max_output_tokens",
                "API Error: Claude's response exceeded the 128000 output token maximum. To configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable."),
        })
    }
}

impl Stream<'_> {
    /// `resets_at`, in Unix seconds, matters only to a usage limit.
    pub fn fail(
        &mut self,
        class: FailureClass,
        retries: Option<u32>,
        resets_at: i64,
    ) -> io::Result<()> {
        if let Some((retried, usually)) = class.retried() {
            self.retries(retried, retries.unwrap_or(usually))?;
        }
        if class == FailureClass::UsageLimit {
            let mut info = limit(resets_at);
            info["unifiedWindows"] = json!({
                "five_hour": { "utilization": 1, "resetsAt": resets_at, "status": "rejected" },
            });
            self.event(json!({ "type": "rate_limit_event", "rate_limit_info": info }))?;
        }
        if class == FailureClass::Refusal {
            self.text("I can")?;
            self.event(json!({
                "type": "system", "subtype": "model_refusal_no_fallback", "original_model": MODEL,
                "api_refusal_category": null, "api_refusal_explanation": null, "content": "",
            }))?;
        }
        match class.request(resets_at) {
            Some(failed) => self.failed_request(failed),
            None => self.ran_out(class),
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

    fn ran_out(&mut self, class: FailureClass) -> io::Result<()> {
        let call = self.tool_use("Bash", &json!({ "command": "true" }))?;
        let (subtype, terminal_reason, error) = if class == FailureClass::TurnLimit {
            self.event(tool_result(&call, &Ok(NO_OUTPUT.to_owned())))?;
            let turns = self.totals.stated_turns.unwrap_or(self.totals.turns);
            let error = format!("Reached maximum number of turns ({turns})");
            ("error_max_turns", "max_turns", error)
        } else {
            // A budget that is used up was not free.
            if self.totals.cost <= 0.0 {
                self.totals.cost = 1.0;
            }
            let error = format!("Reached maximum budget (${})", self.totals.cost);
            ("error_max_budget_usd", "budget_exhausted", error)
        };
        if self.plain {
            return self.line(format!("Error: {error}").as_bytes());
        }
        self.result(json!({
            "subtype": subtype, "is_error": true, "terminal_reason": terminal_reason,
            "stop_reason": "tool_use", "errors": [error],
        }))
    }

    fn failed_request(&mut self, failed: FailedRequest) -> io::Result<()> {
        let FailedRequest { error, text, stop_reason, .. } = failed;
        if self.plain {
            return self.line(text.as_bytes());
        }
        let mut message = json!({
            "type": "assistant",
            "message": {
                "id": unique_id(Timestamp::now().as_nanosecond()), "type": "message", "role": "assistant",
                "model": "<synthetic>", "content": [{ "type": "text", "text": text }],
                "stop_reason": stop_reason, "stop_sequence": "",
                "usage": { "input_tokens": 0, "output_tokens": 0 },
            },
            "parent_tool_use_id": null, "error": error, "is_api_error_message": true,
            "timestamp": timestamp(),
        });
        extend(&mut message, failed.details.clone());
        extend(&mut message, failed.in_message);
        self.event(message)?;
        // It is called a success and an error at once, as with the real agent.
        let mut ending = json!({
            "subtype": "success", "is_error": true, "terminal_reason": "api_error",
            "stop_reason": stop_reason, "api_error_status": null, "result": text,
        });
        extend(&mut ending, failed.details);
        extend(&mut ending, failed.in_result);
        self.result(ending)
    }
}

fn limit(resets_at: i64) -> Value {
    json!({
        "status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour",
        "overageStatus": "rejected", "overageDisabledReason": "org_level_disabled",
        "isUsingOverage": false,
    })
}

/// `5am`, `5:30am`: as the agent writes it.
fn hour(second: i64) -> String {
    let moment = Timestamp::from_second(second).unwrap_or_default().to_zoned(TimeZone::UTC);
    let shape = if moment.minute() == 0 { "%-I%P" } else { "%-I:%M%P" };
    moment.strftime(shape).to_string()
}
