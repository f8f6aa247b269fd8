//! Each failure against the fields that recordings of Claude Code 2.1.325 show.

use serde_json::{Value, json};

use super::super::MockEnd;
use super::{Played, stage};

fn failed(class: &str) -> Played {
    let played = stage().steps(&format!("{{ fail = \"{class}\" }}"));
    assert_eq!(played.ending, MockEnd::Exit(1));
    played
}

/// The named fields of `event`, without absent ones.
fn fields(event: &Value, names: &[&str]) -> Value {
    let present = names.iter().filter_map(|&n| event.get(n).map(|v| (n.to_owned(), v.clone())));
    Value::Object(present.collect())
}

fn result_fields(played: &Played) -> Value {
    let names = [
        "subtype",
        "is_error",
        "terminal_reason",
        "stop_reason",
        "api_error_status",
        "api_error_type",
        "api_error",
        "errors",
    ];
    fields(&played.result(), &names)
}

fn synthetic(played: &Played) -> Value {
    let is_synthetic = |e: &Value| e["message"]["model"] == "<synthetic>";
    played.events().into_iter().find(is_synthetic).unwrap()
}

/// class | status | api_error_type | api_error | error | terminal_reason | start of the text
const API_ERRORS: &str = "\
usage-limit|429|rate_limit_error|usage_limit_reached|rate_limit|api_error|You've hit your 5-hour limit · resets
rate-limit|429|rate_limit_error||rate_limit|api_error|API Error: Request rejected (429) ·
overloaded|529|overloaded_error||server_error|api_error|API Error: 529 Overloaded.
server|500|api_error||server_error|api_error|API Error: 500 Internal server error.
connection|||connection_failed|server_error|api_error|API Error: Connection refused
login|401|authentication_error||authentication_failed|api_error|Invalid API key · Fix external API key
billing|400|invalid_request_error||billing_error|api_error|Credit balance is too low
prompt-too-long|400|invalid_request_error||invalid_request|prompt_too_long|Prompt is too long ·
model-not-found|404|not_found_error||model_not_found|api_error|There's an issue with the selected model (
error|||max_output_tokens|max_output_tokens|api_error|API Error: Claude's response exceeded the";

#[test]
fn api_errors_look_like_the_real_ones() {
    for row in API_ERRORS.lines() {
        let cells: Vec<&str> = row.split('|').collect();
        let [class, status, kind, api_error, error, terminal_reason, text] = cells[..] else {
            panic!("not a row: {row}");
        };
        let played = failed(class);
        let (message, result) = (synthetic(&played), played.result());
        for (name, expected) in [
            ("api_error_status", status.parse().ok().map(|code: u16| json!(code))),
            ("api_error_type", Some(json!(kind)).filter(|_| !kind.is_empty())),
            ("api_error", Some(json!(api_error)).filter(|_| !api_error.is_empty())),
        ] {
            assert_eq!(message.get(name), expected.as_ref(), "{class}");
            assert_eq!(result.get(name).filter(|v| !v.is_null()), expected.as_ref(), "{class}");
        }
        assert_eq!(message["error"], error, "{class}");
        assert_eq!(message["is_api_error_message"], true, "{class}");
        let names = ["subtype", "is_error", "stop_reason", "terminal_reason"];
        let expected = json!({
            "subtype": "success", "is_error": true, "stop_reason": "stop_sequence",
            "terminal_reason": terminal_reason,
        });
        assert_eq!(fields(&result, &names), expected, "{class}");
        assert!(result["result"].as_str().unwrap().starts_with(text), "{class}");
        assert_eq!(result["result"], message["message"]["content"][0]["text"], "{class}");
        assert_eq!(result["modelUsage"], json!({}), "{class}");
    }
}

#[test]
fn only_some_failures_are_retried_first() {
    for (class, retries, status, error) in [
        ("rate-limit", 2, json!(429), "rate_limit"),
        ("overloaded", 2, json!(529), "overloaded"),
        ("server", 2, json!(500), "server_error"),
        ("connection", 2, json!(null), "unknown"),
        ("login", 1, json!(401), "authentication_failed"),
    ] {
        let played = failed(class);
        let events = played.events();
        let tried: Vec<&Value> = events.iter().filter(|e| e["subtype"] == "api_retry").collect();
        assert_eq!(tried.len(), retries, "{class}");
        let names = ["attempt", "max_retries", "error_status", "error"];
        let expected = json!({ "attempt": retries, "max_retries": retries, "error_status": status, "error": error });
        assert_eq!(fields(tried[retries - 1], &names), expected, "{class}");
        assert!(tried[0]["retry_delay_ms"].as_u64().unwrap() >= 500, "{class}");
    }
    for class in ["usage-limit", "billing", "prompt-too-long", "model-not-found", "error"] {
        assert!(!failed(class).output.contains("api_retry"), "{class}");
    }
    let often = stage().steps(r#"{ fail = "overloaded", retries = 10 }"#);
    assert_eq!(often.kinds().iter().filter(|k| *k == "system/api_retry").count(), 10);
}

#[test]
fn a_usage_limit_has_its_end() {
    let stage = stage();
    let before = jiff::Timestamp::now().as_second();
    let played = stage.steps(r#"{ fail = "usage-limit", resets_in = "2h" }"#);
    assert_eq!(played.kinds(), ["system/init", "rate_limit_event", "assistant", "result/success"]);
    let info = played.events()[1]["rate_limit_info"].clone();
    let wait = info["resetsAt"].as_i64().unwrap() - before;
    assert!((7200..7210).contains(&wait), "{wait}");
    let expected =
        json!({ "status": "rejected", "rateLimitType": "five_hour", "isUsingOverage": false });
    assert_eq!(fields(&info, &["status", "rateLimitType", "isUsingOverage"]), expected);
    assert_eq!(info["unifiedWindows"]["five_hour"]["resetsAt"], info["resetsAt"]);
    let told = synthetic(&played)["api_error_params"]["rate_limit_info"]["resetsAt"].clone();
    assert_eq!(told, info["resetsAt"]);
    assert!(played.result().get("api_error_params").is_none());
}

#[test]
fn limits_of_the_caller_end_without_a_message() {
    for (class, subtype, terminal_reason, error) in [
        ("turn-limit", "error_max_turns", "max_turns", "Reached maximum number of turns (1)"),
        ("budget", "error_max_budget_usd", "budget_exhausted", "Reached maximum budget ($1)"),
    ] {
        let played = failed(class);
        let expected = json!({
            "subtype": subtype, "is_error": true, "terminal_reason": terminal_reason,
            "stop_reason": "tool_use", "errors": [error],
        });
        assert_eq!(result_fields(&played), expected);
        assert!(played.result().get("result").is_none(), "{class}");
        assert!(!played.output.contains("<synthetic>"), "{class}");
    }
    let cost = stage().steps(r#"{ cost = 2.5 }, { fail = "budget" }"#).result();
    assert_eq!(
        (&cost["total_cost_usd"], &cost["errors"]),
        (&json!(2.5), &json!(["Reached maximum budget ($2.5)"]))
    );
}

#[test]
fn a_refusal_has_no_status_and_its_own_stop_reason() {
    let played = failed("refusal");
    let expected = json!({
        "subtype": "success", "is_error": true, "terminal_reason": "api_error",
        "stop_reason": "refusal", "api_error_status": null,
    });
    assert_eq!(result_fields(&played), expected);
    assert!(played.kinds().contains(&"system/model_refusal_no_fallback".to_owned()));
    let message = synthetic(&played);
    assert_eq!(
        (&message["error"], &message["message"]["stop_reason"]),
        (&json!("invalid_request"), &json!("refusal"))
    );
    assert!(message.get("api_error_status").is_none());
}

#[test]
fn plain_output_has_only_the_error_text() {
    let played = stage().play("[default]\nplain = true\nsteps = [{ fail = \"billing\" }]");
    assert_eq!(
        (played.ending, played.output.as_str()),
        (MockEnd::Exit(1), "Credit balance is too low\n")
    );
}
