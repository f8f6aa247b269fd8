use serde_json::{Value, json};

use super::*;
use crate::agent::AgentEvent;
use crate::agent::StreamReader;
use crate::model::{EndedBy, Exit, Outcome, StepKind, StoryId};
use crate::text::signals::Scanner;

/// The arguments after those that are always the same.
fn rest(settings: &AgentSettings) -> Vec<String> {
    let mut args = args(settings, &[&Gate::shell("cargo test")], None);
    let rest = args.split_off(ALWAYS.len());
    assert_eq!(args, ALWAYS);
    rest
}

#[test]
fn the_chosen_mode_is_remembered_for_one_agent_under_the_first_key() {
    let claude = Claude { settings: AgentSettings::default() };
    assert_eq!(claude.permission_key(), "permission_mode");
    let other = crate::agent::Plain { words: vec!["/bin/other".to_owned()] };
    assert_eq!(other.permission_key(), "permission_mode.other");
}

#[test]
fn settings_become_arguments() {
    let settings = AgentSettings {
        model: Some("opus".into()),
        max_turns: Some(40),
        allowed_tools: vec!["Bash(cargo test:*)".into(), "Edit".into()],
        strict_mcp_config: true,
        args: vec!["--debug".into()],
        ..AgentSettings::default()
    };
    assert_eq!(
        rest(&settings),
        [
            "--model=opus",
            "--max-turns=40",
            "--allowedTools",
            "Bash(cargo test:*)",
            "Edit",
            "--strict-mcp-config",
            "--debug"
        ]
    );
}

#[test]
fn a_mode_is_not_asked_for_if_the_arguments_choose_one() {
    for (args, has_modes) in [
        (&[][..], true),
        (&["--debug", "--allowedTools", "Bash"], true),
        (&["--permission-mode", "plan"], false),
        (&["--permission-mode=plan"], false),
        (&["--dangerously-skip-permissions"], false),
    ] {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let settings = AgentSettings { args: args.clone(), ..AgentSettings::default() };
        assert_eq!(Claude { settings }.permission_modes().is_some(), has_modes, "{args:?}");
    }
}

#[test]
fn the_smaller_of_setting_and_allowance_is_the_budget() {
    let budget = |max_budget_usd: Option<f64>, rest: Option<Usd>| {
        let settings = AgentSettings { max_budget_usd, ..AgentSettings::default() };
        args(&settings, &[], rest).into_iter().find(|arg| arg.contains("budget"))
    };
    let said = |dollars: &str| Some(format!("--max-budget-usd={dollars}"));
    assert_eq!(budget(None, None), None);
    assert_eq!(budget(Some(2.5), None), said("2.5"));
    assert_eq!(budget(None, Some(Usd::from_micros(1))), said("0.000001"));
    assert_eq!(budget(None, Some(Usd::from_cents(2500))), said("25"));
    assert_eq!(budget(Some(2.0), Some(Usd::from_cents(300))), said("2"));
    assert_eq!(budget(Some(4.0), Some(Usd::from_cents(300))), said("3"));
}

#[test]
fn safe_tools_and_gates_are_listed_for_the_modes_that_need_a_list() {
    for &mode in PERMISSION_MODES.modes {
        let settings = AgentSettings {
            permission_mode: Some(mode),
            allowed_tools: vec!["Bash(npm run lint:*)".into()],
            ..AgentSettings::default()
        };
        let mode_option = format!("--permission-mode={}", mode.name);
        let mut expected = vec![mode_option.as_str(), "--allowedTools"];
        if matches!(mode, ACCEPT_EDITS | DONT_ASK) {
            expected.extend(["Edit(./**)", "Bash(git status:*)", "Bash(ls:*)", "Bash(cat:*)"]);
            expected.extend(["Bash(head:*)", "Bash(tail:*)", "Bash(wc:*)", "Bash(grep:*)"]);
            expected.push("Bash(mkdir:*)");
            expected.push("Bash(cargo test)");
        }
        expected.push("Bash(npm run lint:*)");
        assert_eq!(rest(&settings), expected);
    }
}

#[test]
fn a_gate_is_allowed_word_for_word() {
    let program = |words: &[&str]| Gate {
        run: GateCommand::Program(words.iter().map(|&word| word.to_owned()).collect()),
        ..Gate::shell("")
    };
    for (gate, expected) in [
        (Gate::shell(" cargo test && make "), Some("Bash(cargo test && make)")),
        (program(&["npm", "run", "lint"]), Some("Bash(npm run lint)")),
        (program(&["sh", "-c", "exit 0"]), Some("Bash(sh -c 'exit 0')")),
        (Gate::shell("prettier --check src/*.js"), None),
        (Gate::shell(r"grep \d f"), None),
    ] {
        assert_eq!(rule(&gate).as_deref(), expected);
    }
}

fn with(event: &Value, fields: &Value) -> Value {
    let fields = [event, fields].map(|object| object.as_object().unwrap().clone());
    Value::Object(fields.into_iter().flatten().collect())
}

fn good() -> Value {
    json!({ "type": "result", "subtype": "success", "is_error": false, "result": "fine" })
}

fn bad() -> Value {
    with(&good(), &json!({ "is_error": true, "result": "went wrong" }))
}

/// An error that the CLI puts into the conversation.
fn shown(error: &Value) -> Value {
    let message = json!({ "model": "<synthetic>", "content": [] });
    with(&json!({ "type": "assistant", "message": message }), error)
}

fn retry(error: &str) -> Value {
    json!({ "type": "system", "subtype": "api_retry", "error": error })
}

/// An agent that prints these events, is ordered to end, and prints others.
fn ended(
    before: &[Value],
    order: Option<EndedBy>,
    after: &[Value],
    (exit, last_words): (&Exit, &str),
) -> Outcome {
    let story = StoryId::try_from("US-001").unwrap();
    let scanner = || Scanner::new(&story, crate::model::CompletionMarkers::default(), 0);
    let mut reader = StreamReader::new(Box::<ClaudeDecoder>::default(), scanner, "");
    let print = |reader: &mut StreamReader, events: &[Value]| {
        events.iter().for_each(|event| reader.push(format!("{event}\n").as_bytes(), &mut |_| {}));
    };
    print(&mut reader, before);
    assert!(order.is_none_or(|why| reader.end(why)));
    print(&mut reader, after);
    reader.push_stderr(last_words.as_bytes(), &mut |_| {});
    reader.finish(exit, &mut |_| {}).outcome
}

fn outcome(events: &[Value], exit: &Exit, order: Option<EndedBy>, last_words: &str) -> Outcome {
    ended(events, order, &[], (exit, last_words))
}

fn failed(events: &[Value]) -> Outcome {
    outcome(events, &Exit::Code(1), None, "")
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
fn result_and_exit_decide_the_class_together() {
    let (done, went_wrong) = ([good()], [bad()]);
    let (silent, plain) = ([json!({ "type": "user" })], [Value::Null; 0]);
    for (events, exit, last_words, expected) in [
        (&done[..], Exit::Code(0), "", Outcome::Completed),
        (&done, Exit::Code(1), "", none("the agent ended with exit code 1")),
        (&done, Exit::Code(143), "", killed(15)),
        (&done, Exit::Signal(9), "", killed(9)),
        (&done, Exit::Unknown, "", none("")),
        (&went_wrong, Exit::Code(0), "", wrong()),
        (&went_wrong, Exit::Code(1), "", wrong()),
        (&went_wrong, Exit::Signal(9), "", wrong()),
        (&silent, Exit::Code(0), "", none("the agent ended without a result")),
        (&silent, Exit::Code(129), "", killed(1)),
        (&silent, Exit::Code(130), "", killed(2)),
        (&silent, Exit::Code(143), "", killed(15)),
        (&silent, Exit::Code(137), "", none("the agent ended with exit code 137")),
        (&silent, Exit::Signal(11), "", killed(11)),
        (&silent, Exit::Code(0), "panic!", none("the agent ended without a result: panic!")),
        (&silent, Exit::Code(2), "panic!", none("the agent ended with exit code 2: panic!")),
        (&silent, Exit::Unknown, "panic!", none("panic!")),
        (&plain, Exit::Code(0), "bye", Outcome::Completed),
        (&plain, Exit::Code(1), "bye", none("the agent ended with exit code 1: bye")),
        (&plain, Exit::Code(143), "bye", none("the agent ended with exit code 143: bye")),
        (&plain, Exit::Signal(15), "bye", killed(15)),
        (&plain, Exit::Unknown, "bye", none("bye")),
    ] {
        assert_eq!(outcome(events, &exit, None, last_words), expected, "{events:?} {exit:?}");
    }
}

#[test]
fn the_reason_we_ended_it_counts_before_its_exit() {
    let (done, went_wrong, silent) = ([good()], [bad()], [json!({ "type": "user" })]);
    let refused = [retry("authentication_failed"), retry("authentication_failed")];
    let detail =
        "the service refused the key or login; run `/login` in `claude`, or fix the API key";
    let login = Outcome::Login { detail: detail.into() };
    for (events, ended_by, expected) in [
        (&done[..], EndedBy::Human, Outcome::Completed),
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
        (&silent, EndedBy::FirstEventTimeout, Outcome::FirstEventTimeout),
        (&silent, EndedBy::IdleTimeout, Outcome::IdleTimeout),
        (&silent, EndedBy::IterationTimeout, Outcome::IterationTimeout),
    ] {
        for exit in [Exit::Code(0), Exit::Code(143), Exit::Signal(9), Exit::Unknown] {
            let found = outcome(events, &exit, Some(ended_by), "");
            assert_eq!(found, expected, "{ended_by:?} {exit:?}");
        }
    }
}

#[test]
fn a_result_that_answers_our_order_completes_nothing() {
    let refused = [retry("authentication_failed"), retry("authentication_failed")];
    let detail =
        "the service refused the key or login; run `/login` in `claude`, or fix the API key";
    let login = || Outcome::Login { detail: detail.into() };
    let (done, went_wrong, silent) = ([good()], [bad()], [json!({ "type": "user" })]);
    for (before, why, after, expected) in [
        (&silent[..], EndedBy::Human, good(), Outcome::EndedByUs),
        (&silent, EndedBy::Stuck, good(), Outcome::Stuck),
        (&silent, EndedBy::IdleTimeout, good(), Outcome::IdleTimeout),
        (&silent, EndedBy::IterationTimeout, good(), Outcome::IterationTimeout),
        (&[], EndedBy::FirstEventTimeout, good(), Outcome::FirstEventTimeout),
        (&refused, EndedBy::HopelessRetry, good(), login()),
        (&refused, EndedBy::HopelessRetry, bad(), wrong()),
        (&went_wrong, EndedBy::AfterResult, good(), wrong()),
        (&went_wrong, EndedBy::Human, good(), Outcome::EndedByUs),
        // One that was there before counts.
        (&done, EndedBy::Human, bad(), Outcome::Completed),
        (&done, EndedBy::Stuck, bad(), Outcome::Completed),
        (&done, EndedBy::AfterResult, bad(), Outcome::Completed),
    ] {
        for exit in [Exit::Code(0), Exit::Code(143), Exit::Signal(9)] {
            let found = ended(before, Some(why), std::slice::from_ref(&after), (&exit, ""));
            assert_eq!(found, expected, "{why:?} {after} {exit:?}");
        }
    }
}

#[test]
fn a_process_that_never_started_is_a_failed_spawn() {
    let exit = Exit::NotSpawned { error: "no such\nfile".into() };
    let expected = Outcome::SpawnFailed { detail: "no such file".into() };
    for ended_by in [None, Some(EndedBy::Human), Some(EndedBy::FirstEventTimeout)] {
        assert_eq!(outcome(&[], &exit, ended_by, ""), expected);
    }
}

#[test]
fn an_error_result_has_its_own_class() {
    for (subtype, terminal_reason, stop_reason, class) in [
        ("error_max_turns", "max_turns", "", "turn_limit"),
        ("error_max_budget_usd", "budget_exhausted", "", "iteration_budget"),
        ("success", "prompt_too_long", "", "prompt_too_long"),
        ("error_during_execution", "aborted_streaming", "", "killed_by_someone_else"),
        ("error_during_execution", "aborted_tools", "", "killed_by_someone_else"),
        ("success", "api_error", "refusal", "refusal"),
    ] {
        let words = json!({
            "subtype": subtype, "terminal_reason": terminal_reason, "stop_reason": stop_reason,
        });
        let result = with(&bad(), &words);
        assert_eq!(failed(std::slice::from_ref(&result)).class(), class);
        let error = json!({ "error": "billing_error", "api_error_status": 400 });
        assert_eq!(failed(&[shown(&error), result]).class(), class, "with an API error before it");
    }
}

#[test]
fn an_api_error_has_the_same_class_in_a_message_and_in_the_result() {
    for (error, api_error, status, class) in [
        ("rate_limit", "usage_limit_reached", Some(429), "usage_limit"),
        ("rate_limit", "", Some(429), "overloaded"),
        ("", "", Some(429), "overloaded"),
        ("overloaded", "", Some(529), "overloaded"),
        ("server_error", "", Some(529), "overloaded"),
        ("server_error", "", Some(500), "server_error"),
        ("", "", Some(503), "server_error"),
        ("server_error", "connection_failed", None, "connection"),
        ("server_error", "", None, "connection"),
        ("unknown", "", None, "connection"),
        ("authentication_failed", "", Some(401), "login"),
        ("authentication_failed", "", None, "login"),
        ("", "", Some(403), "login"),
        ("billing_error", "", Some(400), "billing"),
        ("", "", Some(402), "billing"),
        ("model_not_found", "", Some(404), "model_not_found"),
        ("", "", Some(404), "model_not_found"),
        ("invalid_request", "", Some(400), "agent_error"),
        ("", "", None, "agent_error"),
    ] {
        let text = |word: &str| Some(json!(word)).filter(|_| !word.is_empty());
        let error = json!({
            "error": text(error), "api_error": text(api_error), "api_error_status": status,
        });
        assert_eq!(failed(&[with(&bad(), &error)]).class(), class, "{error}");
        assert_eq!(failed(&[shown(&error), bad()]).class(), class, "{error}");
        let recovered = [shown(&error), good()];
        assert_eq!(outcome(&recovered, &Exit::Code(0), None, ""), Outcome::Completed, "{error}");
    }
}

#[test]
fn a_usage_limit_ends_when_the_service_says_if_it_refuses() {
    let error = shown(&json!({ "error": "rate_limit", "api_error": "usage_limit_reached" }));
    for (status, resets_at) in [("allowed", None), ("allowed_warning", None), ("rejected", Some(7))]
    {
        let info = json!({ "status": status, "resetsAt": 7 });
        let limit = json!({ "type": "rate_limit_event", "rate_limit_info": info });
        let expected = Outcome::UsageLimit { resets_at, detail: "went wrong".into() };
        assert_eq!(failed(&[limit, error.clone(), bad()]), expected, "{status}");
    }
}

#[test]
fn a_request_is_counted_once_however_many_parts_its_answer_has() {
    let part = |id: &str, input: u64| {
        let usage = json!({ "input_tokens": input, "output_tokens": 1 });
        let content = [json!({ "type": "tool_use", "name": "Bash", "input": {} })];
        let message = json!({ "id": id, "model": "m", "content": content, "usage": usage });
        json!({ "type": "assistant", "message": message }).to_string()
    };
    let (mut decoder, mut used) = (ClaudeDecoder::default(), crate::model::Usage::default());
    for (id, input) in [("a", 10), ("b", 5), ("a", 10), ("b", 5)] {
        decoder.line(&part(id, input), &mut |event| {
            if let AgentEvent::Usage(update) = event {
                assert_eq!(update.context, Some(input + 1));
                used.add(&update.used);
            }
        });
    }
    assert_eq!((used.input_tokens, used.output_tokens, used.tool_calls), (15, 0, 4));
}

#[test]
fn a_step_has_the_kind_of_its_tool() {
    for (tool, input, kind, what) in [
        ("Edit", json!({ "file_path": "a.rs" }), StepKind::Edit, "Edit a.rs"),
        ("MultiEdit", json!({ "file_path": "a.rs" }), StepKind::Edit, "MultiEdit a.rs"),
        ("Write", json!({ "file_path": "a.rs" }), StepKind::Edit, "Write a.rs"),
        ("NotebookEdit", json!({ "path": "a.nb" }), StepKind::Edit, "NotebookEdit a.nb"),
        ("Bash", json!({ "command": "cargo test" }), StepKind::Run, "Bash cargo test"),
        ("Read", json!({ "file_path": "a.rs" }), StepKind::Read, "Read a.rs"),
        ("Grep", json!({ "pattern": "test" }), StepKind::Read, "Grep test"),
        ("Task", json!({ "description": "look" }), StepKind::Other, "Task look"),
    ] {
        let block = json!({ "type": "tool_use", "name": tool, "input": input });
        let line = json!({ "type": "assistant", "message": { "content": [block] } });
        let mut steps = Vec::new();
        ClaudeDecoder::default().line(&line.to_string(), &mut |event| {
            if let AgentEvent::Doing(kind, what) = event {
                steps.push((*kind, (*what).to_owned()));
            }
        });
        assert_eq!(steps, [(kind, what.to_owned())]);
    }
}

#[test]
fn a_denied_tool_has_a_name_of_bounded_length() {
    for (name, length) in [("Bash".to_owned(), 4), ("x\n".repeat(500), 200)] {
        let denied = json!({
            "type": "system", "subtype": "permission_denied", "tool_name": name,
        });
        let mut lengths = Vec::new();
        ClaudeDecoder::default().line(&denied.to_string(), &mut |event| {
            if let AgentEvent::Denied(rule) = event {
                lengths.push(rule.chars().count());
            }
        });
        assert_eq!(lengths, [length]);
    }
}

#[test]
fn details_are_one_visible_line_of_bounded_length() {
    let text = format!("a\n\x1b[2J{}", "x".repeat(800));
    let Outcome::AgentError { detail } = failed(&[with(&bad(), &json!({ "result": text }))]) else {
        panic!("another class")
    };
    assert!(detail.starts_with("a \\x1b[2Jxxx") && detail.ends_with('…'), "{detail}");
    assert_eq!(detail.chars().count(), 400);
}

#[test]
fn the_projects_settings_are_trusted_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let clauses = || super::file_clauses(root);
    assert_eq!(clauses().unwrap(), []);
    std::fs::create_dir(root.join(".claude")).unwrap();
    let text = r#"{"env": {"ANTHROPIC_BASE_URL": "http://elsewhere"}, "broken"#;
    std::fs::write(root.join(".claude/settings.local.json"), text).unwrap();
    assert_eq!(clauses().unwrap(), [TrustClause::new(".claude/settings.local.json", text)]);
    std::fs::create_dir(root.join(".mcp.json")).unwrap();
    let error = clauses().unwrap_err().to_string();
    assert_eq!(error, "cannot read `.mcp.json`: it is a folder instead of a file");
}
