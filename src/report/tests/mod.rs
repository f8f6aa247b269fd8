//! Whole histories, folded and rendered.

mod documented;
mod example;
mod states;

use serde_json::Value;

use crate::decide::samples::{History, escalation, failed, guidance, id};
use crate::model::{
    Answer, Escalation, EscalationKind, Event, Recorded, ServiceFault, StepKind, StoryClosed,
    StuckEvent, Usage, Verdict,
};

use StepKind::{Edit, Read, Run};

use super::document::AppliedSettings;
use super::fold::RunReport;

pub fn folded(events: &[Recorded]) -> RunReport {
    let mut report = RunReport::new(AppliedSettings::default());
    events.iter().for_each(|recorded| report.apply(recorded));
    report
}

/// As it reads right after its last event.
fn read(history: &History) -> Value {
    read_at(history, history.at, None)
}

fn read_at(history: &History, now: i64, latest: Option<usize>) -> Value {
    let text = folded(&history.events).render(now, latest).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn outage() -> Verdict {
    Verdict::NotTheStory { fault: ServiceFault::Outage, error: "no answer".into() }
}

fn rejected(story: &str) -> Event {
    let (error, fingerprint) = ("a gate failed".to_owned(), "f".to_owned());
    Event::ClaimRejected { story: id(story), error, fingerprint, unfounded: false }
}

fn doubtful(story: &str) -> Event {
    let question = Escalation { kind: EscalationKind::Claim, ..escalation("is it?") };
    Event::QuestionRaised { story: id(story), question }
}

fn later(mut history: History, ms: i64) -> History {
    history.at += ms;
    history
}

/// One field of every iteration.
fn column(value: &Value, field: &str) -> Vec<Value> {
    value["iterations"].as_array().unwrap().iter().map(|one| one[field].clone()).collect()
}

#[test]
fn every_iteration_has_an_outcome_and_a_phase() {
    let done = || History::new().tried("A", Verdict::Done);
    let tried = |verdict| History::new().tried("A", verdict);
    let refused = Event::CloseRefused { story: id("A"), error: "too big".into(), unfit: true };
    let escalated = Verdict::Escalated { escalation: escalation("s") };
    let too_long = Verdict::PromptTooLong { error: "too long".into() };
    for (history, came, phase, errors) in [
        (done(), "claimed", "reviewing", &[][..]),
        (done().planned("A"), "claimed", "reviewing", &[]),
        (done().planned("A").closed("A"), "closed", "complete", &[]),
        (done().then(rejected("A")), "rejected", "handoff", &["a gate failed"]),
        (done().planned("A").then(refused), "rejected", "handoff", &["too big"]),
        (done().then(doubtful("A")), "claimed", "reviewing", &[]),
        (done().then(doubtful("A")).answered("A", Answer::Abort), "claimed", "reviewing", &[]),
        (done().then(doubtful("A")).answered("A", guidance("no")), "rejected", "handoff", &[]),
        (
            done().then(doubtful("A")).answered("A", Answer::Accept).closed("A"),
            "closed",
            "complete",
            &[],
        ),
        (tried(Verdict::Progress), "progress", "handoff", &[]),
        (tried(escalated).raised("A").answered("A", Answer::Retry), "escalated", "handoff", &[]),
        (tried(failed("x")), "failed", "handoff", &["x"]),
        (tried(outage()), "service_trouble", "handoff", &["no answer"]),
        (tried(too_long), "prompt_too_long", "handoff", &["too long"]),
        (tried(Verdict::Interrupted), "interrupted", "handoff", &[]),
        (History::new().started("A").then(Event::RunContinued), "cut_off", "handoff", &[]),
    ] {
        let value = read(&history);
        let one = &value["iterations"][0];
        assert_eq!(one["outcome"], came, "{value:#}");
        assert_eq!(one["phase"], phase, "{came}");
        assert_eq!(one["errors"], serde_json::json!(errors), "{came}");
    }
}

#[test]
fn the_figures_add_up() {
    let usage = |cost_usd| Usage { cost_usd, input_tokens: 10, turns: 2, ..Usage::default() };
    let history = History::new()
        .started("A")
        .ended(failed("x"), usage(Some(0.25)))
        .tried("A", outage())
        .started("A")
        .ended(Verdict::Done, usage(Some(0.5)))
        .planned("A")
        .closed("A")
        .tried("B", Verdict::Progress)
        .shelved("B", Some("refs/B/1"))
        .shelved("B", None);
    let value = read(&history);
    let totals = &value["totals"];
    assert_eq!((&totals["agent_ms"], &totals["cost_usd"]), (&400.into(), &0.75.into()));
    assert_eq!((&totals["without_cost"], &totals["turns"]), (&2.into(), &4.into()));
    assert_eq!(totals["tokens"]["input"], 20);
    let metrics = &value["metrics"];
    for (name, count) in [
        ("iterations", 3),
        ("attempts", 4),
        ("successes", 1),
        ("failures", 1),
        ("errors", 2),
        ("checkpoints", 2),
        ("rollbacks", 1),
    ] {
        assert_eq!(metrics[name], count, "{name}");
    }
    assert_eq!(metrics["success_rate"], 0.5);
    let kept = [Value::Null, Value::Null, "commit of A".into(), "refs/B/1".into()];
    assert_eq!(column(&value, "checkpoint"), kept);
    let why = ["first_try", "after_error", "after_service_trouble", "first_try"];
    assert_eq!(column(&value, "why"), why);
    assert_eq!(value["stories"]["passing"], 1);
}

#[test]
fn unknown_figures_are_null() {
    let value = read(&History::new());
    assert_eq!(value["totals"]["cost_usd"], Value::Null);
    assert_eq!(value["metrics"]["success_rate"], Value::Null);
    let value = read(&History::new().started("A").then(Event::RunContinued));
    assert_eq!(column(&value, "elapsed_ms"), [Value::Null]);
    assert_eq!(value["totals"]["without_cost"], 1);
}

#[test]
fn a_closed_claim_of_an_earlier_run_has_no_iteration_here() {
    let (attempt, commit) = ("of before".to_owned(), "c".to_owned());
    let closed = Event::StoryClosed(StoryClosed { attempt, story: id("B"), commit, change: None });
    let value = read(&History::new().tried("A", Verdict::Progress).then(closed));
    assert_eq!(column(&value, "outcome"), ["progress"]);
    assert_eq!(value["metrics"]["checkpoints"], 1);
}

#[test]
fn a_new_run_starts_from_zero_and_a_continued_one_does_not() {
    let before = || later(History::new(), 100).tried("A", failed("x"));
    let value = read(&before().run(&["A"]));
    assert_eq!(
        (&value["metrics"]["errors"], &value["iterations"]),
        (&0.into(), &Value::from([0; 0]))
    );
    let stopped = before().then(Event::RunInterrupted { signal: 2 });
    let value = read(&stopped);
    assert_eq!(
        (&value["state"], &value["stop"]["reason"]),
        (&"terminated".into(), &"signal".into())
    );
    let value = read(&later(later(stopped, 5000).then(Event::RunContinued), 7));
    assert_eq!((&value["stop"], &value["ended_at"]), (&Value::Null, &Value::Null));
    assert_eq!(value["iterations"].as_array().unwrap().len(), 1);
    // Without the pause: 103 from the start to the interruption, 7 since.
    assert_eq!(value["metrics"]["elapsed_ms"], 110);
}

#[test]
fn texts_and_lists_are_bounded() {
    let long = "é".repeat(5000);
    let mut history = History::new().tried("A", failed(&long));
    for _ in 0..9 {
        history = history.then(rejected("A"));
    }
    let value = read(&history);
    let errors = value["iterations"][0]["errors"].as_array().unwrap();
    assert_eq!((errors.len(), errors[0].as_str().unwrap().chars().count()), (5, 500));
    assert_eq!(value["metrics"]["errors"], 10);
    let often = History::new().tried_often("A", &Verdict::Progress, 12);
    let value = read_at(&often, often.at, Some(5));
    assert_eq!(value["iterations_left_out"], 7);
    assert_eq!(column(&value, "iteration"), [8, 9, 10, 11, 12]);
}

#[test]
fn long_iterations_and_frequent_failures_degrade_the_health() {
    let three = || History::new().tried_often("A", &Verdict::Progress, 3).started("A");
    let health = |ms| column(&read_at(&three(), three().at + ms, None), "health")[3].clone();
    assert_eq!((health(300), health(301)), ("healthy".into(), "degraded".into()));
    let often = History::new().tried_often("A", &failed("x"), 6);
    let found = column(&read(&often), "health");
    assert_eq!(found[..5], ["healthy"; 5]);
    assert_eq!(found[5], "degraded");
    let faults = History::new()
        .tried_often("A", &failed("x"), 3)
        .tried_often("A", &outage(), 9)
        .tried_often("A", &Verdict::Progress, 4);
    let found = column(&read(&faults), "health");
    assert_eq!(found[..14], ["healthy"; 14]);
    assert_eq!(found[14..], ["degraded", "healthy"], "outages are passed over");
}

#[test]
fn the_phase_follows_the_agent_and_then_the_gates() {
    let mut history = History::new().started("A");
    let mut report = folded(&history.events);
    let phase = |report: &mut RunReport| {
        let text = report.render(0, None).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["iterations"][0]["phase"].clone()
    };
    let attempt = "attempt 1";
    assert!(!report.checking(attempt) && !report.doing(attempt, Read, "Read a.rs"));
    assert!(report.doing(attempt, Edit, "a.rs") && !report.doing(attempt, Edit, "b.rs"));
    assert_eq!(phase(&mut report), "implementing");
    history = history.ended(Verdict::Done, Usage::default());
    report.apply(history.events.last().unwrap());
    assert_eq!(phase(&mut report), "reviewing");
    assert!(!report.doing(attempt, Edit, "a.rs") && report.checking(attempt));
    assert_eq!(phase(&mut report), "testing");
    report.apply(history.then(rejected("A")).events.last().unwrap());
    assert_eq!(phase(&mut report), "handoff");
    assert!(!report.checking(attempt));
}

#[test]
fn attempts_at_the_same_time_have_phases_times_and_health_of_their_own() {
    let history = History::new().started("A");
    let history = later(history, 1000).started("B");
    let (first, second) = ("attempt 1", "attempt 2");
    let mut report = folded(&history.events);
    assert!(report.doing(first, Edit, "a.rs") && report.doing(second, Run, "cargo test"));
    report.apply(&Recorded {
        at: history.at,
        event: Event::Stuck { story: id("A"), step: StuckEvent::Asked { minutes: 1 } },
    });
    let text = report.render(history.at + 500, None).unwrap();
    let value = serde_json::from_slice(&text).unwrap();
    assert_eq!(column(&value, "phase"), ["implementing", "testing"]);
    assert_eq!(column(&value, "health"), ["stuck", "healthy"]);
    let elapsed = column(&value, "elapsed_ms");
    assert_eq!(elapsed[1], 500);
    assert!(elapsed[0].as_u64() > elapsed[1].as_u64());
}

#[test]
fn a_run_that_is_continued_is_reported_as_a_whole() {
    let history = History::new().tried("A", failed("x")).started("B");
    let (mut whole, mut taken_up) = (folded(&history.events), RunReport::default());
    taken_up.take_up(&history.events, &history.state);
    let next = Recorded { at: history.at + 1, event: Event::RunContinued };
    let read = |report: &mut RunReport| {
        report.apply(&next);
        String::from_utf8(report.render(history.at + 2, None).unwrap()).unwrap()
    };
    assert_eq!(read(&mut taken_up), read(&mut whole));
}
