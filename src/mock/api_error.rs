//! Requests that failed for good: the message the agent makes up, and the result that repeats it.
//!
//! The values are copies of recordings of Claude Code 2.1.325. They must change
//! only when the real agent does, since the driver tells its failures apart by them.

use std::io::{self, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use super::stream::{Stream, timestamp};

/// The failures the agent tries again before it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retried {
    RateLimit,
    Overloaded,
    Server,
    Connection,
    Login,
}

/// The fields in which one failed request differs from another.
pub struct ApiError {
    pub text: &'static str,
    pub error: &'static str,
    pub status: Option<u16>,
    pub kind: Option<&'static str>,
    pub api_error: Option<&'static str>,
    pub terminal_reason: &'static str,
}

const ANY: ApiError = ApiError {
    text: "",
    error: "",
    status: None,
    kind: None,
    api_error: None,
    terminal_reason: "api_error",
};

pub const RATE_LIMIT: ApiError = ApiError {
    text: "API Error: Request rejected (429) · This request would exceed your organization's rate limit of 50 requests per minute.",
    error: "rate_limit",
    status: Some(429),
    kind: Some("rate_limit_error"),
    ..ANY
};

pub const OVERLOADED: ApiError = ApiError {
    text: "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.",
    error: "server_error",
    status: Some(529),
    kind: Some("overloaded_error"),
    ..ANY
};

pub const SERVER: ApiError = ApiError {
    text: "API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment.",
    error: "server_error",
    status: Some(500),
    kind: Some("api_error"),
    ..ANY
};

pub const CONNECTION: ApiError = ApiError {
    text: "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)",
    error: "server_error",
    api_error: Some("connection_failed"),
    ..ANY
};

pub const LOGIN: ApiError = ApiError {
    text: "Invalid API key · Fix external API key",
    error: "authentication_failed",
    status: Some(401),
    kind: Some("authentication_error"),
    ..ANY
};

pub const BILLING: ApiError = ApiError {
    text: "Credit balance is too low",
    error: "billing_error",
    status: Some(400),
    kind: Some("invalid_request_error"),
    ..ANY
};

pub const PROMPT_TOO_LONG: ApiError = ApiError {
    text: "Prompt is too long · the request is ~1234567 tokens (limit 1000000)",
    error: "invalid_request",
    status: Some(400),
    kind: Some("invalid_request_error"),
    terminal_reason: "prompt_too_long",
    ..ANY
};

pub const MODEL_NOT_FOUND: ApiError = ApiError {
    text: "There's an issue with the selected model (mock). It may not exist or you may not have access to it. Run --model to pick a different model.",
    error: "model_not_found",
    status: Some(404),
    kind: Some("not_found_error"),
    ..ANY
};

/// An error that is none of the others: an answer longer than answers may be.
pub const OUTPUT_LIMIT: ApiError = ApiError {
    text: "API Error: Claude's response exceeded the 128000 output token maximum. To configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable.",
    error: "max_output_tokens",
    api_error: Some("max_output_tokens"),
    ..ANY
};

impl ApiError {
    /// The fields the message and the result have in common.
    fn details(&self) -> Value {
        let mut details = json!({});
        insert(&mut details, "api_error_status", self.status);
        insert(&mut details, "api_error_type", self.kind);
        insert(&mut details, "api_error", self.api_error);
        details
    }
}

impl<W: Write> Stream<W> {
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

    pub fn api_error(&mut self, failed: &ApiError) -> io::Result<()> {
        self.synthetic(failed.text, failed.error, "stop_sequence", failed.details())?;
        self.failed_result(failed.text, failed.terminal_reason, failed.details())
    }

    /// A message that did not come from the model.
    pub fn synthetic(
        &mut self,
        text: &str,
        error: &str,
        stop_reason: &str,
        details: Value,
    ) -> io::Result<()> {
        if self.is_plain() {
            return self.line(text.as_bytes());
        }
        let mut event = json!({
            "type": "assistant",
            "message": {
                "id": uuid::Uuid::now_v7().to_string(), "type": "message", "role": "assistant",
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
        details: Value,
    ) -> io::Result<()> {
        let mut ending = json!({
            "subtype": "success", "is_error": true, "terminal_reason": terminal_reason,
            "stop_reason": "stop_sequence", "api_error_status": null, "result": text,
        });
        extend(&mut ending, details);
        self.result(ending)
    }
}

fn insert(event: &mut Value, name: &str, value: Option<impl serde::Serialize>) {
    extend(event, value.map_or_else(|| json!({}), |value| json!({ name: value })));
}

fn extend(event: &mut Value, more: Value) {
    if let (Some(fields), Value::Object(more)) = (event.as_object_mut(), more) {
        fields.extend(more);
    }
}
