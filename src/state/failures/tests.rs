use crate::decide::next::decide;
use crate::decide::samples::{History, backlog, failed, policy, story};
use crate::decide::situation::{Action, Observed};
use crate::model::{Event, Footprint, LaneId, Limits, Policy, StopReason, Usage, WaitFor};

use super::*;

const SECOND: i64 = 1000;

fn broke(history: History, story: &str, error: &str, elapsed_ms: u64) -> History {
    history.started(story).ended_as(|end| AttemptEnded {
        outcome: Outcome::NoResult { detail: error.into() },
        verdict: failed(error),
        elapsed_ms,
        ..end
    })
}

fn stops(history: &History) -> Option<StopReason> {
    let stories = backlog(["A", "B", "C", "D"].map(story));
    match decide(&history.state, &stories, &policy(), &Observed::default()) {
        Action::Stop(reason) => Some(reason),
        _ => None,
    }
}

#[test]
fn agents_that_break_down_at_once_and_alike_stop_the_run() {
    let quick = |history: History, story: &str| broke(history, story, "cannot start", 900);
    let twice = || quick(quick(History::new(), "A"), "A");
    let three = Some(StopReason::FailsAtOnce { times: 3, error: "cannot start".into() });
    for (case, history, expected) in [
        ("two", twice(), None),
        ("three", quick(twice(), "A"), three.clone()),
        ("over two stories", quick(twice(), "B"), three.clone()),
        ("the third is slow", broke(twice(), "A", "cannot start", 10_000), None),
        ("the third is another", broke(twice(), "A", "cannot write", 900), None),
        ("progress between", quick(twice().tried("A", Verdict::Progress), "A"), None),
        ("another end between", quick(twice().tried("A", failed("cannot start")), "A"), None),
        ("interrupted between", quick(twice().tried("A", Verdict::Interrupted), "A"), three),
        ("a new run", quick(twice().run(&["A"]), "A"), None),
    ] {
        assert_eq!(stops(&history), expected, "{case}");
    }
}

#[test]
fn agents_that_ran_at_the_same_time_break_down_once() {
    let ends = |history: History, error: &str| {
        history.ended_as(|end| AttemptEnded {
            outcome: Outcome::NoResult { detail: error.into() },
            verdict: failed(error),
            elapsed_ms: 900,
            ..end
        })
    };
    let wave = |history: History| {
        let lanes = [("A", 1), ("B", 2), ("C", 3), ("D", 4)];
        let started = |history: History, (story, lane)| history.started_in(story, LaneId(lane));
        let history = lanes.into_iter().fold(history, started);
        (0..4).fold(history, |history, _| ends(history, "cannot start"))
    };
    let first = wave(History::new());
    assert_eq!(stops(&first), None);
    assert_eq!(first.state.failures.breakdowns, 1);
    assert_eq!(first.state.failures.errors(u32::MAX), 4, "of four stories");
    let third = wave(wave(first));
    assert!(matches!(stops(&third), Some(StopReason::FailsAtOnce { times: 3, .. })));
}

#[test]
fn an_agent_that_worked_and_reports_an_error_did_not_break_down() {
    let reports = |turns| {
        (0..3).fold(History::new(), |history, _| {
            history.started("A").ended_as(|end| AttemptEnded {
                outcome: Outcome::AgentError { detail: "e".into() },
                verdict: failed("e"),
                usage: Usage { turns, ..Usage::default() },
                ..end
            })
        })
    };
    assert_eq!(stops(&reports(1)), None);
    assert!(matches!(stops(&reports(0)), Some(StopReason::FailsAtOnce { times: 3, .. })));
}

fn resting() -> Policy {
    Policy {
        limits: Limits { backoff: Some(Duration::from_secs(1)), ..Limits::default() },
        stuck_threshold: std::num::NonZeroU32::MAX,
        max_attempts: std::num::NonZeroU32::MAX,
        ..policy()
    }
}

/// How long the run rests after the last event.
fn rest(history: &History, policy: &Policy) -> i64 {
    let moment = Observed { now: history.at, ..Observed::default() };
    match decide(&history.state, &backlog([story("A"), story("B")]), policy, &moment) {
        Action::Wait(Some(wait)) => {
            assert_eq!(wait.what, WaitFor::Retry);
            wait.until - history.at
        }
        _ => 0,
    }
}

#[test]
fn the_rest_after_a_failure_doubles_up_to_a_minute() {
    let other = |number: u32| failed(&"x".repeat(usize::try_from(number).unwrap()));
    let fails = |times: u32| (1..=times).fold(History::new(), |h, n| h.tried("A", other(n)));
    for (times, seconds) in [(0, 0), (1, 2), (2, 4), (3, 8), (5, 32), (6, 60), (40, 60)] {
        assert_eq!(rest(&fails(times), &resting()), seconds * SECOND, "{times}");
    }
    let short = Some(std::time::Duration::from_millis(1));
    let limits = Limits { backoff: short, ..Limits::default() };
    assert_eq!(rest(&fails(3), &Policy { limits, ..resting() }), 8);
    assert_eq!(rest(&fails(3), &Policy { limits: Limits::default(), ..resting() }), 0);
}

#[test]
fn the_back_off_is_no_longer_than_needed() {
    let idle = Footprint { changed: Some(false), ..Footprint::default() };
    let twice = || History::new().tried("A", failed("x")).tried("A", failed("y"));
    for (case, history, seconds) in [
        ("two failures", twice(), 4),
        ("an iteration that did nothing", twice().left("A", failed("nothing"), idle), 8),
        ("another story's turn", twice().shelved("A", None), 4),
        ("progress", twice().tried("A", Verdict::Progress), 0),
        ("a story is closed", twice().tried("B", Verdict::Done).planned("B").closed("B"), 0),
        ("Enter", twice().then(Event::WaitCutShort), 0),
        (
            "Enter, and the next failure",
            twice().then(Event::WaitCutShort).tried("A", failed("z")),
            8,
        ),
        ("the human answered", twice().raised("A").answered("A", crate::model::Answer::Retry), 0),
        ("after a restart it still does", twice().then(Event::RunContinued), 4),
    ] {
        let rest = rest(&history, &resting());
        // The events after the failure took their milliseconds.
        assert_eq!((rest + 10) / SECOND, seconds, "{case}: {rest}");
    }
}
