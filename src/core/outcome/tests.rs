use super::*;

fn error(error: &str, api_error: &str, status: Option<u16>) -> ApiError {
    ApiError { error: error.into(), api_error: api_error.into(), status }
}

fn good() -> ResultSeen {
    ResultSeen { subtype: "success".into(), text: "fine".into(), ..ResultSeen::default() }
}

fn bad() -> ResultSeen {
    ResultSeen { is_error: true, text: "went wrong".into(), ..good() }
}

fn structured(result: Option<ResultSeen>) -> Seen {
    Seen { structured: true, result, ..Seen::default() }
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
    let plain = Seen { last_words: "bye".into(), ..Seen::default() };
    let with_words = Seen { last_words: "panic!".into(), ..structured(None) };
    let unknown = || Exit::Unknown;
    for (seen, exit, expected) in [
        (structured(Some(good())), Exit::Code(0), Outcome::Completed),
        (structured(Some(good())), Exit::Code(1), none("the agent ended with exit code 1")),
        (structured(Some(good())), Exit::Code(143), killed(15)),
        (structured(Some(good())), Exit::Signal(9), killed(9)),
        (structured(Some(good())), unknown(), none("")),
        (structured(Some(bad())), Exit::Code(0), wrong()),
        (structured(Some(bad())), Exit::Code(1), wrong()),
        (structured(Some(bad())), Exit::Signal(9), wrong()),
        (structured(None), Exit::Code(0), none("the agent ended without a result")),
        (structured(None), Exit::Code(129), killed(1)),
        (structured(None), Exit::Code(130), killed(2)),
        (structured(None), Exit::Code(143), killed(15)),
        (structured(None), Exit::Code(137), none("the agent ended with exit code 137")),
        (structured(None), Exit::Signal(11), killed(11)),
        (with_words.clone(), Exit::Code(0), none("the agent ended without a result: panic!")),
        (with_words.clone(), Exit::Code(2), none("the agent ended with exit code 2: panic!")),
        (with_words, unknown(), none("panic!")),
        (plain.clone(), Exit::Code(0), Outcome::Completed),
        (plain.clone(), Exit::Code(1), none("the agent ended with exit code 1: bye")),
        (plain.clone(), Exit::Code(143), none("the agent ended with exit code 143: bye")),
        (plain.clone(), Exit::Signal(15), killed(15)),
        (plain, unknown(), none("bye")),
    ] {
        assert_eq!(classify(&seen, &exit, None), expected, "{seen:?} {exit:?}");
    }
}

#[test]
fn how_we_ended_it_counts_before_how_it_exited() {
    let retrying =
        Seen { retrying: Some(error("authentication_failed", "", Some(401))), ..structured(None) };
    let login = Outcome::Login { detail: "authentication_failed".into() };
    let (done, went_wrong, silent) =
        (structured(Some(good())), structured(Some(bad())), structured(None));
    for (seen, ended_by, expected) in [
        (&done, EndedBy::Human, Outcome::Completed),
        (&went_wrong, EndedBy::Human, Outcome::EndedByUs),
        (&silent, EndedBy::Human, Outcome::EndedByUs),
        (&Seen::default(), EndedBy::Human, Outcome::EndedByUs),
        (&done, EndedBy::AfterResult, Outcome::Completed),
        (&went_wrong, EndedBy::AfterResult, wrong()),
        (&silent, EndedBy::AfterResult, Outcome::EndedByUs),
        (&retrying, EndedBy::HopelessRetry, login.clone()),
        (&silent, EndedBy::HopelessRetry, login),
        (&went_wrong, EndedBy::HopelessRetry, wrong()),
        (&done, EndedBy::HopelessRetry, Outcome::Completed),
        (&silent, EndedBy::FirstEventTimeout, Outcome::FirstEventTimeout),
        (&silent, EndedBy::IdleTimeout, Outcome::IdleTimeout),
        (&silent, EndedBy::IterationTimeout, Outcome::IterationTimeout),
    ] {
        for exit in [Exit::Code(0), Exit::Code(143), Exit::Signal(9), Exit::Unknown] {
            assert_eq!(classify(seen, &exit, Some(ended_by)), expected, "{ended_by:?} {exit:?}");
        }
    }
}

#[test]
fn what_never_started_has_failed_to_start() {
    let exit = Exit::NotSpawned { error: "no such\nfile".into() };
    let expected = Outcome::SpawnFailed { detail: "no such file".into() };
    for ended_by in [None, Some(EndedBy::Human), Some(EndedBy::FirstEventTimeout)] {
        assert_eq!(classify(&Seen::default(), &exit, ended_by), expected);
    }
}

#[test]
fn an_error_result_says_itself_what_it_is() {
    let of = |subtype: &str, terminal_reason: &str, stop_reason: &str| ResultSeen {
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
            let seen = Seen { api_error, ..structured(Some(result.clone())) };
            assert_eq!(classify(&seen, &Exit::Code(1), None).class(), class, "{result:?}");
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
        let in_the_result = ResultSeen { api_error: api_error.clone(), ..bad() };
        let beside_it = Seen { api_error: Some(api_error.clone()), ..structured(Some(bad())) };
        for seen in [structured(Some(in_the_result)), beside_it] {
            assert_eq!(classify(&seen, &Exit::Code(1), None).class(), class, "{api_error:?}");
        }
        // The same error on the way to a good end is none.
        let recovered = Seen {
            retrying: Some(api_error.clone()),
            api_error: Some(api_error),
            ..structured(Some(good()))
        };
        assert_eq!(classify(&recovered, &Exit::Code(0), None), Outcome::Completed);
    }
}

#[test]
fn a_usage_limit_knows_its_end_when_the_service_said_it() {
    let api_error = Some(error("rate_limit", "usage_limit_reached", Some(429)));
    for limit_resets_at in [Some(1_794_805_200), None] {
        let seen =
            Seen { api_error: api_error.clone(), limit_resets_at, ..structured(Some(bad())) };
        let expected =
            Outcome::UsageLimit { resets_at: limit_resets_at, detail: "went wrong".into() };
        assert_eq!(classify(&seen, &Exit::Code(1), None), expected);
    }
}

#[test]
fn details_are_one_visible_line_of_bounded_length() {
    let text = format!("a\n\x1b[2J{}", "x".repeat(2 * MAX_DETAIL));
    let seen = structured(Some(ResultSeen { text, ..bad() }));
    let Outcome::AgentError { detail } = classify(&seen, &Exit::Code(1), None) else {
        panic!("another class")
    };
    assert!(detail.starts_with("a \\x1b[2Jxxx") && detail.ends_with('…'), "{detail}");
    assert_eq!(detail.chars().count(), MAX_DETAIL);
}
