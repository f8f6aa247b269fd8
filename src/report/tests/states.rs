//! The state of a run and why it stopped.

use crate::model::StopReason;

use super::*;

fn ended(reason: StopReason) -> History {
    History::new().tried("A", Verdict::Progress).then(Event::RunEnded { reason })
}

#[test]
fn every_history_has_a_state() {
    let done = || History::new().tried("A", Verdict::Done);
    let asked = || History::new().tried("A", failed("x")).raised("A");
    for (case, history, state) in [
        ("nothing yet", History::new(), "initializing"),
        (
            "baseline",
            History::new().then(Event::BaselineTaken { reports: vec![], at: None, story: None }),
            "initializing",
        ),
        ("an agent", History::new().started("A"), "running"),
        ("progress", History::new().tried("A", Verdict::Progress), "handoff"),
        ("a failure", History::new().tried("A", failed("x")), "handoff"),
        ("an outage", History::new().tried("A", outage()), "paused"),
        (
            "no longer waited for",
            History::new().tried("A", outage()).then(Event::WaitCutShort),
            "handoff",
        ),
        ("after an outage", History::new().tried("A", outage()).started("A"), "running"),
        ("a claim", done(), "completing"),
        ("an accepted one", done().planned("A"), "completing"),
        ("a rejected one", done().then(rejected("A")), "handoff"),
        ("a doubtful one", done().then(doubtful("A")), "paused"),
        (
            "one accepted by the human",
            done().then(doubtful("A")).answered("A", Answer::Accept),
            "completing",
        ),
        ("a closed one", done().planned("A").closed("A"), "handoff"),
        ("a question", asked(), "paused"),
        ("an unanswered one", asked().parked("A"), "handoff"),
        ("one that is asked again", asked().parked("A").then(Event::RunContinued), "paused"),
        ("an answer", asked().answered("A", Answer::Retry), "handoff"),
        ("continued", History::new().started("A").then(Event::RunContinued), "initializing"),
        (
            "Ctrl-C",
            History::new().started("A").then(Event::RunInterrupted { signal: 2 }),
            "terminated",
        ),
    ] {
        assert_eq!(read(&history)["state"], state, "{case}");
    }
}

#[test]
fn every_stop_reason_has_a_state_a_word_and_a_detail() {
    use crate::model::{Because, Blocked};
    let error = || "broken".to_owned();
    let blocked = vec![
        Blocked { story: id("A"), because: Because::Parked },
        Blocked { story: id("B"), because: Because::WaitsForParked { on: id("A") } },
    ];
    for (reason, state, word, detail) in [
        (StopReason::AllDone, "completed", "all_done", None),
        (StopReason::StoryDone { story: id("A") }, "completed", "story_done", Some("A")),
        (StopReason::Once, "terminated", "once", None),
        (StopReason::MaxIterations { limit: 7 }, "terminated", "max_iterations", Some("7")),
        (
            StopReason::UsageLimit { resets_at: Some(1), error: error() },
            "terminated",
            "usage_limit",
            Some("broken"),
        ),
        (StopReason::ServiceDown { error: error() }, "failed", "service_down", Some("broken")),
        (
            StopReason::AccountTrouble { error: error() },
            "failed",
            "account_trouble",
            Some("broken"),
        ),
        (StopReason::AgentUnusable { error: error() }, "failed", "agent_unusable", Some("broken")),
        (
            StopReason::DiskLow { free: 1, floor: 2, place: "/data".into() },
            "failed",
            "disk_low",
            Some("/data"),
        ),
        (
            StopReason::NothingToSelect { blocked },
            "failed",
            "nothing_to_select",
            Some("A is parked; B waits for A"),
        ),
        (StopReason::Aborted, "terminated", "aborted", None),
    ] {
        let value = read(&ended(reason));
        assert_eq!(value["state"], state);
        assert_eq!(value["stop"], serde_json::json!({ "reason": word, "detail": detail }));
    }
}

#[test]
fn an_error_of_ralph_is_a_failure_until_the_run_continues() {
    let history = History::new().started("A");
    let mut report = folded(&history.events);
    report.fail("the disk is full", 9);
    let read = |report: &mut RunReport| -> Value {
        serde_json::from_slice(&report.render(9, None).unwrap()).unwrap()
    };
    let value = read(&mut report);
    assert_eq!(
        (&value["state"], &value["stop"]["detail"]),
        (&"failed".into(), &"the disk is full".into())
    );
    assert_eq!(column(&value, "outcome"), ["cut_off"]);
    report.apply(history.then(Event::RunContinued).events.last().unwrap());
    assert_eq!(read(&mut report)["state"], "initializing");
}
