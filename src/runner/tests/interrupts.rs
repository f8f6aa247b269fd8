//! Interrupts, whatever the run is doing.

use super::*;
use crate::decide::situation::StuckDue;
use crate::decide::stuck::StuckStep;
use crate::model::WaitFor;
use crate::state::Stage;
use std::sync::atomic::Ordering;

const INT: i32 = 2;
const KILL_PATIENCE: i64 = 1000;

#[track_caller]
fn interrupted(run: &Run, end: End) {
    assert!(matches!(end, Some(Ok(Ending::Interrupted { signal: INT }))), "{end:?}");
    assert_eq!(run.last(), Event::RunInterrupted { signal: INT });
}

#[test]
fn an_interrupt_ends_an_attempt_first() {
    let mut run = Run::new(lanes(1));
    run.expect(&["start A1 in 0"]);
    assert!(run.then(Happened::Interrupt(INT)).is_none(), "the agent still runs");
    run.expect(&["Stop everything"]);
    let end = run.is_ended("A1");
    interrupted(&run, end);
    run.expect(&[]);
    assert!(run.dispatcher.log.state.is_open());
}

#[test]
fn an_interrupt_during_gates_leaves_the_claim_to_the_next_process() {
    let mut run = Run::new(lanes(1));
    run.claims("A1");
    assert!(run.then(Happened::Interrupt(INT)).is_none(), "the gates still run");
    assert!(run.did().contains(&"Stop everything".to_owned()));
    let end = run.are_stopped(Run::gates_of("A", "A1"));
    interrupted(&run, end);
    run.expect(&[]);
    let stage = &run.dispatcher.log.state.story(&id("A")).unwrap().stage;
    assert!(matches!(stage, Stage::Claimed(_)), "{stage:?}");
}

#[test]
fn an_interrupt_during_a_question_leaves_it_open() {
    let mut run = Run::of(lanes(1), &["A"]);
    run.asks("A1");
    run.did();
    assert!(run.then(Happened::Interrupt(INT)).is_none(), "the menu is still there");
    run.expect(&["close A", "Stop everything"]);
    let end = run.is_silent("A");
    interrupted(&run, end);
    let state = &run.dispatcher.log.state;
    assert!(state.is_asking(&id("A")) && !state.is_parked(&id("A")), "it is asked again");
}

#[test]
fn an_answer_that_comes_with_an_interrupt_counts() {
    let mut run = Run::of(lanes(1), &["A"]);
    run.asks("A1");
    run.then(Happened::Interrupt(INT));
    let end = run.answers("A", Answer::Retry);
    interrupted(&run, end);
    assert!(!run.dispatcher.log.state.is_asking(&id("A")));
}

#[test]
fn control_c_in_a_menu_is_an_interrupt() {
    let mut run = Run::of(lanes(1), &["A"]);
    run.asks("A1");
    let (about, asked) = (About::Story(id("A")), Asked::Interrupted);
    let end = run.then(Happened::Answered { about, asked });
    interrupted(&run, end);
    assert!(run.dispatcher.log.state.is_asking(&id("A")));
}

#[test]
fn an_interrupt_ends_a_wait_at_once() {
    let mut run = Run::new(lanes(1));
    let down = Outcome::Overloaded { detail: "529".into() };
    run.then(ended("A1", down, AgentSignals::default()));
    let wait = run.dispatcher.log.state.wait(run.dispatcher.log.now()).unwrap();
    assert_eq!(wait.what, WaitFor::Service);
    assert!(run.fake().waits.is_some());
    let end = run.then(Happened::Interrupt(INT));
    interrupted(&run, end);
}

#[test]
fn an_interrupt_during_a_stuck_question_ends_its_attempt_first() {
    let mut run = Run::new(lanes(1));
    run.fake().stuck = vec![StuckDue { attempt: "A1".into(), step: StuckStep::Ask }];
    run.tick();
    run.expect(&["start A1 in 0", "ask about A1"]);
    assert!(run.then(Happened::Interrupt(INT)).is_none());
    run.expect(&["close A1", "Stop everything"]);
    assert!(run.is_ended("A1").is_none(), "the menu is still there");
    let about = About::Attempt { attempt: "A1".into(), story: id("A") };
    let end = run.then(Happened::Answered { about, asked: Asked::NoAnswer });
    interrupted(&run, end);
}

#[test]
fn nothing_is_started_after_an_interrupt() {
    let mut run = Run::new(lanes(2));
    run.expect(&["start A1 in 1", "start B2 in 2"]);
    run.then(Happened::Interrupt(INT));
    run.did();
    assert!(run.claims("A1").is_none(), "B still runs");
    run.expect(&[]);
    let end = run.is_ended("B2");
    interrupted(&run, end);
    run.expect(&[]);
}

#[test]
fn the_second_interrupt_kills_and_the_third_leaves_at_once() {
    let mut run = Run::new(lanes(1));
    run.did();
    assert!(run.then(Happened::Interrupt(INT)).is_none());
    run.expect(&["Stop everything"]);
    assert!(run.then(Happened::Interrupt(15)).is_none());
    run.expect(&["Kill everything"]);
    let end = run.then(Happened::Interrupt(15));
    interrupted(&run, end);
    assert!(!run.dispatcher.log.state.attempts.is_idle(), "the next process sees to it");
}

#[test]
fn what_cannot_be_killed_is_left_a_second_after_the_second_interrupt() {
    let mut run = Run::new(lanes(1));
    run.did();
    assert!(run.then(Happened::Interrupt(INT)).is_none());
    run.fake().time.fetch_add(60_000, Ordering::Relaxed);
    assert!(run.then(Happened::Tick).is_none(), "the first one is patient");
    assert!(run.then(Happened::Interrupt(INT)).is_none());
    run.fake().time.fetch_add(KILL_PATIENCE - 1, Ordering::Relaxed);
    assert!(run.then(Happened::Tick).is_none());
    run.fake().time.fetch_add(1, Ordering::Relaxed);
    let end = run.then(Happened::Tick);
    interrupted(&run, end);
}
