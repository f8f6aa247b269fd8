use std::num::NonZeroU32;

use crate::decide::samples::{
    History, Told, attended, backlog, base, escalation, failed, guidance, id, policy, story,
};
use crate::decide::situation::{FreeDisk, StuckDue, Tasks};
use crate::decide::stuck::StuckStep;
use crate::model::{
    Because, Blocked, Cause, Escalation, EscalationKind, Event, OnLimit, ServiceFault, Usage,
    Verdict,
};

use super::*;

fn ask(story: &str) -> Action {
    Action::Ask { story: id(story) }
}

fn attempt(story: &str) -> Action {
    Action::Attempt { story: id(story), lane: LaneId::HOME }
}

fn shelve(story: &str) -> Action {
    Action::Shelve { story: id(story) }
}

fn let_go(story: &str) -> Action {
    Action::Disown { story: id(story) }
}

fn skip(story: &str) -> Action {
    Action::Skip { story: id(story) }
}

fn park(story: &str) -> Action {
    Action::Park { story: id(story) }
}

fn only(story: &str) -> Policy {
    Policy { only: Some(id(story)), ..attended() }
}

fn at_most(max_iterations: u32) -> Policy {
    Policy { max_iterations: Some(max_iterations), ..attended() }
}

/// A and B, nothing done yet.
fn two() -> Backlog {
    backlog([story("A"), story("B")])
}

fn next(history: &History, backlog: &Backlog, policy: &Policy) -> Action {
    decide(&history.state, backlog, policy, &Observed::default())
}

/// The summary of the question that is raised next, if one is.
fn raised(history: &History, policy: &Policy) -> Option<String> {
    match next(history, &two(), policy) {
        Action::Raise { question, .. } => Some(question.summary),
        _ => None,
    }
}

#[test]
fn every_rule_comes_before_the_next_one() {
    let new = History::new;
    let done = |name: &str| new().tried(name, Verdict::Done);
    let aborted = |history: History| history.raised("B").answered("B", Answer::Abort);
    let a_passes = || backlog([story("A").passing(), story("B")]);
    let all_pass = || backlog([story("A").passing(), story("B").passing()]);
    let close = Action::Integrate { story: id("A") };
    let limited = Action::Stop(StopReason::MaxIterations { limit: 1 });
    for (rule, history, backlog, policy, expected) in [
        ("close before abort", aborted(done("A").planned("A")), two(), attended(), close),
        (
            "abort before questions",
            aborted(new().raised("B")),
            two(),
            attended(),
            Action::Stop(StopReason::Aborted),
        ),
        (
            "an abort ends what runs",
            aborted(new()).started("A"),
            two(),
            attended(),
            Action::End(EndCause::Aborted),
        ),
        ("questions while others run", new().raised("B").started("A"), two(), attended(), ask("B")),
        ("questions before leaving", done("A").raised("B"), a_passes(), attended(), ask("B")),
        (
            "leaving before skip",
            done("A").answered("B", Answer::Skip),
            a_passes(),
            attended(),
            let_go("A"),
        ),
        (
            "skip before settled",
            new().answered("B", Answer::Skip),
            a_passes(),
            only("A"),
            skip("B"),
        ),
        (
            "settled before limits",
            done("A").closed("A"),
            all_pass(),
            at_most(1),
            Action::Stop(StopReason::AllDone),
        ),
        ("limits before attempt", done("A").closed("A"), a_passes(), at_most(1), limited),
    ] {
        assert_eq!(next(&history, &backlog, &policy), expected, "{rule}");
    }
}

#[test]
fn a_claim_is_checked_before_anything_else_starts() {
    let claimed = History::new().tried("A", Verdict::Done);
    let check = Action::Check { story: id("A"), attempt: "attempt 1".into() };
    assert_eq!(next(&claimed, &two(), &attended()), check);
    let a_passes = backlog([story("A").passing(), story("B")]);
    assert_eq!(next(&claimed, &a_passes, &attended()), let_go("A"), "it is moot");
    let asked = claimed.clone().then(Event::QuestionRaised {
        story: id("A"),
        question: Escalation { kind: EscalationKind::Claim, ..escalation("done?") },
    });
    assert_eq!(next(&asked, &two(), &attended()), ask("A"));
    let accepted = asked.clone().answered("A", Answer::Accept);
    let close = Action::Integrate { story: id("A") };
    assert_eq!(next(&accepted, &two(), &attended()), close);
    let again = asked.answered("A", Answer::Retry);
    assert_eq!(
        next(&again, &two(), &attended()),
        Action::Attempt { story: id("A"), lane: LaneId::HOME }
    );
}

#[test]
fn rejected_claims_are_errors_like_any_other() {
    let rejected = |history: History| {
        history.tried("A", Verdict::Done).then(Event::ClaimRejected {
            story: id("A"),
            error: "gate".into(),
            fingerprint: "gate".into(),
            unfounded: false,
        })
    };
    let twice = rejected(rejected(History::new()));
    assert_eq!(
        next(&twice, &two(), &attended()),
        Action::Attempt { story: id("A"), lane: LaneId::HOME }
    );
    assert_eq!(twice.of("A").last_error.as_deref(), Some("gate"));
    let thrice = rejected(twice);
    assert_eq!(
        raised(&thrice, &attended()).as_deref(),
        Some("the same error 3 times in a row: gate")
    );
}

#[test]
fn an_open_question_is_handled_as_was_decided() {
    let history = History::new().tried("A", Verdict::Progress).raised("A");
    let answer = |answer: Answer| Action::Answer { story: id("A"), answer };
    for (on_escalation, human_present, expected) in [
        (OnEscalation::Ask, true, ask("A")),
        (OnEscalation::Ask, false, park("A")),
        (OnEscalation::Park, true, park("A")),
        (OnEscalation::Park, false, park("A")),
        (OnEscalation::Skip, true, answer(Answer::Skip)),
        (OnEscalation::Skip, false, answer(Answer::Skip)),
        (OnEscalation::Abort, true, answer(Answer::Abort)),
        (OnEscalation::Abort, false, answer(Answer::Abort)),
    ] {
        let policy = Policy { on_escalation, human_present, ..policy() };
        assert_eq!(next(&history, &two(), &policy), expected, "{on_escalation:?} {human_present}");
    }
}

#[test]
fn only_questions_that_matter_are_asked() {
    let history = History::new().raised("B");
    for (backlog, policy, expected) in [
        (two(), attended(), ask("B")),
        (two(), only("B"), ask("B")),
        (two(), only("A"), attempt("A")),
        (backlog([story("A"), story("B").passing()]), attended(), attempt("A")),
        (backlog([story("A"), story("B").skipped()]), attended(), attempt("A")),
        (backlog([story("A")]), attended(), attempt("A")),
    ] {
        assert_eq!(next(&history, &backlog, &policy), expected);
    }
}

#[test]
fn a_parked_question_is_asked_again_by_the_next_process_only() {
    let parked = History::new().raised("A").parked("A");
    assert_eq!(next(&parked, &two(), &attended()), attempt("B"));
    let continued = parked.clone().then(Event::RunContinued);
    assert_eq!(next(&continued, &two(), &attended()), ask("A"));
    assert_eq!(next(&parked.clone().run(&["A"]), &two(), &attended()), ask("A"));
    assert_eq!(next(&parked.run(&[]), &two(), &attended()), attempt("A"));
}

#[test]
fn an_answer_leads_on() {
    let asked = History::new().tried("A", Verdict::Progress).raised("A");
    for (answer, expected) in [
        (Answer::Retry, attempt("A")),
        (guidance("use v2"), attempt("A")),
        (Answer::Option { number: 1, text: "left".into() }, attempt("A")),
        (Answer::Skip, shelve("A")),
        (Answer::Abort, Action::Stop(StopReason::Aborted)),
    ] {
        let answered = asked.clone().answered("A", answer.clone());
        assert_eq!(next(&answered, &two(), &attended()), expected, "{answer:?}");
    }
}

#[test]
fn a_skipped_story_is_left_before_it_is_marked() {
    let wanted = History::new().tried("A", Verdict::Progress).answered("A", Answer::Skip);
    assert_eq!(next(&wanted, &two(), &attended()), shelve("A"));
    let left = wanted.shelved("A", None);
    assert_eq!(next(&left, &two(), &attended()), skip("A"));
    let marked = backlog([story("A").skipped(), story("B")]);
    assert_eq!(next(&left.skipped("A"), &marked, &attended()), attempt("B"));
}

#[test]
fn the_same_error_too_often_is_a_question() {
    let same = failed("no such file");
    let new = History::new;
    let twice = || new().tried_often("A", &same, 2);
    let often = Some("the same error 3 times in a row: no such file".to_owned());
    let tried_a = |other: &str| new().tried("A", same.clone()).tried("A", failed(other));
    for (case, history, expected) in [
        ("once less than the threshold", twice(), None),
        ("at the threshold", twice().tried("A", same.clone()), often.clone()),
        ("once, another, once", tried_a("x").tried("A", same.clone()), None),
        (
            "another error between",
            twice().tried("A", failed("x")).tried("A", same.clone()),
            Some("the same error 3 times: no such file".to_owned()),
        ),
        ("progress between", twice().tried("A", Verdict::Progress).tried("A", same.clone()), None),
        ("an answer between", twice().answered("A", Answer::Retry).tried("A", same.clone()), None),
        ("another story's error", twice().tried("B", same.clone()), None),
        ("a question is open already", twice().tried("A", same.clone()).raised("A"), None),
        (
            "and again after the answer",
            twice().answered("A", Answer::Retry).tried_often("A", &same, 3),
            often,
        ),
    ] {
        assert_eq!(raised(&history, &attended()), expected, "{case}");
    }
}

#[test]
fn too_many_attempts_are_a_question() {
    let progress = Verdict::Progress;
    let tried = |times| History::new().tried_often("A", &progress, times);
    let many = Some("not complete after 5 attempts".to_owned());
    for (case, history, expected) in [
        ("one less", tried(4), None),
        ("the last one", tried(5), many.clone()),
        (
            "an answer in between",
            tried(4).answered("A", guidance("x")).tried("A", Verdict::Progress),
            None,
        ),
        (
            "as many again",
            tried(5).answered("A", Answer::Retry).tried_often("A", &progress, 5),
            many,
        ),
        ("another story's", tried(4).tried("B", Verdict::Progress), None),
        ("a new run", tried(5).run(&["A"]), None),
    ] {
        assert_eq!(raised(&history, &attended()), expected, "{case}");
    }
}

#[test]
fn the_drivers_own_question_can_be_answered_like_an_agents() {
    let once = NonZeroU32::MIN;
    let policy = Policy { stuck_threshold: once, ..attended() };
    let history = History::new().tried("A", failed("no such file"));
    let Action::Raise { story, question } = next(&history, &two(), &policy) else {
        panic!("no question")
    };
    assert_eq!((story, question.kind), (id("A"), EscalationKind::NoProgress));
    assert_eq!(question.context, "no such file");
    assert_eq!(question.question, "How should A continue?");
    assert_eq!(question.options.len(), 3);
}

#[test]
fn a_story_with_work_in_the_tree_continues_unless_it_cannot() {
    let new = History::new;
    let begun = || new().tried("B", Verdict::Progress);
    let urgent = || story("A").ranked(0.0);
    let b = || story("B").ranked(9.0);
    for (case, history, backlog, policy, expected) in [
        ("before a higher priority", begun(), backlog([urgent(), b()]), attended(), attempt("B")),
        ("wanted alone", begun(), backlog([urgent(), b()]), only("B"), attempt("B")),
        ("another is wanted", begun(), backlog([urgent(), b()]), only("A"), shelve("B")),
        (
            "another is wanted that cannot start",
            begun(),
            backlog([urgent().after(&["B"]), b()]),
            only("A"),
            Action::Stop(StopReason::NothingToSelect {
                blocked: vec![Blocked {
                    story: id("A"),
                    because: Because::WaitsForOpen { on: id("B") },
                }],
            }),
        ),
        (
            "parked",
            begun().raised("B").parked("B"),
            backlog([urgent(), b()]),
            attended(),
            shelve("B"),
        ),
        ("passing", begun(), backlog([urgent(), b().passing()]), attended(), let_go("B")),
        ("skipped", begun(), backlog([urgent(), b().skipped()]), attended(), shelve("B")),
        ("removed", begun(), backlog([urgent()]), attended(), shelve("B")),
        ("blocked", begun(), backlog([urgent(), b().after(&["A"])]), attended(), shelve("B")),
        (
            "out of the way",
            begun().shelved("B", None),
            backlog([urgent(), b()]),
            attended(),
            attempt("A"),
        ),
    ] {
        assert_eq!(next(&history, &backlog, &policy), expected, "{case}");
    }
}

#[test]
fn a_story_that_failed_too_often_starts_over() {
    let after = |count| Policy { fresh_start_after: Some(count), ..attended() };
    let two = two();
    let other = |number: u32| failed(["x", "y", "z"][number as usize % 3]);
    let fails = |times: u32| {
        (0..times).fold(History::new(), |history, number| history.tried("A", other(number)))
    };
    let over = || Action::StartOver { story: id("A"), to: crate::decide::samples::base("first") };
    for (case, history, policy, expected) in [
        ("once less", fails(2), after(3), attempt("A")),
        ("often enough", fails(3), after(3), over()),
        ("the first time", fails(1), after(1), over()),
        ("never", fails(3), attended(), attempt("A")),
        ("progress between", fails(2).tried("A", Verdict::Progress), after(2), attempt("A")),
        (
            "a bad day of the service between does not count",
            fails(2).tried("A", Verdict::Interrupted),
            after(3),
            attempt("A"),
        ),
        ("the human had a say", fails(3).answered("A", Answer::Retry), after(3), attempt("A")),
        ("a question first", fails(3).raised("A"), after(3), ask("A")),
        ("parked: it leaves", fails(3).raised("A").parked("A"), after(3), shelve("A")),
        ("another's failures", fails(2).shelved("A", None), after(2), attempt("A")),
        (
            "only once",
            fails(3).returning("A", Cause::FreshStart).returned("A", None),
            after(3),
            attempt("A"),
        ),
        ("a new run", fails(3).run(&["A"]), after(3), attempt("A")),
        ("before the limit", fails(3), Policy { max_iterations: Some(3), ..after(3) }, over()),
    ] {
        assert_eq!(next(&history, &two, &policy), expected, "{case}");
    }
}

#[test]
fn a_return_that_was_planned_comes_before_all_but_a_close() {
    let back = Action::RollBack { story: id("A") };
    for why in [Cause::FreshStart, Cause::Elsewhere, Cause::Rewritten] {
        let planned = History::new().tried("A", failed("x")).returning("A", why);
        assert_eq!(next(&planned, &two(), &attended()), back);
        let continued = planned.clone().then(crate::model::Event::RunContinued);
        assert_eq!(next(&continued, &two(), &attended()), back, "after a crash");
        let asked = planned.clone().raised("A").answered("A", Answer::Abort);
        assert_eq!(next(&asked, &two(), &attended()), back, "before it stops");
        assert_eq!(next(&planned.returned("A", Some("r")), &two(), &attended()), attempt("A"));
    }
}

#[test]
fn an_agent_that_gets_nowhere_is_not_just_waited_for() {
    let running = History::new().started("A");
    let under_way = running.state.attempts.iter().next().unwrap().start.attempt.clone();
    for step in [StuckStep::Nudge, StuckStep::Ask, StuckStep::Terminate] {
        let due = StuckDue { attempt: under_way.clone(), step };
        let moment = Observed { stuck: vec![due.clone()], ..Observed::default() };
        let next = |state| decide(state, &two(), &attended(), &moment);
        assert_eq!(next(&running.state), Action::Unstick(due));
        let over = running.clone().ended(Verdict::Progress, Usage::default());
        assert_eq!(next(&over.state), attempt("A"), "that one is over");
    }
}

#[test]
fn limits_hold_and_count_what_they_should() {
    let progress = Verdict::Progress;
    let tried = |times| History::new().tried_often("A", &progress, times);
    let once = |attempts_before| Policy { once: true, attempts_before, ..attended() };
    let stop = Action::Stop;
    for (case, history, policy, expected) in [
        ("below the limit", tried(1), at_most(2), attempt("A")),
        ("at it", tried(2), at_most(2), stop(StopReason::MaxIterations { limit: 2 })),
        ("no limit", tried(4), attended(), attempt("A")),
        ("none allowed", tried(0), at_most(0), stop(StopReason::MaxIterations { limit: 0 })),
        ("once, not yet", tried(0), once(0), attempt("A")),
        ("once, done", tried(1), once(0), stop(StopReason::Once)),
        ("once counts this process only", tried(1), once(1), attempt("A")),
        ("once, done after others", tried(2), once(1), stop(StopReason::Once)),
    ] {
        assert_eq!(next(&history, &two(), &policy), expected, "{case}");
    }
}

#[test]
fn a_disk_that_is_nearly_full_stops_what_would_fill_it() {
    let new = History::new;
    let progress = || new().tried("A", Verdict::Progress);
    let planned = || new().tried("A", Verdict::Done).planned("A");
    let limited = || {
        let fault = ServiceFault::Limit { resets_at: Some(1_000) };
        new().tried("A", Verdict::NotTheStory { fault, error: "limit".into() })
    };
    let wanting = |floor| Policy { min_free_disk: floor, ..attended() };
    let room = |bytes| Some(FreeDisk { bytes, place: "/here".into() });
    let low = Action::Stop(StopReason::DiskLow { free: 9, floor: 10, place: "/here".into() });
    let all_pass = || backlog([story("A").passing(), story("B").passing()]);
    let close = Action::Integrate { story: id("A") };
    for (case, history, backlog, floor, disk, expected) in [
        ("enough", progress(), two(), Some(10), room(10), attempt("A")),
        ("too little", progress(), two(), Some(10), room(9), low.clone()),
        ("nobody looks", progress(), two(), None, room(0), attempt("A")),
        ("nobody can tell", progress(), two(), Some(10), None, attempt("A")),
        (
            "an agent runs",
            new().started("A"),
            two(),
            Some(10),
            room(9),
            Action::End(EndCause::DiskLow),
        ),
        ("an agent has room", new().started("A"), two(), Some(10), room(10), Action::Wait(None)),
        ("a claim is closed first", planned(), two(), Some(10), room(9), close),
        (
            "a claim is not checked",
            new().tried("A", Verdict::Done),
            two(),
            Some(10),
            room(9),
            low.clone(),
        ),
        ("an answer could not help", new().raised("A"), two(), Some(10), room(9), low.clone()),
        ("a wait does not outlast it", limited(), two(), Some(10), room(9), low.clone()),
        (
            "what is done is done",
            new(),
            all_pass(),
            Some(10),
            room(9),
            Action::Stop(StopReason::AllDone),
        ),
    ] {
        let moment = Observed { disk, ..Observed::default() };
        let next = decide(&history.state, &backlog, &wanting(floor), &moment);
        assert_eq!(next, expected, "{case}");
    }
}

#[test]
fn a_run_that_is_complete_is_done_whatever_its_limits() {
    let last = History::new().tried("A", Verdict::Done).closed("A");
    let done = || backlog([story("A").passing(), story("B").skipped()]);
    for policy in [at_most(1), Policy { once: true, ..policy() }, only("A")] {
        assert_eq!(next(&last, &done(), &policy), Action::Stop(StopReason::AllDone));
    }
    let rest = backlog([story("A").passing(), story("B")]);
    let story_done = Action::Stop(StopReason::StoryDone { story: id("A") });
    for policy in [only("A"), Policy { once: true, max_iterations: Some(1), ..only("A") }] {
        assert_eq!(next(&last, &rest, &policy), story_done);
    }
}

#[test]
fn a_run_without_anything_to_start_says_why() {
    let parked = History::new().raised("A").parked("A");
    let blocked = vec![
        Blocked { story: id("A"), because: Because::Parked },
        Blocked { story: id("B"), because: Because::WaitsForParked { on: id("A") } },
    ];
    assert_eq!(
        next(&parked, &backlog([story("A"), story("B").after(&["A"])]), &attended()),
        Action::Stop(StopReason::NothingToSelect { blocked })
    );
}

#[test]
fn an_accepted_claim_is_closed_once() {
    let planned = History::new().tried("A", Verdict::Done).planned("A");
    let close = Action::Integrate { story: id("A") };
    let continued = planned.clone().then(Event::RunContinued);
    assert_eq!(next(&continued, &two(), &policy()), close);
    let rest = backlog([story("A").passing(), story("B")]);
    assert_eq!(next(&planned.clone().closed("A"), &rest, &policy()), attempt("B"));
    // Its story is gone: the work is kept, and nothing is left to close.
    assert_eq!(next(&planned.shelved("A", None), &backlog([story("B")]), &policy()), attempt("B"));
}

fn failing(fault: ServiceFault) -> Verdict {
    Verdict::NotTheStory { fault, error: "not today".into() }
}

fn is_wait(next: &Action) -> bool {
    matches!(next, Action::Wait(Some(_)))
}

#[test]
fn a_wait_that_the_human_cuts_short_is_over_until_the_next_failure() {
    let limit = |resets_at| failing(ServiceFault::Limit { resets_at });
    let stop = Policy { on_limit: OnLimit::Stop, ..attended() };
    for verdict in [
        limit(Some(100_000)),
        limit(None),
        failing(ServiceFault::Outage),
        failing(ServiceFault::Silence),
    ] {
        let next = |history: &History| next(history, &two(), &attended());
        let waiting = History::new().tried("A", verdict.clone());
        let cut_short = waiting.clone().then(Event::WaitCutShort);
        let killed = || cut_short.clone().then(Event::RunContinued);
        let interrupted = cut_short.clone().tried("A", Verdict::Interrupted);
        for (case, history, waits) in [
            ("nobody hurries", waiting.clone(), true),
            ("nobody hurries, and it was killed", waiting.then(Event::RunContinued), true),
            ("cut short", cut_short.clone(), false),
            ("cut short and killed right after", killed(), false),
            ("killed during the attempt", killed().started("A").then(Event::RunContinued), false),
            ("interrupted during the attempt", interrupted, false),
            ("the same fault again", cut_short.clone().tried("A", verdict.clone()), true),
        ] {
            let expected =
                if waits { is_wait(&next(&history)) } else { next(&history) == attempt("A") };
            assert!(expected, "{case}, {verdict:?}: {:?}", next(&history));
        }
        let now = super::decide(&cut_short.state, &two(), &stop, &Observed::default());
        assert_eq!(now, attempt("A"), "the human said so after the policy was made");
    }
    let well = History::new().then(Event::WaitCutShort);
    assert!(is_wait(&next(&well.tried("A", failing(ServiceFault::Outage)), &two(), &attended())));
}

fn low_disk() -> Observed {
    let disk = Some(FreeDisk { bytes: 1, place: "/".into() });
    Observed { disk, ..Observed::default() }
}

#[test]
fn no_baseline_is_taken_on_a_full_disk() {
    let policy = Policy { baseline: true, min_free_disk: Some(2), ..attended() };
    let new = History::new();
    assert_eq!(next(&new, &two(), &policy), Action::Baseline);
    let action = decide(&new.state, &two(), &policy, &low_disk());
    assert!(matches!(action, Action::Stop(StopReason::DiskLow { .. })), "{action:?}");
}

#[test]
fn no_baseline_is_taken_when_nothing_is_left_to_do() {
    let policy = Policy { baseline: true, ..attended() };
    let done = backlog([story("A").passing(), story("B").skipped()]);
    assert_eq!(next(&History::new(), &done, &policy), Action::Stop(StopReason::AllDone));
}

#[test]
fn a_story_is_looked_at_once_before_its_first_attempt() {
    let policy = Policy { first_looks: [id("A")].into(), ..attended() };
    let look = Action::FirstLook { story: id("A") };
    let attempt = Action::Attempt { story: id("A"), lane: LaneId::HOME };
    let taken = Event::BaselineTaken { reports: vec![], at: None, story: Some(id("A")) };
    let looked = History::new().then(taken);
    let tried = History::new().tried("A", Verdict::Progress);
    for (history, expected) in [(History::new(), &look), (looked, &attempt), (tried, &attempt)] {
        assert_eq!(next(&history, &two(), &policy), *expected);
    }
    assert_eq!(next(&History::new(), &two(), &attended()), attempt);
}

#[test]
fn nothing_stops_the_run_before_a_decided_mark_is_written() {
    let claimed = || History::new().tried("A", Verdict::Done);
    let skipped = claimed().answered("A", Answer::Skip).shelved("A", Some("refs/a"));
    let floor = Policy { min_free_disk: Some(2), ..attended() };
    for settling in [claimed().planned("A"), skipped] {
        for (policy, observed) in [(at_most(1), Observed::default()), (floor.clone(), low_disk())] {
            let broken = Observed { backlog_usable: false, ..observed };
            let action = decide(&settling.state, &two(), &policy, &broken);
            assert_eq!(action, Action::Wait(None), "{policy:?}");
        }
    }
}

#[test]
fn nothing_is_asked_about_a_story_while_its_attempt_runs() {
    let once = Policy { max_attempts: NonZeroU32::MIN, ..attended() };
    let last = History::new().started("A");
    assert_eq!(next(&last, &two(), &once), Action::Wait(None));
    assert!(raised(&last.ended(Verdict::Progress, Usage::default()), &once).is_some());
}

fn lanes(count: u32) -> Policy {
    Policy { lanes: NonZeroU32::new(count).unwrap(), ..attended() }
}

#[test]
fn work_in_a_lane_that_is_not_there_any_more_is_shelved() {
    let history =
        History::new().started_in("A", LaneId(1)).ended(Verdict::Progress, Usage::default());
    let goes_on = Action::Attempt { story: id("A"), lane: LaneId(1) };
    let filled = history.clone().started("B");
    assert_eq!(next(&filled, &two(), &lanes(2)), goes_on);
    assert_eq!(next(&history, &two(), &lanes(1)), shelve("A"));
    let shelved = history.shelved("A", Some("refs/a"));
    assert_eq!(next(&shelved, &two(), &lanes(1)), attempt("A"));
}

/// A was accepted after its work had left the first lane, where B is now.
fn accepted_outside_of_its_lane() -> History {
    let asked = History::new().tried("A", Verdict::Done).raised("A").shelved("A", Some("refs/a"));
    asked.started("B").answered("A", Answer::Accept)
}

#[test]
fn an_accepted_claim_waits_for_the_first_lane_and_for_the_claim_in_it() {
    let integrate = |story: &str| Action::Integrate { story: id(story) };
    let busy = accepted_outside_of_its_lane();
    assert_eq!(next(&busy, &two(), &lanes(1)), Action::Wait(None));
    let claimed = busy.clone().ended(Verdict::Done, Usage::default());
    let check = Action::Check { story: id("B"), attempt: "attempt 2".into() };
    assert_eq!(next(&claimed, &two(), &lanes(1)), check);
    assert_eq!(next(&claimed.planned("B"), &two(), &lanes(1)), integrate("B"));
    let failed = busy.ended(failed("x"), Usage::default());
    assert_eq!(next(&failed, &two(), &lanes(1)), shelve("B"));
    let free = failed.shelved("B", Some("refs/b"));
    assert_eq!(next(&free, &two(), &lanes(1)), integrate("A"));
}

#[test]
fn with_several_lanes_claims_land_where_no_agent_works() {
    let three = backlog([story("A"), story("B"), story("C")]);
    let asked = History::new().tried("A", Verdict::Done).raised("A").shelved("A", Some("refs/a"));
    let working = asked.started_in("B", LaneId(1)).started_in("C", LaneId(2));
    let accepted = working.clone().answered("A", Answer::Accept);
    let integrate = |story: &str| Action::Integrate { story: id(story) };
    assert_eq!(next(&accepted, &three, &lanes(2)), integrate("A"));
    // One after the other.
    let observed = |job| {
        let tasks = Tasks { jobs: [(LaneId::HOME, job)].into(), ..Tasks::default() };
        Observed { tasks, ..Observed::default() }
    };
    for job in [LaneJob::Integrate, LaneJob::Skip] {
        let action = decide(&accepted.state, &three, &lanes(2), &observed(job));
        assert_eq!(action, Action::Wait(None), "{job:?}");
    }
}

#[test]
fn an_accepted_claim_of_another_story_stays_where_it_is() {
    let history = History::new().tried("A", Verdict::Done).planned("A");
    let broken = Observed { backlog_usable: false, ..Observed::default() };
    let action = decide(&history.state, &two(), &only("B"), &broken);
    assert_eq!(action, Action::Wait(None));
}

fn with(tasks: Tasks) -> Observed {
    Observed { tasks, ..Observed::default() }
}

#[test]
fn nothing_starts_before_all_that_was_ordered_to_end_has_ended() {
    let history = History::new().started("A");
    let ending = Tasks { ending: true, ..Tasks::default() };
    let action = decide(&history.state, &two(), &lanes(2), &with(ending));
    assert_eq!(action, Action::Wait(None));
}

#[test]
fn lanes_are_made_ready_one_after_the_other() {
    let in_lane_1 = |job| with(Tasks { jobs: [(LaneId(1), job)].into(), ..Tasks::default() });
    let next = |job| decide(&History::new().state, &two(), &lanes(2), &in_lane_1(job));
    assert_eq!(next(LaneJob::Prepare), Action::Wait(None));
    assert_eq!(next(LaneJob::Keep), Action::Attempt { story: id("A"), lane: LaneId(2) });
}

#[test]
fn a_story_is_not_skipped_while_its_gates_run() {
    let history = History::new().tried("A", Verdict::Done).answered("A", Answer::Skip);
    let checking = Tasks { checking: [id("A")].into(), ..Tasks::default() };
    let action = decide(&history.state, &two(), &lanes(1), &with(checking));
    assert_eq!(action, Action::Wait(None));
    assert_eq!(next(&history, &two(), &lanes(1)), shelve("A"));
    let shelved = history.shelved("A", Some("refs/a"));
    assert_eq!(next(&shelved, &two(), &lanes(1)), skip("A"));
    let checking = Tasks { checking: [id("A")].into(), ..Tasks::default() };
    let action = decide(&shelved.state, &two(), &only("A"), &with(checking));
    assert_eq!(action, Action::Wait(None), "wherever its work is");
}

#[test]
fn a_story_is_neither_started_nor_skipped_while_its_attempt_runs_wherever_its_work_is() {
    let running = History::new().started_in("A", LaneId(1)).shelved("A", None);
    let alone = Policy { lanes: NonZeroU32::new(2).unwrap(), ..only("A") };
    assert_eq!(next(&running, &two(), &alone), Action::Wait(None));
    let skipped = running.answered("A", Answer::Skip);
    assert_eq!(next(&skipped, &two(), &alone), Action::Wait(None));
}

#[test]
fn a_limit_waits_for_a_question_that_is_being_answered() {
    let asked = History::new().tried("A", Verdict::Progress).raised("A");
    let mut observed = Observed::default();
    observed.tasks.asking.insert(id("A"));
    let decided = |observed: &Observed| decide(&asked.state, &two(), &at_most(1), observed);
    assert_eq!(decided(&observed), Action::Wait(None), "what is typed must not be lost");
    let parked = asked.clone().parked("A");
    let shelved = parked.shelved("A", None);
    let stop = Action::Stop(StopReason::MaxIterations { limit: 1 });
    assert_eq!(decide(&shelved.state, &two(), &at_most(1), &Observed::default()), stop);
}

#[test]
fn claims_queue_for_the_lane_where_they_are_checked() {
    let three = backlog([story("A"), story("B"), story("C")]);
    let check = |story: &str, attempt: &str| Action::Check {
        story: id(story),
        attempt: attempt.to_owned(),
    };
    let shelved = |history: History, story: &str| {
        let reference = Some(format!("refs/{story}"));
        history.then(Event::WorkSetAside { story: id(story), reference, claimed: true })
    };
    let landed = |history: History, story: &str| {
        history.then(Event::BaseSet { story: id(story), base: base("tip"), lane: LaneId::HOME })
    };
    let unshelved = |history: History, story: &str| {
        let (story, reference) = (id(story), format!("refs/{story}"));
        history.then(Event::WorkBroughtBack { story, reference, conflicts: vec![] })
    };
    let working = History::new().started_in("A", LaneId(1)).started_in("B", LaneId(2));
    let done = |history: History| history.ended(Verdict::Done, Usage::default());
    let claimed = done(done(working));
    assert_eq!(next(&claimed, &three, &lanes(2)), shelve("A"));
    let claimed = shelved(claimed, "A");
    assert_eq!(next(&claimed, &three, &lanes(2)), shelve("B"));
    let queued = shelved(claimed, "B");
    assert_eq!(next(&queued, &three, &lanes(2)), Action::Land { story: id("A") });
    let home = landed(queued, "A");
    // Half of the work may be there if ralph died here.
    assert_eq!(next(&home, &three, &lanes(2)), Action::Land { story: id("A") });
    let home = unshelved(home, "A");
    assert_eq!(next(&home, &three, &lanes(2)), check("A", "attempt 1"));
    // B waits for its turn, and a lane that is free is filled.
    let tasks = Tasks { checking: [id("A")].into(), ..Tasks::default() };
    let action = decide(&home.state, &three, &lanes(2), &with(tasks));
    assert_eq!(action, Action::Attempt { story: id("C"), lane: LaneId(1) });
}
