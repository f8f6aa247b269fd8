use super::*;
use crate::agent::event::ProcessEnd;
use crate::model::{EndedBy, Exit};

fn error(error: &str, api_error: &str, status: Option<u16>) -> ApiError {
    ApiError { error: error.into(), api_error: api_error.into(), status }
}

fn good() -> TurnResult {
    TurnResult { subtype: "success".into(), text: "fine".into(), ..TurnResult::default() }
}

fn bad() -> TurnResult {
    TurnResult { is_error: true, text: "went wrong".into(), ..good() }
}

fn after(result: TurnResult) -> ClaudeDecoder {
    ClaudeDecoder { result: Some(result), ..ClaudeDecoder::default() }
}

fn end(exit: &Exit, ended_by: Option<EndedBy>) -> ProcessEnd<'_> {
    ProcessEnd { exit, ended_by, structured: true, last_words: "" }
}

fn failed(decoder: &ClaudeDecoder) -> Outcome {
    end(&Exit::Code(1), None).outcome(decoder)
}

fn killed(signal: i32) -> Outcome {
    Outcome::KilledBySomeoneElse { signal }
}

fn none(detail: &str) -> Outcome {
    Outcome::NoResult { detail: detail.into() }
}

fn wrong() -> Outcome {
    Outcome::AgentError { detail: "went wrong".into() }
}

#[test]
fn a_result_and_an_exit_make_a_class_together() {
    let (done, went_wrong, silent) = (after(good()), after(bad()), ClaudeDecoder::default());
    let words = "panic!";
    for (decoder, structured, exit, last_words, expected) in [
        (&done, true, Exit::Code(0), "", Outcome::Completed),
        (&done, true, Exit::Code(1), "", none("the agent ended with exit code 1")),
        (&done, true, Exit::Code(143), "", killed(15)),
        (&done, true, Exit::Signal(9), "", killed(9)),
        (&done, true, Exit::Unknown, "", none("")),
        (&went_wrong, true, Exit::Code(0), "", wrong()),
        (&went_wrong, true, Exit::Code(1), "", wrong()),
        (&went_wrong, true, Exit::Signal(9), "", wrong()),
        (&silent, true, Exit::Code(0), "", none("the agent ended without a result")),
        (&silent, true, Exit::Code(129), "", killed(1)),
        (&silent, true, Exit::Code(130), "", killed(2)),
        (&silent, true, Exit::Code(143), "", killed(15)),
        (&silent, true, Exit::Code(137), "", none("the agent ended with exit code 137")),
        (&silent, true, Exit::Signal(11), "", killed(11)),
        (&silent, true, Exit::Code(0), words, none("the agent ended without a result: panic!")),
        (&silent, true, Exit::Code(2), words, none("the agent ended with exit code 2: panic!")),
        (&silent, true, Exit::Unknown, words, none("panic!")),
        (&silent, false, Exit::Code(0), "bye", Outcome::Completed),
        (&silent, false, Exit::Code(1), "bye", none("the agent ended with exit code 1: bye")),
        (&silent, false, Exit::Code(143), "bye", none("the agent ended with exit code 143: bye")),
        (&silent, false, Exit::Signal(15), "bye", killed(15)),
        (&silent, false, Exit::Unknown, "bye", none("bye")),
    ] {
        let found = ProcessEnd { structured, last_words, ..end(&exit, None) }.outcome(decoder);
        assert_eq!(found, expected, "{decoder:?} {exit:?}");
    }
}

#[test]
fn how_we_ended_it_counts_before_how_it_exited() {
    let (done, went_wrong, silent) = (after(good()), after(bad()), ClaudeDecoder::default());
    let refused = ClaudeDecoder { refused: 2, ..ClaudeDecoder::default() };
    let login = Outcome::Login { detail: LOGIN_REFUSED.into() };
    for (decoder, ended_by, expected) in [
        (&done, EndedBy::Human, Outcome::Completed),
        (&went_wrong, EndedBy::Human, Outcome::EndedByUs),
        (&silent, EndedBy::Human, Outcome::EndedByUs),
        (&done, EndedBy::Stuck, Outcome::Completed),
        (&went_wrong, EndedBy::Stuck, Outcome::Stuck),
        (&silent, EndedBy::Stuck, Outcome::Stuck),
        (&done, EndedBy::AfterResult, Outcome::Completed),
        (&went_wrong, EndedBy::AfterResult, wrong()),
        (&silent, EndedBy::AfterResult, Outcome::EndedByUs),
        (&refused, EndedBy::HopelessRetry, login),
        (&silent, EndedBy::HopelessRetry, Outcome::EndedByUs),
        (&went_wrong, EndedBy::HopelessRetry, wrong()),
        (&done, EndedBy::HopelessRetry, Outcome::Completed),
        (&done, EndedBy::FirstEventTimeout, Outcome::FirstEventTimeout),
        (&silent, EndedBy::IdleTimeout, Outcome::IdleTimeout),
        (&silent, EndedBy::IterationTimeout, Outcome::IterationTimeout),
    ] {
        for exit in [Exit::Code(0), Exit::Code(143), Exit::Signal(9), Exit::Unknown] {
            assert_eq!(
                end(&exit, Some(ended_by)).outcome(decoder),
                expected,
                "{ended_by:?} {exit:?}"
            );
        }
    }
}

#[test]
fn what_never_started_has_failed_to_start() {
    let exit = Exit::NotSpawned { error: "no such\nfile".into() };
    let expected = Outcome::SpawnFailed { detail: "no such file".into() };
    for ended_by in [None, Some(EndedBy::Human), Some(EndedBy::FirstEventTimeout)] {
        assert_eq!(end(&exit, ended_by).outcome(&ClaudeDecoder::default()), expected);
    }
}

#[test]
fn an_error_result_says_itself_what_it_is() {
    let of = |subtype: &str, terminal_reason: &str, stop_reason: &str| TurnResult {
        subtype: subtype.into(),
        terminal_reason: terminal_reason.into(),
        stop_reason: stop_reason.into(),
        ..bad()
    };
    for (result, class) in [
        (of("error_max_turns", "max_turns", ""), "turn_limit"),
        (of("error_max_budget_usd", "budget_exhausted", ""), "iteration_budget"),
        (of("success", "prompt_too_long", ""), "prompt_too_long"),
        (of("error_during_execution", "aborted_streaming", ""), "killed_by_someone_else"),
        (of("error_during_execution", "aborted_tools", ""), "killed_by_someone_else"),
        (of("success", "api_error", "refusal"), "refusal"),
    ] {
        // An API error beside it does not change it.
        for api_error in [None, Some(error("billing_error", "", Some(400)))] {
            let decoder = ClaudeDecoder { api_error, ..after(result.clone()) };
            assert_eq!(failed(&decoder).class(), class, "{result:?}");
        }
    }
}

#[test]
fn an_api_error_has_its_class_wherever_it_was_told() {
    for (api_error, class) in [
        (error("rate_limit", "usage_limit_reached", Some(429)), "usage_limit"),
        (error("rate_limit", "", Some(429)), "overloaded"),
        (error("", "", Some(429)), "overloaded"),
        (error("overloaded", "", Some(529)), "overloaded"),
        (error("server_error", "", Some(529)), "overloaded"),
        (error("server_error", "", Some(500)), "server_error"),
        (error("", "", Some(503)), "server_error"),
        (error("server_error", "connection_failed", None), "connection"),
        (error("server_error", "", None), "connection"),
        (error("unknown", "", None), "connection"),
        (error("authentication_failed", "", Some(401)), "login"),
        (error("authentication_failed", "", None), "login"),
        (error("", "", Some(403)), "login"),
        (error("billing_error", "", Some(400)), "billing"),
        (error("", "", Some(402)), "billing"),
        (error("model_not_found", "", Some(404)), "model_not_found"),
        (error("", "", Some(404)), "model_not_found"),
        (error("invalid_request", "", Some(400)), "agent_error"),
        (error("", "", None), "agent_error"),
    ] {
        let in_the_result = TurnResult { api_error: api_error.clone(), ..bad() };
        let beside_it = ClaudeDecoder { api_error: Some(api_error.clone()), ..after(bad()) };
        for decoder in [after(in_the_result), beside_it] {
            assert_eq!(failed(&decoder).class(), class, "{api_error:?}");
        }
        // The same error on the way to a good end is none.
        let recovered = ClaudeDecoder { api_error: Some(api_error), ..after(good()) };
        assert_eq!(end(&Exit::Code(0), None).outcome(&recovered), Outcome::Completed);
    }
}

#[test]
fn a_usage_limit_knows_its_end_when_the_service_said_it() {
    let api_error = Some(error("rate_limit", "usage_limit_reached", Some(429)));
    for limit_resets_at in [Some(1_794_805_200), None] {
        let api_error = api_error.clone();
        let decoder = ClaudeDecoder { api_error, limit_resets_at, ..after(bad()) };
        let expected =
            Outcome::UsageLimit { resets_at: limit_resets_at, detail: "went wrong".into() };
        assert_eq!(failed(&decoder), expected);
    }
}

#[test]
fn only_a_refusal_says_until_when_the_service_refuses() {
    for (status, until) in [("allowed", None), ("allowed_warning", None), ("rejected", Some(7))] {
        let mut decoder = ClaudeDecoder::default();
        let info = format!(r#"{{"status":"{status}","resetsAt":7}}"#);
        let line = format!(r#"{{"type":"rate_limit_event","rate_limit_info":{info}}}"#);
        assert!(decoder.line(&line, &mut |_| {}));
        assert_eq!(decoder.limit_resets_at, until, "{status}");
    }
}

#[test]
fn details_are_one_visible_line_of_bounded_length() {
    let text = format!("a\n\x1b[2J{}", "x".repeat(800));
    let Outcome::AgentError { detail } = failed(&after(TurnResult { text, ..bad() })) else {
        panic!("another class")
    };
    assert!(detail.starts_with("a \\x1b[2Jxxx") && detail.ends_with('…'), "{detail}");
    assert_eq!(detail.chars().count(), 400);
}
