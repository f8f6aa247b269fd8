use std::num::NonZeroU32;
use std::time::Duration;

use crate::decide::next::decide;
use crate::decide::samples::{History, Told, backlog, failed, id, policy, story};
use crate::decide::situation::{Action, Observed, Tasks};
use crate::model::{
    Answer, AttemptEnded, Backlog, Because, Blocked, Cause, EndCause, Event, EvidenceItem, GateEnd,
    GateReport, LaneId, Limits, NudgedBy, Policy, ServiceFault, Verdict,
};
use crate::state::RunState;

use super::*;

const HOUR: u64 = 3_600_000;

fn why(state: &RunState, backlog: &Backlog, policy: &Policy) -> Option<StopReason> {
    reason(&Situation::new(state, backlog, policy, &Observed::default()))
}

fn three() -> Backlog {
    backlog(["A", "B", "C"].map(story))
}

fn next(history: &History, backlog: &Backlog, policy: &Policy) -> Action {
    let moment = Observed { now: history.at, ..Observed::default() };
    decide(&history.state, backlog, policy, &moment)
}

fn stop(history: &History, backlog: &Backlog, policy: &Policy) -> Option<StopReason> {
    match next(history, backlog, policy) {
        Action::Stop(reason) => Some(reason),
        _ => None,
    }
}

fn limited(limits: Limits) -> Policy {
    let many = NonZeroU32::MAX;
    Policy { limits, max_attempts: many, ..policy() }
}

fn errors(limit: u32) -> Policy {
    limited(Limits { max_consecutive_errors: Some(limit), ..Limits::default() })
}

fn hours(count: u64) -> Policy {
    limited(Limits { max_run_time: Some(Duration::from_hours(count)), ..Limits::default() })
}

fn worked(history: History, verdict: Verdict, elapsed_ms: u64) -> History {
    history.started("A").ended_as(|end| AttemptEnded { verdict, elapsed_ms, ..end })
}

/// Fails so often with an error of its own each time.
fn fails(history: History, story: &str, times: u32) -> History {
    let error = |number| failed(&format!("{story}{}", "x".repeat(number)));
    (0..times).fold(history, |history, number| {
        history.tried(story, error(usize::try_from(number).unwrap()))
    })
}

#[test]
fn of_two_stop_reasons_the_first_in_order_is_given() {
    // Everything at once: each row takes the first reason of the row before away.
    let broken = Limits {
        max_consecutive_errors: Some(5),
        max_failing: Some(5),
        max_run_time: Some(Duration::from_millis(1)),
        max_average_iteration: Some(Duration::from_millis(1)),
        cool_down: Some(Duration::from_mins(30)),
        backoff: None,
    };
    let all = |limits| Policy { max_iterations: Some(5), ..limited(limits) };
    let failing = fails(fails(History::new(), "A", 4).shelved("A", None), "B", 1);
    let failing = failing.shelved("B", None).raised("C").answered("C", Answer::Abort);
    let tripped = failing.clone().then(Event::BreakerOpened { why: "w".into(), until: 0 });
    let tripped = fails(tripped, "B", 1);
    let done = backlog(["A", "B", "C"].map(|name| story(name).passing()));
    let blocked = backlog([story("A").after(&["B"]), story("B").skipped()]);
    let error = "Bx".trim_end_matches('x').to_owned();
    let no_errors = Limits { max_consecutive_errors: None, ..broken };
    let no_time = Limits { max_run_time: None, ..no_errors };
    let no_average = Limits { max_average_iteration: None, ..no_time };
    let free = |limits| Policy { max_iterations: None, ..all(limits) };
    let waits = Blocked { story: id("A"), because: Because::WaitsForSkipped { on: id("B") } };
    for (case, history, backlog, policy, expected) in [
        ("every story done", &tripped, &done, all(broken), StopReason::AllDone),
        (
            "the breaker",
            &tripped,
            &blocked,
            all(broken),
            StopReason::BreakerOpen { why: "w".into(), error: error.clone() },
        ),
        (
            "errors",
            &failing,
            &blocked,
            all(broken),
            StopReason::ConsecutiveErrors { limit: 5, error },
        ),
        ("iterations", &failing, &blocked, all(no_errors), StopReason::MaxIterations { limit: 5 }),
        (
            "run time",
            &failing,
            &blocked,
            free(no_errors),
            StopReason::MaxRunTime { limit_ms: 1, worked_ms: 500 },
        ),
        (
            "the average",
            &failing,
            &blocked,
            free(no_time),
            StopReason::SlowIterations { limit_ms: 1, average_ms: 100, iterations: 5 },
        ),
        (
            "nothing to select",
            &failing,
            &blocked,
            free(no_average),
            StopReason::NothingToSelect { blocked: vec![waits] },
        ),
        ("the human", &failing, &three(), free(no_average), StopReason::Aborted),
    ] {
        assert_eq!(stop(history, backlog, &policy), Some(expected), "{case}");
    }
}

#[test]
fn a_story_that_disappeared_is_not_done() {
    let removed = |names: &[&str]| Event::StoriesRemoved {
        story: id("A"),
        removed: names.iter().map(|name| id(name)).collect(),
    };
    let history = History::new().then(removed(&["B", "C"])).then(Event::RunContinued);
    let blocked = |name: &str, because| Blocked { story: id(name), because };
    let gone = |name| blocked(name, Because::Gone);
    let parked = history.clone().raised("A").then(Event::StoryParked { story: id("A") });
    for (history, stories, expected) in [
        (&history, vec![story("A").passing()], vec![gone("B"), gone("C")]),
        (&history, vec![story("A").passing(), story("B").passing()], vec![gone("C")]),
        (&parked, vec![story("A")], vec![blocked("A", Because::Parked), gone("B"), gone("C")]),
    ] {
        let reason = why(&history.state, &backlog(stories), &policy());
        assert_eq!(reason, Some(StopReason::NothingToSelect { blocked: expected }));
    }
    let all = backlog(["A", "B", "C"].map(|name| story(name).passing()));
    assert_eq!(why(&history.state, &all, &policy()), Some(StopReason::AllDone));
    let next = history.clone().then(Event::RunStarted(history.state.run.unwrap()));
    let less = backlog([story("A").passing()]);
    assert_eq!(why(&next.state, &less, &policy()), Some(StopReason::AllDone));
}

#[test]
fn completion_by_the_last_allowed_iteration_is_completion() {
    let last = worked(History::new(), Verdict::Done, 13 * HOUR).planned("A").closed("A");
    let done = backlog([story("A").passing()]);
    let policy = Policy { max_iterations: Some(1), ..hours(12) };
    assert_eq!(stop(&last, &done, &policy), Some(StopReason::AllDone));
    let claimed = worked(History::new(), Verdict::Done, 13 * HOUR);
    let check = Action::Check { story: id("A"), attempt: "attempt 1".into() };
    assert_eq!(next(&claimed, &three(), &policy), check, "a claim in time is looked into");
}

#[test]
fn errors_count_over_all_stories_until_something_comes_of_one() {
    let new = History::new;
    let three_of_a = || fails(new(), "A", 3).shelved("A", None);
    let rejected = |history: History| {
        history.tried("B", Verdict::Done).then(Event::ClaimRejected {
            story: id("B"),
            error: "gate".into(),
            fingerprint: "gate".into(),
            unfounded: false,
        })
    };
    let fault = Verdict::NotTheStory { fault: ServiceFault::Silence, error: "o".into() };
    for (case, history, stops) in [
        ("four", fails(three_of_a(), "B", 1), false),
        ("five", fails(three_of_a(), "B", 2), true),
        ("a claim that is rejected is one", rejected(fails(three_of_a(), "B", 1)), true),
        ("progress between", fails(three_of_a().tried("B", Verdict::Progress), "B", 2), false),
        (
            "a story closed between",
            fails(three_of_a().tried("C", Verdict::Done).closed("C"), "B", 2),
            false,
        ),
        (
            "an answer between",
            fails(three_of_a().raised("C").answered("C", Answer::Retry), "B", 2),
            false,
        ),
        (
            "marks set between",
            fails(
                three_of_a().then(Event::MarksSeen { passing: vec![id("C")], skipped: vec![] }),
                "B",
                2,
            ),
            false,
        ),
        ("a restart between", fails(three_of_a().then(Event::RunContinued), "B", 2), true),
        ("a new run", fails(three_of_a().run(&[]), "B", 2), false),
        (
            "a service fault between is neither",
            fails(three_of_a().tried("B", fault).then(Event::WaitCutShort), "B", 1),
            false,
        ),
        ("one story alone, and others wait", fails(new(), "A", 9), false),
        (
            "as many of one as make it stagnate",
            fails(fails(new(), "A", 9).shelved("A", None), "B", 1),
            false,
        ),
        ("and two of another", fails(fails(new(), "A", 9).shelved("A", None), "B", 2), true),
    ] {
        let reason = stop(&history, &three(), &errors(5));
        let is_it = matches!(reason, Some(StopReason::ConsecutiveErrors { limit: 5, .. }));
        assert_eq!(is_it, stops, "{case}: {reason:?}");
    }
    let alone = backlog([story("A"), story("B").after(&["A"])]);
    assert_eq!(stop(&fails(new(), "A", 4), &alone, &errors(5)), None);
    assert!(stop(&fails(new(), "A", 5), &alone, &errors(5)).is_some(), "nobody else could go on");
    assert_eq!(stop(&fails(new(), "A", 9), &alone, &limited(Limits::default())), None);
}

#[test]
fn only_work_is_run_time() {
    let new = History::new;
    let gate = |elapsed_ms| GateReport {
        gate: "g".into(),
        guards: None,
        end: GateEnd::Passed,
        elapsed_ms,
        tail: String::new(),
    };
    let checked = |history: History| {
        history.then(Event::ClaimChecked {
            attempt: "attempt 1".into(),
            story: id("A"),
            counted: None,
            checked: None,
            turned_green: None,
            items: vec![EvidenceItem::Gate(gate(HOUR))],
        })
    };
    let limit =
        Verdict::NotTheStory { fault: ServiceFault::Limit { resets_at: None }, error: "l".into() };
    let later = |mut history: History, ms: i64| {
        history.at += ms;
        history
    };
    let eleven = || worked(new(), Verdict::Progress, 11 * HOUR);
    let over = |worked_ms| Some(StopReason::MaxRunTime { limit_ms: 12 * HOUR, worked_ms });
    for (case, history, expected) in [
        ("less", eleven(), None),
        ("enough", worked(eleven(), Verdict::Progress, HOUR), over(12 * HOUR)),
        (
            "what was interrupted counts",
            worked(eleven(), Verdict::Interrupted, HOUR),
            over(12 * HOUR),
        ),
        ("gates count", checked(eleven()), over(12 * HOUR)),
        (
            "the baseline counts",
            eleven().then(Event::BaselineTaken {
                reports: vec![gate(HOUR)],
                at: None,
                story: None,
            }),
            over(12 * HOUR),
        ),
        (
            "a day of sleep does not",
            later(eleven(), 24 * 3_600_000).tried("A", Verdict::Progress),
            None,
        ),
        ("a limit of 17 hours does not", later(worked(eleven(), limit, 1), 17 * 3_600_000), None),
        (
            "the time between processes does not",
            later(eleven(), 17 * 3_600_000).then(Event::RunContinued),
            None,
        ),
        (
            "a restart forgets nothing",
            worked(eleven().then(Event::RunContinued), Verdict::Progress, HOUR),
            over(12 * HOUR),
        ),
        ("a new run does", worked(eleven().run(&["A"]), Verdict::Progress, HOUR), None),
    ] {
        assert_eq!(stop(&history, &three(), &hours(12)), expected, "{case}");
    }
    assert_eq!(
        stop(
            &worked(eleven(), Verdict::Progress, 99 * HOUR),
            &three(),
            &limited(Limits::default())
        ),
        None
    );
}

#[test]
fn an_attempt_is_ended_when_the_time_is_over() {
    let under_way = worked(History::new(), Verdict::Progress, 11 * HOUR).started("A");
    let at = |busy_ms| {
        let moment = Observed { busy_ms, ..Observed::default() };
        decide(&under_way.state, &three(), &hours(12), &moment)
    };
    assert_eq!(at(HOUR - 1), Action::Wait(None));
    assert_eq!(at(HOUR), Action::End(EndCause::RunTime));
    let awake = Observed { now: 17 * 3_600_000, busy_ms: 5, ..Observed::default() };
    let slept = decide(&under_way.state, &three(), &hours(12), &awake);
    assert_eq!(slept, Action::Wait(None), "the machine slept for 17 hours, the agent too");
}

#[test]
fn an_average_needs_three_iterations() {
    let policy = limited(Limits {
        max_average_iteration: Some(Duration::from_hours(1)),
        ..Limits::default()
    });
    let took = |times: &[u64]| {
        times.iter().fold(History::new(), |h, ms| worked(h, Verdict::Progress, *ms))
    };
    let silence = Verdict::NotTheStory { fault: ServiceFault::Silence, error: "s".into() };
    for (case, history, average) in [
        ("two long ones", took(&[9 * HOUR, 9 * HOUR]), None),
        ("three", took(&[9 * HOUR, 9 * HOUR, 9 * HOUR]), Some(9 * HOUR)),
        ("as long as they may be", took(&[HOUR, HOUR, HOUR]), None),
        ("one long one among short ones", took(&[3 * HOUR, 1, 1]), Some(HOUR)),
        (
            "a service fault says nothing",
            worked(took(&[2 * HOUR, 2 * HOUR]), silence, HOUR).then(Event::WaitCutShort),
            None,
        ),
    ] {
        let found = match stop(&history, &three(), &policy) {
            Some(StopReason::SlowIterations { average_ms, .. }) => Some(average_ms),
            _ => None,
        };
        assert_eq!(found, average.filter(|ms| *ms > HOUR), "{case}");
    }
    assert_eq!(stop(&took(&[9 * HOUR; 4]), &three(), &limited(Limits::default())), None);
}

fn with_breaker() -> Policy {
    let cool_down = Some(Duration::from_mins(30));
    limited(Limits { cool_down, max_consecutive_errors: Some(5), ..Limits::default() })
}

fn stagnates(history: History, story: &str) -> History {
    let known = history.of(story);
    let question = crate::decide::stagnation::question(
        &crate::decide::samples::story(story),
        &crate::state::StoryState { tries: u32::MAX, ..known },
        &with_breaker(),
    );
    let story = id(story);
    let raised = Event::QuestionRaised { story: story.clone(), question: question.unwrap() };
    history.then(raised).then(Event::StoryParked { story })
}

fn broke(history: History, times: u32) -> History {
    (0..times).fold(history, |history, number| {
        let error = format!("gone{}", "x".repeat(usize::try_from(number).unwrap()));
        history.started("A").ended_as(|end| AttemptEnded {
            outcome: crate::model::Outcome::NoResult { detail: error.clone() },
            verdict: failed(&error),
            elapsed_ms: HOUR,
            ..end
        })
    })
}

fn opens(history: &History) -> bool {
    matches!(next(history, &three(), &with_breaker()), Action::OpenBreaker { .. })
}

#[test]
fn the_breaker_opens_when_it_is_not_one_story_that_fails() {
    let new = History::new;
    let first = || stagnates(new().tried("A", Verdict::Progress), "A").shelved("A", None);
    let second =
        |history: History| stagnates(history.tried("B", Verdict::Progress), "B").shelved("B", None);
    let asks = |history: History| history.raised("B").parked("B").shelved("B", None);
    let outage = Verdict::NotTheStory { fault: ServiceFault::Silence, error: "o".into() };
    for (case, history, expected) in [
        ("one story without progress", first(), false),
        ("two in a row", second(first()), true),
        ("the same one twice", stagnates(first(), "A"), false),
        (
            "a story closed between",
            second(first().tried("C", Verdict::Done).planned("C").closed("C")),
            false,
        ),
        ("an agent that asked between", second(asks(first())), false),
        ("an answer between", second(first().answered("A", Answer::Retry)), false),
        ("a skip mends nothing", second(first().answered("A", Answer::Skip)), true),
        ("a restart between", second(first().then(Event::RunContinued)), true),
        ("four breakdowns", broke(new(), 4), false),
        ("five breakdowns", broke(new(), 5), true),
        ("progress between", broke(broke(new(), 4).tried("A", Verdict::Progress), 4), false),
        ("a claim between", broke(broke(new(), 4).tried("A", Verdict::Done), 4), false),
        (
            "a service fault between is neither",
            broke(broke(new(), 4).tried("A", outage).then(Event::WaitCutShort), 1),
            true,
        ),
    ] {
        let state = &history.state;
        let is_due = state.breaker.is_due(state.failures.breakdowns).is_some();
        assert_eq!(is_due, expected, "{case}");
    }
    assert!(opens(&second(first())) && opens(&broke(new(), 5)));
    let none = Policy { limits: Limits::default(), ..with_breaker() };
    assert!(!matches!(next(&second(first()), &three(), &none), Action::OpenBreaker { .. }));
}

#[test]
fn errors_that_open_the_breaker_do_not_stop_the_run() {
    let limits = Limits { max_consecutive_errors: Some(3), ..with_breaker().limits };
    let policy = limited(limits);
    let broken = broke(History::new(), 5);
    assert_eq!(why(&broken.state, &three(), &policy), None);
    assert!(matches!(next(&broken, &three(), &policy), Action::OpenBreaker { .. }));
    let reason = why(&broken.state, &three(), &errors(3));
    assert!(matches!(reason, Some(StopReason::ConsecutiveErrors { .. })), "{reason:?}");
}

fn opened() -> (History, i64) {
    let history = stagnates(stagnates(History::new().tried("A", Verdict::Progress), "A"), "B")
        .shelved("A", None);
    let Action::OpenBreaker { why, until } = next(&history, &three(), &with_breaker()) else {
        panic!("it does not open")
    };
    assert_eq!(until - history.at, 30 * 60 * 1000);
    (history.then(Event::BreakerOpened { why, until }), until)
}

#[test]
fn an_open_breaker_pauses_the_run_and_lets_one_iteration_through() {
    let (open, until) = opened();
    let at = |history: &History, now| {
        let moment = Observed { now, ..Observed::default() };
        decide(&history.state, &three(), &with_breaker(), &moment)
    };
    let attempt = Action::Attempt { story: id("C"), lane: LaneId::HOME };
    assert!(matches!(at(&open, until - 1), Action::Wait(Some(wait)) if wait.until == until));
    assert_eq!(at(&open, until), attempt);
    let restarted = open.clone().then(Event::RunInterrupted { signal: 2 });
    assert_eq!(restarted.state.breaker, open.state.breaker, "its state survives");
    let nudged = |by| Event::Nudged { story: id("C"), text: "t".into(), by, delivered: true };
    let reminded = open.clone().then(nudged(NudgedBy::Driver));
    assert_eq!(reminded.state.breaker, open.state.breaker, "nobody acted");
    for (case, history) in [
        ("a key", open.clone().then(Event::WaitCutShort)),
        ("an answer", open.clone().answered("A", Answer::Retry).answered("A", Answer::Retry)),
        ("a mark", open.clone().then(Event::MarksSeen { passing: vec![id("A")], skipped: vec![] })),
        ("a word to the agent", open.clone().then(nudged(NudgedBy::Human))),
        ("a new run", open.clone().run(&[])),
    ] {
        assert!(!matches!(at(&history, until - 1), Action::Wait(Some(_))), "{case}");
        assert_eq!(history.state.breaker, crate::state::Breaker::default(), "{case}");
    }
}

#[test]
fn the_iteration_after_the_pause_decides() {
    let (open, _) = opened();
    let half = open.started("C");
    let ends = |verdict| half.clone().ended(verdict, crate::model::Usage::default());
    let limit =
        Verdict::NotTheStory { fault: ServiceFault::Limit { resets_at: None }, error: "l".into() };
    let rejected = Event::ClaimRejected {
        story: id("C"),
        error: "gate".into(),
        fingerprint: "g".into(),
        unfounded: false,
    };
    let closed = ends(Verdict::Done).planned("C").closed("C");
    let phase = |history: &History| match history.state.breaker.phase {
        BreakerPhase::Closed => "closed",
        BreakerPhase::Open { .. } => "open",
        BreakerPhase::HalfOpen { .. } => "half-open",
        BreakerPhase::Failed { .. } => "failed",
    };
    for (case, history, expected) in [
        ("under way", half.clone(), "half-open"),
        ("progress", ends(Verdict::Progress), "closed"),
        ("a failure", ends(failed("x")), "failed"),
        ("a claim that nobody decided yet", ends(Verdict::Done), "half-open"),
        ("one that is rejected", ends(Verdict::Done).then(rejected), "failed"),
        ("one that is closed", closed, "closed"),
        ("interrupted", ends(Verdict::Interrupted), "half-open"),
        ("a limit is the weather's", ends(limit), "half-open"),
        ("ralph died", half.clone().then(Event::RunContinued), "half-open"),
    ] {
        assert_eq!(phase(&history), expected, "{case}");
    }
    // An agent that was at work before the pause says nothing about what comes after it.
    let before = |verdict| {
        let end = |end| AttemptEnded { story: id("B"), verdict, ..end };
        let other = half.clone().ended_as(|own| AttemptEnded { attempt: "b".into(), ..end(own) });
        phase(&other)
    };
    assert_eq!((before(failed("x")), before(Verdict::Progress)), ("half-open", "half-open"));
    let asked = stagnates(ends(Verdict::Done), "C").started("A");
    let fails = |history: History| history.ended(failed("x"), crate::model::Usage::default());
    assert_eq!(phase(&fails(asked)), "failed", "after a probe that decided nothing, the next one");
    let reason = stop(&ends(failed("x")), &three(), &with_breaker());
    assert!(matches!(reason, Some(StopReason::BreakerOpen { .. })), "{reason:?}");
    let again = ends(failed("x")).returning("C", Cause::FreshStart);
    assert!(matches!(next(&again, &three(), &with_breaker()), Action::RollBack { .. }));
}

#[test]
fn nothing_else_starts_until_the_probe_is_decided() {
    let (open, until) = opened();
    let four = |c: Story| backlog([story("A"), story("B"), c, story("D")]);
    let done = |history: History| history.ended(Verdict::Done, crate::model::Usage::default());
    let claimed = done(open.started_in("C", LaneId(1)));
    let shelved = Event::WorkSetAside { story: id("C"), reference: None, claimed: true };
    let lane = LaneId::HOME;
    let base = crate::decide::samples::base("tip");
    let landed = claimed.then(shelved).then(Event::BaseSet { story: id("C"), base, lane });
    let policy = Policy { lanes: NonZeroU32::new(2).unwrap(), ..with_breaker() };
    let tasks = Tasks { checking: [id("C")].into(), ..Tasks::default() };
    let moment = Observed { now: until, tasks, ..Observed::default() };
    let next = |history: &History, c| decide(&history.state, &four(c), &policy, &moment);
    assert_eq!(next(&landed, story("C")), Action::Wait(None));
    let closed = landed.planned("C").closed("C");
    assert_eq!(
        next(&closed, story("C").passing()),
        Action::Attempt { story: id("D"), lane: LaneId(1) }
    );
}

#[test]
fn a_run_that_has_to_stop_anyway_does_not_pause_first() {
    let (open, _) = opened();
    let policy = Policy { max_iterations: Some(1), ..with_breaker() };
    assert_eq!(stop(&open, &three(), &policy), Some(StopReason::MaxIterations { limit: 1 }));
    let two = backlog(["A", "B"].map(story));
    let reason = stop(&open, &two, &with_breaker());
    assert!(matches!(reason, Some(StopReason::NothingToSelect { .. })), "{reason:?}");
}

#[test]
fn a_run_in_which_nearly_everything_fails_is_stopped() {
    let all = |limit| limited(Limits { max_failing: Some(limit), ..Limits::default() });
    let open = backlog(["A", "B", "C", "D"].map(story));
    let one = backlog([story("A")]);
    let ends = |names: &str| {
        names.chars().fold(History::new(), |history, name| {
            let verdict = if name.is_lowercase() { Verdict::Progress } else { failed("x") };
            let story = name.to_uppercase().to_string();
            history.tried(&story, verdict).shelved(&story, None)
        })
    };
    let stop = |failed| Some(StopReason::Failing { failed, error: "x".into() });
    for (case, names, backlog, limit, expected) in [
        ("eight of ten", "AAABBBaaCC", &open, 8, stop(8)),
        ("seven", "AAABBBaaaC", &open, 8, None),
        ("before there are ten", "AAABBBCCC", &open, 8, None),
        ("long ago", "AAABBBCCCaaaaaaa", &open, 8, None),
        ("one story alone", "AAAAAAAAAA", &open, 8, None),
        ("one story, and no other", "AAAAAAAAAA", &one, 8, stop(10)),
        ("as it was set", "AAABaaaaaB", &open, 5, stop(5)),
    ] {
        let state = ends(names).state;
        assert_eq!(why(&state, backlog, &all(limit)), expected, "{case}");
    }
    let state = ends("AAABBBaaCC").answered("D", Answer::Retry).state;
    assert_eq!(why(&state, &open, &all(8)), None, "the human had a say");
    let state = ends("AAABBBaaCC").state;
    assert_eq!(why(&state, &open, &limited(Limits::default())), None);
}
