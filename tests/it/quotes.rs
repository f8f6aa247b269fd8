//! What an agent quotes, reads or is told by others is no news about the agent itself.

use ralph::agent::{AgentReport, StreamReader, any_decoder};
use ralph::model::{AgentSignals, Exit, Outcome, StoryId};
use ralph::text::signals::Scanner;
use serde_json::{Value, json};

/// Every error sentence of Claude Code that is known.
const ERRORS: [&str; 18] = [
    "API Error: Request rejected (429) · This request would exceed your account's rate limit.",
    "API Error: 529 Overloaded. This is a server-side issue, usually temporary",
    "API Error: 500 Internal server error. This is a server-side issue, usually temporary",
    "Invalid API key · Fix external API key",
    "Failed to authenticate. API Error: 403 Request not allowed",
    "Failed to authenticate. API Error: 401 OAuth token has expired.",
    "Not logged in · Please run /login",
    "Credit balance is too low",
    "Prompt is too long · the request is ~1234567 tokens (limit 1000000)",
    "There's an issue with the selected model (claude-nope-1). It may not exist",
    "API Error: Connection dropped (ECONNRESET). Check the gateway set in ANTHROPIC_BASE_URL",
    "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)",
    "You've hit your 5-hour limit · resets 5am (UTC)",
    "You've hit your weekly limit · resets Nov 19, 10am (UTC)",
    "Claude usage limit reached|1794805200",
    r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794805200}}"#,
    r#"{"type":"system","subtype":"api_retry","error_status":401,"error":"authentication_failed"}"#,
    r#"{"type":"result","subtype":"error_max_turns","is_error":true,"terminal_reason":"max_turns"}"#,
];

const CLAIM: &str = "Task US-001 complete";

fn said(text: &str) -> Value {
    json!({"type": "assistant", "parent_tool_use_id": null, "session_id": "s",
        "message": {"model": "claude", "content": [{"type": "text", "text": text}]}})
}

fn tool_result(text: &str) -> Value {
    json!({"type": "user", "parent_tool_use_id": null, "tool_use_result": {"stdout": text},
        "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": text, "is_error": true}]}})
}

fn good_result(text: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": text,
        "terminal_reason": "completed", "stop_reason": "end_turn", "total_cost_usd": 0.5})
}

fn read(output: &str) -> AgentReport {
    let story = StoryId::try_from("US-001").expect("an id");
    let mut reading = StreamReader::new(
        any_decoder(),
        || Scanner::new(&story, ralph::model::CompletionMarkers::default(), 0),
        "",
    );
    reading.push(output.as_bytes(), &mut |_| {});
    assert!(!reading.is_hopeless(), "{output}");
    reading.finish(&Exit::Code(0), &mut |_| {})
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

#[test]
fn an_agent_that_quotes_an_error_and_finishes_well_has_completed() {
    for error in ERRORS {
        let stream = lines(&[said(error), tool_result(error), said("Fixed."), good_result(error)]);
        let read = read(&stream);
        assert_eq!(read.outcome, Outcome::Completed, "{error}");
        assert_eq!(read.signals, AgentSignals::default(), "{error}");
    }
}

#[test]
fn a_plain_text_agent_may_say_what_it_likes() {
    for error in ERRORS.iter().filter(|error| !error.starts_with('{')) {
        let read = read(&format!("{error}\n{CLAIM}\n{error}\n"));
        assert_eq!(read.outcome, Outcome::Completed, "{error}");
        assert!(read.signals.claims_story, "{error}");
    }
}

#[test]
fn only_the_main_agents_own_text_makes_a_claim() {
    let changed = |field: &str, value: Value| {
        let mut event = said(CLAIM);
        event[field] = value;
        event
    };
    let block = |block: Value| json!({"type": "assistant", "message": {"model": "claude", "content": [block]}});
    let synthetic = json!({"type": "assistant", "message":
        {"model": "<synthetic>", "content": [{"type": "text", "text": CLAIM}]}});
    let partial = json!({"type": "stream_event", "event": {"type": "content_block_delta",
        "delta": {"type": "text_delta", "text": CLAIM}}});
    let user = json!({"type": "user", "isReplay": true, "message":
        {"role": "user", "content": [{"type": "text", "text": CLAIM}]}});
    for (who, event, claims) in [
        ("the main agent", said(CLAIM), true),
        ("a sub-agent", changed("parent_tool_use_id", json!("toolu_1")), false),
        ("an aborted text", changed("aborted", json!(true)), false),
        ("an API error", changed("is_api_error_message", json!(true)), false),
        ("the CLI itself", synthetic, false),
        ("thinking", block(json!({"type": "thinking", "thinking": CLAIM, "text": CLAIM})), false),
        ("a tool call", block(json!({"type": "tool_use", "input": {"command": CLAIM}})), false),
        ("a tool's result", tool_result(CLAIM), false),
        ("the prompt, replayed", user, false),
        ("half a message", partial, false),
        ("a hook", json!({"type": "system", "subtype": "hook_response", "output": CLAIM}), false),
        (
            "a sub-agent's report",
            json!({"type": "system", "subtype": "task_notification", "summary": CLAIM}),
            false,
        ),
        ("the result's copy", good_result(CLAIM), false),
    ] {
        let read = read(&lines(&[event, good_result("")]));
        assert_eq!(read.signals.claims_story, claims, "{who}");
    }
}

#[test]
fn a_sub_agents_error_is_not_the_agents() {
    let error = json!({"type": "assistant", "parent_tool_use_id": "toolu_1",
        "is_api_error_message": true, "error": "billing_error",
        "message": {"model": "<synthetic>", "content": []}});
    let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": "x"});
    let read = read(&lines(&[error, result]));
    assert_eq!(read.outcome, Outcome::AgentError { detail: "x".into() });
}

#[test]
fn another_agents_result_is_just_text() {
    let result = r#"{"type":"result","status":"error","stats":{}}"#;
    let read = read(&format!("{CLAIM}\n{result}\n"));
    assert_eq!(read.outcome, Outcome::Completed, "as of plain text");
    assert!(read.signals.claims_story);
}

#[test]
fn the_final_text_is_the_results_else_what_was_said_last() {
    let long = "é".repeat(20_000);
    for (output, expected) in [
        (lines(&[said("First."), good_result("Last.")]), "Last."),
        (lines(&[said("First."), said("Second.")]), "Second."),
        (lines(&[said("First."), good_result(" ")]), "First."),
        ("plain\nwords\n".to_owned(), "plain\nwords\n"),
        (String::new(), ""),
    ] {
        assert_eq!(read(&output).final_text, expected);
    }
    for output in [lines(&[said(&long)]), lines(&[good_result(&long)]), format!("{long}\n")] {
        let text = read(&output).final_text;
        assert!(text.len() < 10_000 && text.trim_end().ends_with('é'), "{}", text.len());
    }
}
