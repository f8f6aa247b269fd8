//! Completion markers count wherever the built-in claim counts.

use crate::model::{AgentSignals, CompletionMarkers, StoryId};

use super::super::*;

fn markers(promise: Option<&str>, signals: &[&str], stages: &[&str]) -> CompletionMarkers {
    let owned = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
    CompletionMarkers {
        promise: promise.map(str::to_owned),
        signals: owned(signals),
        stages: owned(stages),
    }
}

fn scan(markers: CompletionMarkers, reached: usize, text: &str) -> AgentSignals {
    let mut scanner = Scanner::new(&StoryId::try_from("US-001").unwrap(), markers, reached);
    scanner.push(text);
    scanner.finish()
}

#[test]
fn a_marker_alone_on_a_line_is_found_in_any_decoration() {
    for line in [
        "LOGIN_OK",
        "**LOGIN_OK**",
        "- [x] LOGIN_OK",
        "## ✅ LOGIN_OK!",
        "_LOGIN_OK_.",
        "login_ok",
        "1. LOGIN_OK",
        "So.\n\nLOGIN_OK\n\nBye.",
        "everything works now",
        "<promise>SHIPPED</promise>",
        "**<promise> shipped </promise>**",
        "Task US-001 complete",
    ] {
        let own = markers(Some("SHIPPED"), &["LOGIN_OK", "Everything works now"], &[]);
        assert!(scan(own, 0, line).claims_story, "{line}");
    }
}

#[test]
fn a_marker_is_ignored_where_a_claim_would_be() {
    for text in [
        "not LOGIN_OK",
        "LOGIN_OK?",
        "LOGIN_OK if the tests pass",
        "LOGIN_OKAY",
        "NO_LOGIN_OK",
        "The marker is LOGIN_OK",
        "`LOGIN_OK`",
        "\"LOGIN_OK\"",
        "~~LOGIN_OK~~",
        "- [ ] LOGIN_OK",
        "❌ LOGIN_OK",
        "> LOGIN_OK",
        "    LOGIN_OK",
        "```\nLOGIN_OK\n```",
        "<!-- LOGIN_OK -->",
        "<escalate type=\"stuck\">\nLOGIN_OK\n</escalate>",
        "<handoff>\nLOGIN_OK\n</handoff>",
        "<promise>NOT SHIPPED</promise>",
        "I would print <promise>SHIPPED</promise>",
        "SHIPPED",
        "LOGIN_OK\nTask US-001 is not complete",
        "LOGIN_OK\nLOGIN_OK is not true after all.",
        "LOGIN_OK\nScratch that: LOGIN_OK was premature.",
    ] {
        let signals = scan(markers(Some("SHIPPED"), &["LOGIN_OK"], &[]), 0, text);
        assert!(!signals.claims_story && !signals.promises_all, "{text}");
    }
    let mention = "LOGIN_OK\nI printed LOGIN_OK because the tests pass.";
    assert!(scan(markers(None, &["LOGIN_OK"], &[]), 0, mention).claims_story);
}

#[test]
fn only_configured_markers_are_found() {
    assert_eq!(
        scan(CompletionMarkers::default(), 0, "LOGIN_OK\n<promise>SHIPPED</promise>"),
        AgentSignals::default()
    );
    let done = scan(markers(Some("DONE"), &[], &[]), 0, "<promise>DONE</promise>");
    assert!(done.claims_story && !done.promises_all, "it is the story's own promise now");
}

#[test]
fn stages_count_in_order_and_the_last_is_a_claim() {
    let stages = ["TESTS_PASS", "DOCS_COMPLETE", "SHIPPED"];
    let all = "TESTS_PASS\nDOCS_COMPLETE\nSHIPPED\n";
    for (before, text, reached, claims) in [
        (0, "TESTS_PASS", &stages[..1], false),
        (0, "SHIPPED", &[], false),
        (0, "DOCS_COMPLETE\nTESTS_PASS", &stages[..1], false),
        (0, "TESTS_PASS\nTESTS_PASS\nDOCS_COMPLETE", &stages[..2], false),
        (0, all, &stages[..], true),
        (1, "DOCS_COMPLETE", &stages[1..2], false),
        (2, "SHIPPED", &stages[2..], true),
        (2, "TESTS_PASS", &[], false),
        (0, "Task US-001 complete", &[], false),
        (2, "Task US-001 complete\nALSO_DONE\n<promise>OWN</promise>", &[], false),
        (2, "SHIPPED\nTask US-001 is not complete", &[], false),
        (0, "TESTS_PASS\nDOCS_COMPLETE\nSorry, TESTS_PASS is not true.", &[], false),
    ] {
        let own = markers(Some("OWN"), &["ALSO_DONE"], &stages);
        let signals = scan(own, before, text);
        assert_eq!(signals.stages, reached, "after {before}: {text}");
        assert_eq!(signals.claims_story, claims, "after {before}: {text}");
        assert_eq!(signals.stages_left, !claims, "after {before}: {text}");
    }
    assert!(!scan(CompletionMarkers::default(), 0, "x").stages_left);
}

#[test]
fn reached_stages_are_counted_without_the_claim() {
    let own = markers(None, &[], &["A_1", "B_2", "C_3"]);
    let owned = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    for (known, reached) in [
        (&[][..], 0),
        (&["A_1"], 1),
        (&["B_2"], 0),
        (&["A_1", "B_2", "C_3"], 2),
        (&["old", "A_1"], 1),
    ] {
        assert_eq!(own.reached(&owned(known)), reached, "{known:?}");
    }
}

#[test]
fn each_marker_of_a_story_overrides_the_runs() {
    let run = markers(Some("R"), &["r1"], &["s1"]);
    assert_eq!(CompletionMarkers::default().or(&run), run);
    assert_eq!(markers(Some("S"), &[], &[]).or(&run), markers(Some("S"), &["r1"], &["s1"]));
    let own = markers(Some("S"), &["a"], &["b"]);
    assert_eq!(own.or(&run), own);
}

#[test]
fn a_line_that_cannot_be_found_is_no_marker() {
    for good in ["LOGIN_OK", "✅ All green", "Tests pass!", "<done/>", "fertig: äöü"] {
        assert!(can_be_a_line(good), "{good}");
    }
    for bad in
        ["", " ", "---", "**", "a\nb", "> quoted", "```", "<!-- x -->", "<escalate>x", "<handoff>x"]
    {
        assert!(!can_be_a_line(bad), "{bad:?}");
    }
    assert!(!can_be_a_line(&"x".repeat(201)));
    assert!(can_be_promised("ALL DONE") && can_be_promised("DONE"));
    for bad in ["", "  ", "a\nb", "<!-- x -->"] {
        assert!(!can_be_promised(bad), "{bad:?}");
    }
}

#[test]
fn a_newly_ticked_task_in_the_instructions_is_a_claim() {
    for (before, after, claims) in [
        ("Work.\n", "Work.\n- [x] TASK_COMPLETE\n", true),
        ("- [ ] TASK_COMPLETE\n", "- [X] TASK_COMPLETE\n", true),
        ("Work.\n", "Work.\n  * [x] TASK_COMPLETE  \n", true),
        ("- [x] TASK_COMPLETE\n", "- [x] TASK_COMPLETE\nmore\n", false),
        ("Work.\n", "Work.\n- [ ] TASK_COMPLETE\n", false),
        ("Work.\n", "Work.\n- [x] TASK_COMPLETED\n", false),
        ("Work.\n", "Work.\nTASK_COMPLETE\n", false),
        ("Work.\n", "Work.\n```\n- [x] TASK_COMPLETE\n```\n", false),
        ("Work.\n", "Work.\n<!--\n- [x] TASK_COMPLETE\n-->\n", false),
        ("Work.\n", "Work.\n    - [x] TASK_COMPLETE\n", false),
        ("Work.\n", "Work.\n> - [x] TASK_COMPLETE\n", false),
    ] {
        assert_eq!(ticks_task_complete(before, after), claims, "{after:?}");
    }
}
