//! What becomes of claims, and of attempts that failed.

use super::*;
use crate::decide::situation::LaneJob;
use crate::decide::weigh::Gates;
use crate::model::{BranchLoss, GateEnd, LaneId};
use crate::runner::effects::{EndedAttempt, Integration, JobResult};

/// An end with something changed about it.
fn ended_with(happened: Happened, change: impl FnOnce(&mut EndedAttempt)) -> Happened {
    let Happened::AttemptEnded(mut ended) = happened else { panic!("another end") };
    change(&mut ended);
    Happened::AttemptEnded(ended)
}

fn broke_down() -> Happened {
    let outcome = Outcome::NoResult { detail: "gone".into() };
    ended("A1", outcome, AgentSignals::default())
}

/// A, with jobs that do not end by themselves.
fn alone() -> Run {
    let mut run = Run::of(lanes(1), &["A"]);
    run.fake().jobs_last = true;
    run
}

/// The job that integrates A ends like this.
fn integrated(run: &mut Run, how: Integration) {
    run.claims("A1");
    run.passes("A", "A1");
    assert_eq!(run.fake().jobs.pop(), Some((LaneJob::Integrate, id("A"), LaneId::HOME)));
    let (lane, result) = (LaneId::HOME, JobResult::Integrated(how));
    run.then(Happened::JobEnded { lane, story: id("A"), result });
}

#[test]
fn work_that_does_not_count_is_kept_before_the_next_attempt() {
    let unfit = Integration::Unfit { error: "too large".into(), beyond_agent: false };
    let refused = Integration::Refused { error: "no".into() };
    for how in [None, Some(unfit), Some(refused), Some(Integration::Conflicting)] {
        let mut run = alone();
        match how {
            Some(how) => integrated(&mut run, how),
            None => drop(run.then(broke_down())),
        }
        assert_eq!(run.fake().jobs, [(LaneJob::Keep, id("A"), LaneId::HOME)]);
    }
    let mut run = alone();
    run.claims("A1");
    let items = Some(vec![fake::gate(GateEnd::Failed { code: 1 })]);
    let of = Run::gates_of("A", "A1");
    run.then(Happened::GatesEnded { of, items, found: fake::changed() });
    assert_eq!(run.fake().jobs, [(LaneJob::Keep, id("A"), LaneId::HOME)]);
}

#[test]
fn an_attempt_that_lost_the_branch_is_rolled_back_and_not_kept_on_the_way() {
    let mut run = alone();
    let lost =
        |ended: &mut EndedAttempt| ended.inspection.branch_loss = Some(BranchLoss::Elsewhere);
    run.then(ended_with(broke_down(), lost));
    assert_eq!(run.fake().jobs, [(LaneJob::RollBack, id("A"), LaneId::HOME)]);
}

#[test]
fn a_story_that_is_ticked_off_is_claimed_unless_stages_are_left() {
    for (stages_left, follows) in [(false, "gates of A"), (true, "start A2 in 0")] {
        let mut run = Run::of(lanes(1), &["A"]);
        run.did();
        let signals = AgentSignals { stages_left, ..AgentSignals::default() };
        let end = ended("A1", Outcome::Completed, signals);
        run.then(ended_with(end, |ended| ended.inspection.ticked = true));
        run.expect(&[follows]);
    }
}

#[test]
fn stages_are_reached_by_an_agent_that_finished_on_the_branch() {
    let reached = |outcome: Outcome, loss: Option<BranchLoss>| {
        let mut run = Run::of(lanes(1), &["A"]);
        let signals = AgentSignals { stages: vec!["TESTED".into()], ..AgentSignals::default() };
        let end = ended("A1", outcome, signals);
        run.then(ended_with(end, |ended| ended.inspection.branch_loss = loss));
        run.dispatcher.log.state.story(&id("A")).unwrap().stages.len()
    };
    let broke = Outcome::NoResult { detail: "gone".into() };
    assert_eq!(reached(Outcome::Completed, None), 1);
    assert_eq!(reached(broke, None), 0);
    assert_eq!(reached(Outcome::Completed, Some(BranchLoss::Rewritten)), 0);
}

/// The next start ends what is left; until then nothing may work beside it.
#[test]
fn an_agent_whose_end_is_not_proved_ends_the_run() {
    for survivors in [Some(vec!["sleep (7)".to_owned()]), None] {
        let mut run = Run::of(lanes(1), &["A"]);
        run.did();
        let end = ended_with(broke_down(), |ended| ended.processes.survivors = survivors);
        let error = run.then(end).unwrap().unwrap_err();
        let is_it = matches!(error, RunnerError::Survivors(_) | RunnerError::SupervisorLost);
        assert!(is_it, "{error}");
        assert!(run.dispatcher.log.state.attempts.is_idle(), "what it cost is recorded");
        run.expect(&["Stop everything"]);
    }
}

/// An open menu is closed: without an answer its question stays open, and an answer counts.
#[test]
fn an_error_closes_the_menus_and_takes_their_answers() {
    for (asked, is_answer) in [(Asked::NoAnswer, false), (Asked::Answered(Answer::Retry), true)] {
        let mut run = Run::new(lanes(1));
        run.asks("A1");
        run.did();
        let lost = ended("B2", Outcome::Completed, AgentSignals::default());
        let lost = ended_with(lost, |ended| ended.processes.survivors = None);
        run.fake().happens.push_back(lost);
        let about = About::Story(id("A"));
        let error = run.then(Happened::Answered { about, asked }).unwrap().unwrap_err();
        assert!(matches!(error, RunnerError::SupervisorLost), "{error}");
        run.expect(&["Stop everything", "close A"]);
        let last = run.last();
        assert_eq!(matches!(last, Event::QuestionAnswered { .. }), is_answer, "{last:?}");
        assert!(!matches!(last, Event::StoryParked { .. }), "{last:?}");
    }
}

#[test]
fn a_tree_that_cannot_be_inspected_ends_the_run() {
    let mut run = alone();
    let problem = RunnerError::NoLane(LaneId(7));
    let end = ended_with(broke_down(), |ended| ended.inspection.problem = Some(problem));
    assert!(matches!(run.then(end), Some(Err(RunnerError::NoLane(_)))));
    assert_eq!(run.fake().jobs, []);
}

#[test]
fn a_claim_whose_story_is_gone_leaves_the_tree_once() {
    let mut run = Run::of(lanes(1), &["A", "B"]);
    run.fake().jobs_last = true;
    run.claims("A1");
    run.passes("A", "A1");
    run.did();
    let gone = run.fake().file.stories.remove(0);
    run.fake().jobs.clear();
    run.fake().jobs_last = false;
    let (lane, result) = (LaneId::HOME, JobResult::BacklogChanged);
    run.then(Happened::JobEnded { lane, story: id("A"), result });
    run.expect(&["shelve A", "start B2 in 0"]);
    run.fake().file.stories.push(gone);
    run.claims("B2");
    run.passes("B", "B2");
    run.expect(&["gates of B", "integrate B", "start A3 in 0"]);
}

/// Without any gate.
fn ungated() -> RunConfig {
    RunConfig { gates: Gates::default(), ..config(lanes(1)) }
}

fn are_over(run: &mut Run, attempt: &str) {
    let of = Run::gates_of("A", attempt);
    run.then(Happened::GatesEnded { of, items: Some(vec![]), found: fake::changed() });
}

#[test]
fn without_a_gate_a_claim_is_closed_at_once_unless_a_human_must_see_it() {
    let mut run = Run::with(ungated(), &["A"]);
    run.claims("A1");
    run.expect(&["start A1 in 0", "integrate A"]);
    let mut run = Run::with(ungated(), &["A"]);
    run.did();
    run.change_gates();
    run.claims("A1");
    are_over(&mut run, "A1");
    run.expect(&["gates of A", "ask about A"]);
}

#[test]
fn of_two_claims_the_second_is_enough() {
    let mut config = ungated();
    config.settings.require_two_claims = true;
    let mut run = Run::with(config, &["A"]);
    run.claims("A1");
    are_over(&mut run, "A1");
    run.expect(&["start A1 in 0", "gates of A", "start A2 in 0"]);
    run.claims("A2");
    run.expect(&["integrate A"]);
}
