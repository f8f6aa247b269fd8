use crate::decide::samples::{History, base, escalation, failed, guidance, id};
use crate::model::{
    AttemptReason, Cause, ChangeKind, Escalation, EscalationKind, Handoff, HandoffTrigger,
    HeldChange, LaneId, ServiceFault, Usage, Usd, Verdict,
};
use crate::state::stagnation::Stagnation;
use crate::state::story::{Acceptance, Stage, StoryState, StoryTotals};
use crate::state::work::Work;

use super::*;

fn usage(cost_usd: Option<f64>, tokens: u64) -> Usage {
    Usage {
        cost_usd,
        input_tokens: tokens,
        output_tokens: tokens + 1,
        cache_read_tokens: tokens + 2,
        cache_write_tokens: tokens + 3,
        turns: tokens + 4,
        tool_calls: tokens + 5,
    }
}

/// A failed twice and closed, B was parked and set aside, C is skipped.
fn a_whole_run() -> History {
    History::new()
        .started("A")
        .ended(failed("x"), usage(Some(0.25), 10))
        .tried("A", failed("x"))
        .started("A")
        .ended(Verdict::Done, usage(Some(0.5), 100))
        .planned("A")
        .closed("A")
        .tried("B", Verdict::Escalated { escalation: escalation("stuck") })
        .raised("B")
        .parked("B")
        .shelved("B", Some("refs/B/1"))
        .raised("C")
        .answered("C", Answer::Skip)
        .skipped("C")
}

#[test]
fn a_whole_run_adds_up() {
    let history = a_whole_run();
    let state = &history.state;
    assert_eq!(state.attempts.iterations, 4);
    assert_eq!((state.attempts.count(), history.in_home()), (0, None));
    assert_eq!(state.cost_usd(), Some(0.75));
    assert!(state.is_parked(&id("B")) && !state.is_parked(&id("A")));
    assert!(state.is_open() && !state.aborted);
    let a = history.of("A");
    assert_eq!(a.stage, Stage::Closed { commit: "commit of A".into() });
    assert_eq!((a.totals.attempts, a.totals.elapsed_ms), (3, 300));
    assert_eq!(history.of("C").stage, Stage::Skipped);
    let reason = StopReason::Aborted;
    let ended = history.then(Event::RunEnded { reason: reason.clone() });
    assert_eq!(ended.state.ended, Some(reason));
    assert!(!ended.state.is_open());
}

#[test]
fn what_attempts_used_is_summed_and_unknown_costs_stay_unknown() {
    let a = a_whole_run().of("A").totals.usage;
    assert_eq!(a, Usage { cost_usd: Some(0.75), ..sum(&usage(None, 10), &usage(None, 100)) });
    let silent = History::new().tried("A", Verdict::Progress);
    assert_eq!((silent.of("A").totals.usage.cost_usd, silent.state.cost_usd()), (None, None));
    let once = silent.started("B").ended(Verdict::Progress, usage(Some(0.5), 0));
    assert_eq!(once.state.cost_usd(), Some(0.5));
}

fn sum(a: &Usage, b: &Usage) -> Usage {
    Usage {
        cost_usd: None,
        input_tokens: a.input_tokens + b.input_tokens,
        output_tokens: a.output_tokens + b.output_tokens,
        cache_read_tokens: a.cache_read_tokens + b.cache_read_tokens,
        cache_write_tokens: a.cache_write_tokens + b.cache_write_tokens,
        turns: a.turns + b.turns,
        tool_calls: a.tool_calls + b.tool_calls,
    }
}

#[test]
fn an_attempt_holds_the_tree_and_the_storys_first_base() {
    let history = History::new().started("A");
    assert_eq!(history.in_home(), Some(id("A")));
    assert!(history.state.attempts.get("attempt 1").is_some());
    assert_eq!(history.of("A").head, Some("commit of first".into()));
    let again = history
        .ended(Verdict::Progress, Usage::default())
        .then(Event::BaseSet { story: id("A"), base: base("moved"), lane: LaneId::HOME })
        .tried("A", Verdict::Progress);
    assert!(again.state.attempts.is_idle());
    let a = again.of("A");
    assert_eq!((a.base(), a.head.as_deref()), (Some(&base("moved")), Some("head after")));
    assert_eq!((a.title.as_str(), a.totals.attempts, a.tries), ("Title of A", 2, 2));
}

#[test]
fn the_next_attempt_gets_the_last_error_until_one_makes_progress() {
    let failed = History::new().tried("A", failed("x")).tried("A", failed("y"));
    assert_eq!(failed.of("A").last_error.as_deref(), Some("y"));
    let well = failed.tried("A", Verdict::Progress);
    assert_eq!((well.of("A").last_error, well.of("A").stagnation), (None, Stagnation::default()));
}

#[test]
fn every_answer_does_its_part() {
    let asked = || History::new().tried("A", failed("x")).raised("A").parked("A");
    let option = Answer::Option { number: 2, text: "use v2".into() };
    let none: &[&str] = &[];
    for (answer, said, skips) in [
        (Answer::Retry, none, false),
        (option, &["Proceed with option 2: use v2"], false),
        (guidance("read the docs"), &["read the docs"], false),
        (Answer::Skip, none, true),
    ] {
        let history = asked().answered("A", answer.clone());
        let a = history.of("A");
        assert_eq!((a.guidance.as_slice(), a.stage == Stage::Skipping), (&*owned(said), skips));
        assert!(a.question().is_none());
        assert_eq!((a.stagnation, a.tries), (Stagnation::default(), 0), "{answer:?}");
        assert_eq!(a.last_error, Some("x".into()), "the next attempt still hears of it");
        assert!(!history.state.aborted);
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn guidance_adds_up_oldest_first() {
    let history = History::new()
        .answered("A", guidance("first"))
        .answered("A", Answer::Option { number: 1, text: "second".into() })
        .answered("A", guidance("third"));
    assert_eq!(history.of("A").guidance, ["first", "Proceed with option 1: second", "third"]);
}

#[test]
fn an_abort_keeps_the_question_for_the_next_run() {
    let history = History::new().tried("A", failed("x")).raised("A").answered("A", Answer::Abort);
    assert!(history.state.aborted);
    let a = history.of("A");
    assert!(a.question().is_some());
    assert_eq!((a.tries, a.stagnation == Stagnation::default()), (1, false));
    assert!(!history.clone().then(Event::RunContinued).state.aborted);
    assert!(!history.run(&["A"]).state.aborted);
}

#[test]
fn settling_forgets_everything_but_the_figures() {
    let busy = || {
        History::new()
            .answered("A", guidance("x"))
            .shelved("A", Some("refs/A/1"))
            .started("A")
            .ended(failed("x"), usage(Some(0.5), 1))
            .raised("A")
            .planned("A")
    };
    for (settled, stage) in [
        (busy().closed("A"), Stage::Closed { commit: "commit of A".into() }),
        (busy().answered("A", Answer::Skip).skipped("A"), Stage::Skipped),
    ] {
        let figures = StoryState {
            stage,
            title: "Title of A".into(),
            iteration: 1,
            totals: StoryTotals {
                attempts: 1,
                elapsed_ms: 100,
                usage: usage(Some(0.5), 1),
                cost: Usd::of(0.5),
            },
            ..StoryState::default()
        };
        assert_eq!(settled.of("A"), figures);
        assert_eq!(settled.in_home(), None);
        assert!(!settled.of("A").is_worth_carrying());
    }
    let other = History::new().started("B").closed("A");
    assert_eq!(other.in_home(), Some(id("B")));
}

#[test]
fn a_fresh_start_follows_the_base_and_a_lost_branch_does_not() {
    let moved = || Event::BaseSet { story: id("A"), base: base("moved"), lane: LaneId::HOME };
    for (why, follows) in [(Cause::FreshStart, true), (Cause::Rewritten, false)] {
        let planned = History::new().started("A").returning("A", why);
        let before = planned.of("A").work.roll_back().unwrap().to.clone();
        let to = planned.then(moved()).of("A").work.roll_back().unwrap().to.clone();
        assert_eq!(to, if follows { base("moved") } else { before }, "{why:?}");
    }
}

#[test]
fn shelved_work_leaves_the_tree_and_comes_back() {
    let aside = History::new().tried("A", Verdict::Done).planned("A").shelved("A", Some("r/1"));
    let a = aside.of("A");
    assert_eq!((aside.in_home(), a.base(), &a.stage), (None, None, &Stage::Open));
    assert_eq!((a.work.shelved().unwrap().as_str(), a.kept_count), ("r/1", 1));
    let brought =
        Event::WorkBroughtBack { story: id("A"), reference: "r/1".into(), conflicts: Vec::new() };
    let back = aside
        .then(Event::BaseSet { story: id("A"), base: base("now"), lane: LaneId::HOME })
        .then(brought);
    let a = back.of("A");
    assert_eq!((a.work.shelved(), a.kept_count, a.base()), (None, 1, Some(&base("now"))));
    assert_eq!((a.head.as_deref(), back.in_home()), (Some("commit of now"), Some(id("A"))));
    // Nothing had changed: there is nothing to keep, and what was kept before stays.
    let empty = History::new().shelved("A", Some("r/1")).shelved("A", None);
    let a = empty.of("A");
    assert_eq!((a.work, a.kept_count), (Work::Shelved("r/1".into()), 1));
    let other = History::new().started("B").shelved("A", None);
    assert_eq!(other.in_home(), Some(id("B")));
}

fn based(story: &str) -> Event {
    Event::BaseSet { story: id(story), base: base("now"), lane: LaneId::HOME }
}

fn brought_back(story: &str, reference: &str, conflicts: &[&str]) -> Event {
    let (story, reference) = (id(story), reference.to_owned());
    Event::WorkBroughtBack { story, reference, conflicts: owned(conflicts) }
}

#[test]
fn work_at_a_ref_is_known_until_it_is_in_the_tree() {
    let shelved = |history: &History| history.of("A").work.shelved().cloned();
    let refs = |history: &History| history.state.kept_refs().cloned().collect::<Vec<_>>();
    let aside = History::new().tried("A", Verdict::Progress).shelved("A", Some("r/1"));
    let coming = aside.then(based("A"));
    assert_eq!((shelved(&coming), refs(&coming)), (Some("r/1".into()), owned(&["r/1"])));
    let back = coming.clone().then(brought_back("A", "r/1", &[]));
    assert_eq!((shelved(&back), refs(&back)), (None, Vec::new()));
    // It conflicts, so it is still there only.
    let conflicting = coming.then(brought_back("A", "r/1", &["a.rs"]));
    assert_eq!((shelved(&conflicting), refs(&conflicting)), (None, owned(&["r/1"])));
    let again = conflicting.clone().then(based("A"));
    assert_eq!(again.of("A").work.conflicting(), Some(&"r/1".to_owned()));
    assert_eq!(shelved(&conflicting.clone().shelved("A", None)), Some("r/1".into()));
    assert_eq!(shelved(&conflicting.shelved("A", Some("r/2"))), Some("r/2".into()));
}

#[test]
fn a_planned_roll_back_outlives_a_base_that_moves() {
    let planned = History::new().tried("A", failed("x")).returning("A", Cause::Rewritten);
    let moved = planned.then(based("A"));
    assert!(moved.of("A").work.roll_back().is_some() && moved.state.is_rolling_back());
}

#[test]
fn what_the_human_decided_during_an_attempt_outlives_its_claim() {
    let running = || History::new().started("A");
    let done = |history: History| history.ended(Verdict::Done, Usage::default());
    assert_eq!(done(running().answered("A", Answer::Skip)).of("A").stage, Stage::Skipping);
    let asked = done(running().raised("A"));
    assert!(asked.of("A").question().is_some());
    assert_eq!(asked.of("A").stage.claim().map(|claim| claim.iteration), Some(1));
    // Another attempt begins, and that claim is no longer the one to accept.
    assert_eq!(asked.started("A").answered("A", Answer::Accept).of("A").stage, Stage::Open);
}

fn change(path: &str) -> HeldChange {
    let (before, changed) = (Some("b".to_owned()), Some("c".to_owned()));
    let (path, what, diff) = (path.to_owned(), format!("{path} changed"), String::new());
    HeldChange { of: ChangeKind::Backlog, path, what, diff, before, changed, hash: None }
}

fn held(paths: &[&str]) -> Event {
    let changes = paths.iter().map(|path| change(path)).collect();
    Event::ChangesHeld { story: id("A"), changes }
}

/// What is held, what is accepted but not there yet, whether the claim stands, and what the next agent
/// is told.
fn decided(history: &History) -> (Vec<HeldChange>, Vec<HeldChange>, bool, usize) {
    let known = history.of("A");
    let claimed = matches!(known.stage, Stage::Claimed(_));
    (known.held.clone(), known.accepted.clone(), claimed, known.guidance.len())
}

#[test]
fn an_answer_decides_about_all_changes_that_were_asked_about() {
    for (verdict, claims) in [(Verdict::Done, true), (Verdict::Progress, false)] {
        let held = History::new().tried("A", verdict).then(held(&["x", "y"])).then(held(&["x"]));
        let asked = held.then(in_question(EscalationKind::Change));
        assert_eq!(decided(&asked).0, [change("y"), change("x")]);
        let (none, told) = (vec![], if claims { 0 } else { 2 });
        for answer in [Answer::Restore, Answer::Retry] {
            let restored = asked.clone().answered("A", answer);
            assert_eq!(decided(&restored), (none.clone(), none.clone(), claims, told));
        }
        let guided = asked.clone().answered("A", Answer::Guidance { text: "so".into() });
        assert_eq!(decided(&guided), (none.clone(), none.clone(), false, 3));
        let later = asked.clone().answered("A", Answer::Abort);
        assert_eq!(decided(&later).0, [change("y"), change("x")]);
        let accepted = asked.answered("A", Answer::Accept);
        let both = vec![change("y"), change("x")];
        assert_eq!(decided(&accepted), (none.clone(), both, claims, 0));
        let (applied, refused) = (vec!["y".to_owned()], vec!["x".to_owned()]);
        let again = Event::ChangesApplied { story: id("A"), applied, refused };
        assert_eq!(decided(&accepted.then(again)), (vec![change("x")], none, claims, 0));
    }
}

#[test]
fn a_question_about_something_else_decides_about_no_change() {
    let asked = History::new().tried("A", Verdict::Progress).then(held(&["x"])).raised("A");
    for answer in [Answer::Retry, Answer::Guidance { text: "so".into() }] {
        assert_eq!(asked.clone().answered("A", answer).of("A").held, [change("x")]);
    }
}

#[test]
fn claims_without_a_change_are_counted_until_the_human_acts() {
    let (error, fingerprint) = ("nothing changed".to_owned(), "n".to_owned());
    let unfounded = Event::ClaimRejected { story: id("A"), error, fingerprint, unfounded: true };
    let once = History::new().tried("A", Verdict::Done).then(unfounded);
    assert_eq!((once.of("A").unfounded, once.of("A").stagnation.unchanged), (1, 1));
    assert_eq!(once.raised("A").answered("A", Answer::Retry).of("A").unfounded, 0);
}

#[test]
fn prompts_that_are_too_long_count_in_a_row() {
    let too_long = || Verdict::PromptTooLong { error: "long".into() };
    let twice = || History::new().tried_often("A", &too_long(), 2);
    assert_eq!(twice().of("A").too_long, 2);
    for between in [Verdict::Progress, Verdict::Done] {
        assert_eq!(twice().tried("A", between.clone()).of("A").too_long, 0, "{between:?}");
    }
}

#[test]
fn a_new_run_keeps_what_is_carried_and_counts_from_zero() {
    let before = History::new()
        .answered("A", guidance("use v2"))
        .shelved("A", Some("refs/A/1"))
        .started("A")
        .ended(failed("x"), usage(Some(0.5), 1))
        .raised("A")
        .parked("A")
        .tried("B", Verdict::Progress)
        .started("A");
    let after = before.clone().run(&["A"]);
    let state = &after.state;
    assert_eq!((state.attempts.iterations, state.attempts.count(), state.cost_usd()), (0, 0, None));
    assert!(state.story(&id("B")).is_none());
    let (old, new) = (before.of("A"), after.of("A"));
    assert_eq!((&new.totals, new.tries), (&StoryTotals::default(), 0));
    assert_eq!(new.stagnation, Stagnation::default());
    assert_eq!((&new.guidance, &new.work, &new.head), (&old.guidance, &old.work, &old.head));
    assert_eq!(new.kept_count, old.kept_count);
    assert_eq!((&new.last_error, &new.title), (&old.last_error, &old.title));
    let (old, new) = (old.question().unwrap(), new.question().unwrap());
    assert_eq!(new.escalation, old.escalation);
    assert!(old.parked && !new.parked);
}

#[test]
fn work_in_the_tree_comes_over_with_its_story_only() {
    let before = || History::new().tried("A", Verdict::Progress);
    assert_eq!(before().run(&["A"]).in_home(), Some(id("A")));
    assert_eq!(before().run(&[]).in_home(), None);
}

#[test]
fn a_continued_run_has_nothing_in_flight_and_keeps_its_figures() {
    let died = History::new().tried("A", failed("x")).started("A").then(Event::RunContinued);
    assert!(died.state.attempts.is_idle());
    assert_eq!(
        (died.state.attempts.iterations, died.of("A").totals.attempts, died.of("A").tries),
        (2, 2, 2)
    );
    assert_eq!(died.in_home(), Some(id("A")));
}

#[test]
fn what_is_worth_carrying() {
    let new = History::new;
    for (case, history, expected) in [
        ("nothing", new().answered("A", Answer::Retry), false),
        ("a question", new().raised("A"), true),
        ("guidance", new().answered("A", guidance("x")), true),
        ("work in the tree", new().tried("A", Verdict::Progress), true),
        ("kept work", new().shelved("A", Some("r/1")), true),
        ("no work", new().tried("A", Verdict::Progress).shelved("A", None), false),
        ("a closed story", new().tried("A", Verdict::Done).closed("A"), false),
    ] {
        assert_eq!(history.of("A").is_worth_carrying(), expected, "{case}");
    }
}

#[test]
fn an_open_run_says_until_when_it_waits() {
    let limit = ServiceFault::Limit { resets_at: Some(100_000) };
    let failing = |fault| Verdict::NotTheStory { fault, error: "not today".into() };
    let waits = || History::new().tried("A", failing(limit.clone()));
    let reason = StopReason::Aborted;
    // The limit's end, and the jitter that comes from the failure's own time.
    let until = 100_000_003;
    for (case, history, now, expected) in [
        ("it waits", waits(), 3, Some(until)),
        ("it still does after a restart", waits().then(Event::RunContinued), 3, Some(until)),
        ("to the last moment", waits(), until - 1, Some(until)),
        ("and not longer", waits(), until, None),
        ("nor than the human wants", waits().then(Event::WaitCutShort), 3, None),
        ("an attempt is under way", waits().started("A"), 3, None),
        ("a run that ended waits for nothing", waits().then(Event::RunEnded { reason }), 3, None),
        ("no fault", History::new(), 3, None),
        ("no wait helps", History::new().tried("A", failing(ServiceFault::Account)), 3, None),
    ] {
        assert_eq!(history.state.wait(now).map(|wait| wait.until), expected, "{case}");
    }
}

fn unfit() -> Event {
    Event::CloseRefused { story: id("A"), error: "too large".into(), unfit: true }
}

fn in_question(kind: EscalationKind) -> Event {
    let question = Escalation { kind, ..escalation("it") };
    Event::QuestionRaised { story: id("A"), question }
}

#[test]
fn refusals_for_the_content_are_counted_until_the_human_has_a_say() {
    let told = History::new().tried("A", Verdict::Done).planned("A").then(unfit());
    assert_eq!((told.of("A").unfit, told.of("A").stage), (1, Stage::Open));
    assert_eq!(told.of("A").last_error.as_deref(), Some("too large"));
    let other = Event::CloseRefused { story: id("A"), error: "merge".into(), unfit: false };
    let again = told.tried("A", Verdict::Done).planned("A").then(other);
    assert_eq!(again.of("A").unfit, 1);
    let asked = again.tried("A", Verdict::Done).planned("A");
    let asked = asked.then(in_question(EscalationKind::Commit)).answered("A", Answer::Retry);
    assert_eq!((asked.of("A").unfit, asked.of("A").stage), (0, Stage::Open));
}

#[test]
fn only_an_answer_about_the_commit_is_one_for_committing_it_as_it_is() {
    for (kind, as_it_is) in [(EscalationKind::Commit, true), (EscalationKind::Claim, false)] {
        let claimed = History::new().tried("A", Verdict::Done).planned("A");
        let accepted = claimed.then(in_question(kind)).answered("A", Answer::Accept);
        let story = accepted.of("A");
        let Stage::Accepted { by, .. } = story.stage else { panic!("{:?}", story.stage) };
        assert_eq!(by, Acceptance::Human { as_it_is });
        let later = accepted.then(unfit()).started("A").of("A");
        assert_eq!(later.stage, Stage::Open, "it was for that claim");
    }
}

#[test]
fn failed_attempts_are_remembered_with_their_work_until_something_else_happens() {
    let kept = |reference: &str| Event::AttemptKept {
        story: id("A"),
        reference: reference.into(),
        changes: "1 file, +1 -0".into(),
    };
    let twice = History::new().tried("A", failed("x")).then(kept("r1")).tried("A", failed("y"));
    let failed_so_far = twice.of("A").failed;
    assert_eq!(failed_so_far.iter().map(|t| t.error.as_str()).collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(
        (failed_so_far[0].reference.as_deref(), failed_so_far[1].reference.as_deref()),
        (Some("r1"), None)
    );
    assert_eq!(twice.of("A").kept_count, 1);
    assert_eq!(twice.clone().tried("A", Verdict::Progress).of("A").failed, []);
    assert_eq!(twice.clone().answered("A", Answer::Retry).of("A").failed, []);

    let over = twice.clone().returning("A", Cause::FreshStart).returned("A", Some("r2"));
    assert_eq!(over.state.kept_refs().collect::<Vec<_>>(), ["r1"], "the next prompt names it");
    let over = over.of("A");
    assert_eq!((over.failed.len(), over.failed_before.len(), over.kept_count), (0, 2, 2));
    assert_eq!((over.base(), &over.head), (Some(&base("first")), &base("first").commit));
    assert_eq!(over.work.shelved(), None, "what failed is not brought back");
    assert_eq!(over.why, AttemptReason::FreshStart);

    let astray = twice.returning("A", Cause::Elsewhere).returned("A", Some("r2")).of("A");
    assert_eq!(astray.failed[1].reference.as_deref(), Some("r2"));
    assert_eq!((astray.failed.len(), astray.failed_before.len()), (2, 0));
}

#[test]
fn an_undone_story_is_open_and_no_crash_is_invented() {
    let closed = History::new().tried("A", Verdict::Done).planned("A").closed("A");
    let ended = closed.then(Event::RunInterrupted { signal: 2 });
    assert!(ended.state.marks.passing.contains(&id("A")));
    let reopened = ended.then(Event::StoryReopened { story: id("A"), commit: None });
    assert!(!reopened.state.marks.passing.contains(&id("A")));
    assert_eq!(reopened.of("A"), StoryState::default());
    assert!(!reopened.state.cut_off);
}

#[test]
fn an_interrupt_that_did_not_wait_for_the_attempt_is_a_cut() {
    let interrupted = || Event::RunInterrupted { signal: 2 };
    assert!(History::new().started("A").then(interrupted()).state.cut_off);
    assert!(!History::new().tried("A", Verdict::Progress).then(interrupted()).state.cut_off);
}

#[test]
fn what_an_agent_leaves_stays_until_its_work_is_gone() {
    let handoff = Handoff { next_step: "go on".into(), ..Handoff::default() };
    let reached = Event::StageReached { story: id("A"), stage: "TESTS_PASS".into() };
    let mut history = History::new().tried("A", Verdict::Progress).then(reached);
    let mut end = history.events.iter().find_map(|recorded| match &recorded.event {
        Event::AttemptEnded(end) => Some((**end).clone()),
        _ => None,
    });
    let end = end.as_mut().unwrap();
    end.signals.handoff = Some(handoff.clone());
    end.triggers = vec![HandoffTrigger::AskedFor];
    history = history.started("A").then(Event::AttemptEnded(Box::new(end.clone())));
    let a = history.of("A");
    assert_eq!(a.handoff, Some((2, handoff.clone())));
    assert_eq!((a.triggers.as_slice(), a.stages.len()), (&[HandoffTrigger::AskedFor][..], 1));
    let silent = history.clone().tried("A", Verdict::Progress).of("A");
    assert_eq!((silent.handoff, silent.triggers), (Some((2, handoff)), vec![]));
    assert_eq!(history.clone().run(&["A"]).of("A").stages, ["TESTS_PASS"]);
    let over = history.clone().returning("A", Cause::FreshStart).returned("A", None).of("A");
    assert_eq!((over.handoff, over.stages.len()), (None, 0));
    let astray = history.clone().returning("A", Cause::Elsewhere).returned("A", None).of("A");
    assert_eq!((astray.handoff, astray.stages.len()), (None, 1));
    let closed = history.planned("A").closed("A").of("A");
    assert_eq!((closed.handoff, closed.stages.len()), (None, 0));
}

#[test]
fn a_second_look_is_wanted_once_and_is_no_failure() {
    let wanted = || Event::SecondLookWanted { story: id("A") };
    let history = History::new().tried("A", failed("x")).tried("A", Verdict::Done).then(wanted());
    let a = history.of("A");
    assert!(a.looked_again && a.stage.claim().is_none());
    assert_eq!((a.last_error.as_ref(), a.failed.len()), (None, 0));
    assert_eq!(a.why, AttemptReason::SecondLook);
    assert!(history.clone().tried("A", Verdict::Progress).of("A").looked_again);
    let over = history.returning("A", Cause::FreshStart).returned("A", None).of("A");
    assert!(!over.looked_again);
}

#[test]
fn attempts_from_before_there_was_a_memory_can_be_read() {
    let history = History::new().tried("A", Verdict::Progress);
    for recorded in &history.events {
        let mut old = serde_json::to_value(&recorded.event).unwrap();
        let fields = old.as_object_mut().unwrap();
        fields
            .retain(|name, _| !["stable", "said", "context", "triggers"].contains(&name.as_str()));
        assert_eq!(serde_json::from_value::<Event>(old).unwrap(), recorded.event);
    }
}
