//! How fast a run that waits for something takes up something else. The floor is the interval at which
//! it looks around, 250 ms: on average half of it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ralph::model::Event;
use rustix::process::Signal;

use crate::measure::{Times, tell};
use crate::support::busy::{BusyRun, EACH};

const ROUNDS: usize = 5;

pub fn bench() {
    for busy in EACH {
        let measure = |what: &str, act: fn(&BusyRun) -> Duration| {
            let times = Times::of_each(ROUNDS, || {
                let run = BusyRun::start(busy, &[]);
                let took = act(&run);
                run.terminal.signal(Signal::KILL);
                run.terminal.finish();
                took
            });
            tell(&format!("{busy:?}: {what} (300 ms)"), &times);
        };
        measure("a signal", |run| {
            let before = now();
            run.terminal.signal(Signal::INT);
            let is_it = |event: &Event| matches!(event, Event::RunInterrupted { .. });
            since(before, run.await_event("the end", is_it).at)
        });
        measure("a mark", |run| {
            let before = now();
            run.world.ralph(&["mark", "US-003", "skip"]);
            let is_it = |event: &Event| matches!(event, Event::MarksSeen { skipped, .. } if !skipped.is_empty());
            since(before, run.await_event("the mark", is_it).at)
        });
        measure("an edit of the backlog", |run| {
            run.world.write("PRD.json", "{");
            let before = now();
            run.terminal.await_text("the backlog is invalid");
            since(before, now())
        });
        measure("a message", |run| {
            let before = now();
            run.world.ralph(&["nudge", "hello"]);
            // During gates and waits no agent runs that could take it.
            let is_it =
                |event: &Event| matches!(event, Event::Nudged { .. } | Event::MessageKept { .. });
            since(before, run.await_event("the message", is_it).at)
        });
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

fn since(before: i64, at: i64) -> Duration {
    Duration::from_millis(u64::try_from(at.saturating_sub(before)).unwrap_or_default())
}
