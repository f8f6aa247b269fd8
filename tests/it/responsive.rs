//! Whatever a run waits for, it takes up everything else at once. How fast that is, the bench
//! `response` measures.

use ralph::model::{Event, StoryId};
use rustix::process::Signal;

use crate::support::busy::{Busy, BusyRun, EACH};
use crate::support::world::until;

fn stop(run: BusyRun) {
    let BusyRun { busy, terminal, world } = run;
    terminal.signal(Signal::INT);
    let (code, screen) = terminal.finish();
    assert_eq!(code, 130, "{busy:?}: {screen}");
    assert_eq!(world.processes(), [""; 0], "{busy:?}");
}

#[test]
fn a_signal() {
    for busy in EACH {
        let run = BusyRun::start(busy, &[]);
        let modes = run.terminal.modes();
        let is_menu = matches!(busy, Busy::Question | Busy::Stuck);
        run.terminal.signal(Signal::TERM);
        let BusyRun { world, terminal, .. } = run;
        let (code, screen) = terminal.finish();
        assert_eq!(code, 143, "{busy:?}: {screen}");
        assert_eq!(world.processes(), [""; 0], "{busy:?}");
        assert!(modes.contains("ECHO") || is_menu, "{busy:?}: {modes}");
        let last = world.journal().pop().unwrap().event;
        assert_eq!(last, Event::RunInterrupted { signal: 15 }, "{busy:?}");
    }
}

#[test]
fn a_message_to_the_agent() {
    for busy in EACH {
        let run = BusyRun::start(busy, &[]);
        let told = run.world.ralph(&["nudge", "mind the gap"]);
        assert_eq!(told.code, 0, "{busy:?}: {}", told.err);
        run.await_event("a message", |event| {
            matches!(event, Event::Nudged { .. } | Event::MessageKept { .. })
        });
        run.require_busy();
        stop(run);
    }
}

#[test]
fn a_mark() {
    let third = StoryId::try_from("US-003").unwrap();
    for busy in EACH {
        let run = BusyRun::start(busy, &[]);
        let marked = run.world.ralph(&["mark", "US-003", "skip"]);
        assert_eq!(marked.code, 0, "{busy:?}: {}", marked.err);
        run.await_event(
            "the mark",
            |event| matches!(event, Event::MarksSeen { skipped, .. } if skipped.contains(&third)),
        );
        let is_in_file = || run.world.read("PRD.json").contains("\"skipped\": true").then_some(());
        until("the mark in the file", is_in_file);
        run.require_busy();
        stop(run);
    }
}

#[test]
fn an_edit_of_the_backlog() {
    for busy in EACH {
        let run = BusyRun::start(busy, &[]);
        let text = run.world.read("PRD.json");
        run.world.write("PRD.json", "{");
        run.terminal.await_text("the backlog is invalid");
        run.require_busy();
        run.world.write("PRD.json", &text);
        run.terminal.await_text("the backlog is valid again");
        run.require_busy();
        stop(run);
    }
}

/// A claim that was made in time is still checked, and waits are no work: `stagnation.rs` and the tests of
/// the dispatcher have those.
#[test]
fn the_end_of_the_runs_time() {
    for busy in [Busy::Question, Busy::Stuck] {
        let run = BusyRun::start(busy, &["--max-run-time", "3s"]);
        run.await_event("the end of the agent", |event| match event {
            Event::AttemptEnded(end) => end.story.as_str() == "US-002" || busy == Busy::Stuck,
            _ => false,
        });
        let BusyRun { mut terminal, world, .. } = run;
        if busy == Busy::Question {
            assert!(terminal.screen().contains("[a]"), "the question is still open");
            terminal.press("s");
        }
        let (code, screen) = terminal.finish();
        assert_eq!(code, 3, "{busy:?}: {screen}");
        assert!(screen.contains("time limit"), "{busy:?}: {screen}");
        assert_eq!(world.processes(), [""; 0], "{busy:?}");
    }
}
