//! Questions, and what goes on while they are open.

use super::*;
use crate::decide::situation::StuckDue;
use crate::decide::stuck::{MORE_TIME, StuckStep};
use crate::model::StuckEvent;

/// A's claim holds, and a human should look at what it changed.
fn doubtful(run: &mut Run) {
    run.change_gates();
    run.claims("A1");
    run.passes("A", "A1");
}

#[test]
fn a_question_does_not_stop_the_work() {
    let mut run = Run::new(lanes(1));
    run.asks("A1");
    run.expect(&["start A1 in 0", "ask about A", "shelve A", "start B2 in 0"]);
    run.asks("B2");
    run.expect(&["ask about B", "shelve B", "start C3 in 0"]);
    assert!(run.answers("A", Answer::Retry).is_none());
    run.expect(&[]);
    run.claims("C3");
    run.passes("C", "C3");
    let done = ["gates of C", "integrate C", "start A4 in 0"];
    run.expect(&done);
    assert!(run.dispatcher.log.state.is_asking(&id("B")), "the other question is still open");
}

#[test]
fn a_shelved_claim_that_is_accepted_waits_for_the_lane() {
    let mut run = Run::new(lanes(1));
    doubtful(&mut run);
    let asked = ["gates of A", "ask about A", "shelve A", "start B2 in 0"];
    assert_eq!(run.did()[1..], asked);
    assert!(run.answers("A", Answer::Accept).is_none());
    run.expect(&[]);
    assert!(run.claims("B2").is_none());
    run.expect(&["gates of B"]);
    // B is in the lane with a claim of its own, which comes first.
    run.passes("B", "B2");
    run.expect(&["integrate B", "integrate A", "start C3 in 0"]);
}

#[test]
fn a_claim_that_left_its_lane_lands_while_others_work() {
    let mut run = Run::new(lanes(2));
    doubtful(&mut run);
    run.did();
    // A has left its lane, where C works now: it lands where no agent works.
    assert!(run.answers("A", Answer::Accept).is_none());
    run.expect(&["integrate A"]);
    run.claims("B2");
    run.passes("B", "B2");
    assert!(run.did().contains(&"integrate B".to_owned()));
}

#[test]
fn a_question_without_an_answer_is_parked() {
    let mut run = Run::of(lanes(1), &["A"]);
    run.asks("A1");
    run.did();
    let end = run.is_silent("A");
    assert!(matches!(stopped(end), StopReason::NothingToSelect { .. }));
    assert!(run.dispatcher.log.state.is_parked(&id("A")));
}

#[test]
fn abort_ends_what_runs_and_then_stops() {
    let mut run = Run::of(lanes(2), &["A", "B"]);
    run.asks("A1");
    run.did();
    assert!(run.answers("A", Answer::Abort).is_none(), "B still runs");
    run.expect(&["Stop everything"]);
    assert!(run.tick().is_none());
    run.expect(&[]);
    let end = run.is_ended("B2");
    assert_eq!(stopped(end), StopReason::Aborted);
    run.expect(&[]);
}

fn stuck(run: &mut Run, step: StuckStep) {
    run.fake().stuck = vec![StuckDue { attempt: "A1".into(), step }];
    run.tick();
}

fn about_the_agent(answer: Answer) -> Happened {
    let about = About::Attempt { attempt: "A1".into(), story: id("A") };
    Happened::Answered { about, asked: Asked::Answered(answer) }
}

fn more_time() -> Answer {
    Answer::Option { number: MORE_TIME, text: "more".into() }
}

#[test]
fn a_stuck_agent_is_reminded_asked_about_and_ended() {
    let mut run = Run::new(lanes(1));
    run.did();
    stuck(&mut run, StuckStep::Nudge);
    assert!(run.did()[0].starts_with("say to A1: This attempt at A"));
    stuck(&mut run, StuckStep::Ask);
    run.expect(&["ask about A1"]);
    run.then(about_the_agent(more_time()));
    run.expect(&["A1 gets more time"]);
    stuck(&mut run, StuckStep::Terminate);
    run.expect(&["end A1: Stuck"]);
    let step = StuckEvent::Ended { minutes: 0 };
    assert_eq!(run.last(), Event::Stuck { story: id("A"), step });
}

#[test]
fn a_question_about_an_agent_goes_with_it() {
    let asked = || {
        let mut run = Run::new(lanes(1));
        stuck(&mut run, StuckStep::Ask);
        run.did();
        run
    };
    let mut run = asked();
    run.claims("A1");
    run.expect(&["withdraw A1", "gates of A"]);
    let mut run = asked();
    stuck(&mut run, StuckStep::Terminate);
    run.expect(&["withdraw A1", "end A1: Stuck"]);
    let mut run = asked();
    run.then(about_the_agent(Answer::Guidance { text: "look there".into() }));
    run.expect(&["say to A1: look there", "A1 gets more time"]);
}

#[test]
fn a_story_that_was_skipped_while_its_agent_ran_is_skipped_whatever_the_agent_said() {
    let mut run = Run::of(lanes(1), &["A", "B"]);
    run.did();
    stuck(&mut run, StuckStep::Ask);
    run.then(about_the_agent(Answer::Skip));
    run.asks("A1");
    assert!(!run.dispatcher.log.state.is_asking(&id("A")));
}

/// A menu is closed before the process ends, whatever ends it.
#[test]
fn a_run_stops_when_every_menu_is_closed() {
    let mut run = Run::of(floor(lanes(1)), &["A", "B"]);
    run.asks("A1");
    run.asks("B2");
    run.did();
    run.answers("A", Answer::Abort);
    run.expect(&["close B"]);
    let end = run.is_silent("B");
    assert_eq!(stopped(end), StopReason::Aborted);
    assert!(!run.dispatcher.log.state.is_parked(&id("B")), "it is asked again");
}

#[test]
fn an_obsolete_question_is_withdrawn() {
    let mut run = Run::of(lanes(1), &["A", "B"]);
    run.asks("A1");
    run.did();
    run.fake().file.stories[0].passes = true;
    run.tick();
    run.expect(&["withdraw A"]);
    run.tick();
    run.expect(&[]);
    run.is_silent("A");
    assert!(!run.dispatcher.log.state.is_parked(&id("A")));
    // Removed from the backlog, with the answer at the same moment.
    let mut run = Run::of(lanes(1), &["A", "B"]);
    run.asks("A1");
    run.did();
    run.fake().file.stories.remove(0);
    run.tick();
    run.expect(&["withdraw A"]);
    let events = run.kept.events.borrow().len();
    run.answers("A", Answer::Retry);
    assert_eq!(run.kept.events.borrow().len(), events);
}

#[test]
fn a_late_answer_counts_as_far_as_it_is_about_the_story() {
    for (answer, counts) in [(more_time(), false), (Answer::Retry, false), (Answer::Skip, true)] {
        let mut run = Run::of(lanes(1), &["A", "B"]);
        stuck(&mut run, StuckStep::Ask);
        run.is_ended("A1");
        run.did();
        let before = run.kept.events.borrow().len();
        run.then(about_the_agent(answer.clone()));
        let events = run.kept.events.borrow();
        let wanted = Event::QuestionAnswered { story: id("A"), answer: answer.clone() };
        let is_there = events.iter().skip(before).any(|recorded| recorded.event == wanted);
        assert_eq!(is_there, counts, "{answer:?}");
    }
}

#[test]
fn late_guidance_is_for_the_next_agent_even_if_it_runs_already() {
    let mut run = Run::of(lanes(1), &["A"]);
    stuck(&mut run, StuckStep::Ask);
    run.did();
    run.is_ended("A1");
    run.expect(&["withdraw A1", "start A2 in 0"]);
    run.then(about_the_agent(Answer::Guidance { text: "look there".into() }));
    run.expect(&["say to A2: look there"]);
}

/// A text that is being written does not keep a run from its end.
#[test]
fn a_withdrawn_question_is_closed_by_an_interrupt() {
    let mut run = Run::new(lanes(1));
    stuck(&mut run, StuckStep::Ask);
    run.claims("A1");
    run.did();
    run.then(Happened::Interrupt(2));
    run.expect(&["close A1", "Stop everything"]);
}

/// Its commit is under way, or done.
#[test]
fn a_late_skip_of_an_accepted_or_closed_story_changes_nothing() {
    for is_closed in [false, true] {
        let mut run = Run::of(lanes(1), &["A", "B"]);
        stuck(&mut run, StuckStep::Ask);
        run.fake().jobs_last = !is_closed;
        run.claims("A1");
        run.passes("A", "A1");
        run.did();
        let before = run.kept.events.borrow().len();
        run.then(about_the_agent(Answer::Skip));
        assert_eq!(run.kept.events.borrow().len(), before);
        if !is_closed {
            run.fake().jobs_last = false;
            run.tick();
        }
        let stage = run.dispatcher.log.state.story(&id("A")).unwrap().stage.clone();
        assert_eq!(stage, crate::state::Stage::Closed { commit: "commit".into() });
        assert!(!run.did().contains(&"skip A".to_owned()));
    }
}

#[test]
fn a_story_that_is_skipped_during_its_gates_is_skipped_after_them() {
    let mut run = Run::of(lanes(1), &["A", "B"]);
    stuck(&mut run, StuckStep::Ask);
    run.claims("A1");
    run.did();
    assert!(run.then(about_the_agent(Answer::Skip)).is_none());
    run.expect(&[]);
    run.passes("A", "A1");
    run.expect(&["shelve A", "skip A", "start B2 in 0"]);
}
