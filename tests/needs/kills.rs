//! Killed, or failing, at any write: the next run goes on as if nothing had happened.
//!
//! One run of three stories with everything in it: a story that was closed before, work that was
//! set aside and comes back, a gate that fails, an attempt that fails and is retried, a question
//! that is answered with "skip it", an agent that destroys what is the user's. At its Nth write the driver is killed, or the write fails; then
//! a plain `ralph run` has to end with everything that must always hold. `cargo test` takes a sample
//! of the writes; with `RALPH_FAULTS=all` every one has its turn, until a run ends untouched.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::Trial;
use ralph::model::{Event, Recorded};

use crate::Need;
use crate::faults::{self, Fault, KILLED};
use crate::support::always::{Outcome, holds, kept, outcome};
use crate::support::{Prd, World};

pub fn tests() -> Vec<Trial> {
    trials![
        Need::Tracing;
        kills::a_driver_killed_at_any_write_loses_nothing,
        kills::a_write_that_finds_the_disk_full_loses_nothing,
        kills::a_write_that_fails_loses_nothing,
        kills::a_write_that_is_not_allowed_loses_nothing,
    ]
}

const ARGS: [&str; 2] = ["--on-escalation", "skip"];
/// How many points of the run `cargo test` tries.
const KILLS: usize = 66;
/// The run has more writes than this; a tracer that sees fewer overlooks some.
const LEAST_WRITES: usize = 300;
const FAILURES: usize = 10;
/// The number of a run's writes varies: a write that one run does not reach, another one may.
const CHANCES: usize = 3;
/// So many writes in a row that no run reached are the end.
const UNREACHED: usize = 10;

/// Whatever an attempt finds in the tree, the story ends with the same files.
const SCRIPT: &str = r#"
    [story.US-001]
    steps = [
      { run = "test -e a.txt && echo ok > ok.txt; echo a > a.txt" },
      { run = "rm -f notes.txt; git config ralph.test x; echo x > .git/hooks/pre-commit" },
      "complete",
    ]
    [story.US-002]
    steps = [
      { run = "echo half > half.txt; echo changed >> README.md; rm kept.txt" },
      { escalate = { type = "stuck", summary = "Which?", question = "Which one?" } },
    ]
    [[story.US-003.attempts]]
    steps = [{ run = "mkdir -p new; echo b > new/b.txt" }, { exit = 1 }]
    [[story.US-003.attempts]]
    steps = [{ run = "mkdir -p new; echo b > new/b.txt; echo c > new/c.txt" }, "complete"]
    [story.US-004]
    steps = [{ run = "echo twice > twice.txt" }, "complete"]
"#;
const BEFORE: &str = r#"
    [story.US-004]
    steps = [{ run = "echo d > d.txt" }, "complete"]
    [default]
    steps = [{ run = "echo begun > $RALPH_STORY.begun" }]
"#;
const SETTINGS: &str = "verify = [\"test -e ok.txt || test \\\"$RALPH_STORY\\\" != US-001\"]\n";

/// US-004 is closed, US-003 was begun and set aside, US-001 was begun and its work is in the tree.
fn begun() -> World {
    let world = World::scripted(&Prd::stories(4), BEFORE);
    world.write("ralph.toml", SETTINGS);
    world.write(".gitignore", "*.local\n");
    world.write("kept.txt", "committed\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world.write("notes.txt", "the user's own\n");
    world.write("settings.local", "ignored\n");
    for (story, code) in [("US-004", 0), ("US-003", 3), ("US-001", 3)] {
        let said = world.run(&["--once", "--story", story]);
        assert_eq!(said.code, code, "{}", said.err);
    }
    fs::write(world.script(), SCRIPT).unwrap();
    world
}

/// Where every try begins, and where it has to end.
struct Course {
    start: World,
    kept: BTreeSet<String>,
    end: Outcome,
    writes: usize,
    /// How many tries lost an attempt, so that the next run had something to mend.
    lost: AtomicUsize,
}

impl Course {
    fn new() -> Self {
        let start = begun();
        let kept = kept(&start);
        let whole = start.copy();
        let untouched = faults::run(&whole, &ARGS, Fault::Kill, 0);
        assert_eq!(untouched.said.code, 0, "{}", untouched.said.err);
        let end = outcome(&whole);
        check(&whole, &end, &kept, "untouched");
        let writes = untouched.writes;
        assert!(writes > LEAST_WRITES, "only {writes} writes were seen");
        Self { start, kept, end, writes, lost: AtomicUsize::new(0) }
    }

    /// False when the run had ended before its Nth write.
    fn survives(&self, fault: Fault, n: usize) -> bool {
        let world = self.start.copy();
        let faulty = faults::run(&world, &ARGS, fault, n);
        let reached = faulty.writes >= n;
        let (code, text) = (faulty.said.code, faulty.said.err);
        let label = format!("{fault:?} at write {n}, exit code {code}");
        assert!(!text.contains("panicked"), "{label}: {text}");
        match fault {
            Fault::Kill => assert_eq!(code, if reached { KILLED } else { 0 }, "{label}: {text}"),
            // Without its log or its status file, a run goes on.
            Fault::Error(_) => {
                assert!(code == 0 || (code == 1 && is_clear(&text)), "{label}: {text}")
            }
        }
        assert_eq!(world.processes(), [""; 0], "{label}");
        let said = world.run(&ARGS);
        assert_eq!(said.code, 0, "{label}, then:\n{}\nbefore:\n{text}", said.err);
        check(&world, &self.end, &self.kept, &label);
        let is_lost = |one: &Recorded| matches!(one.event, Event::AttemptLost { .. });
        self.lost.fetch_add(world.journal().iter().any(is_lost).into(), Ordering::Relaxed);
        reached
    }
}

/// `expected` is what a run leaves that was never interrupted: the files are the same, the user's and
/// those around included.
fn check(world: &World, expected: &Outcome, before: &BTreeSet<String>, label: &str) {
    let found = outcome(world);
    assert!(&found == expected, "{label}: {found:#?}\nexpected: {expected:#?}");
    holds(world, before, label);
}

/// Says what could not be done, not only what the system called it.
fn is_clear(text: &str) -> bool {
    let error = text.lines().rev().find_map(|line| line.split_once("error: "));
    error.is_some_and(|(_, message)| message.split_whitespace().count() > 6)
}

/// Every point or a sample of them.
fn everywhere(fault: Fault, sample: usize) {
    let course = Course::new();
    let points = points(course.writes, sample);
    let reached = |n| (0..CHANCES).any(|_| course.survives(fault, n));
    let (tried, failed) = try_all(points.tried, course.writes, reached);
    let (writes, failures, lost) = (course.writes, failed.len(), course.lost.into_inner());
    say(&format!("{fault:?}: {tried} writes tried, {failures} failed; a run has about {writes}"));
    assert!(failed.is_empty(), "{fault:?}: {failed:?}");
    assert!(tried >= points.least, "{fault:?}: {tried} were reached of {}", points.least);
    // The driver was killed at its work, not only before and after it.
    assert!(lost > 0 || fault != Fault::Kill || !points.is_spread, "no try lost an attempt");
}

pub struct Points {
    pub tried: Box<dyn Iterator<Item = usize> + Send>,
    /// So many of them are reached; the number of a run's writes varies a little.
    pub least: usize,
    pub is_spread: bool,
}

/// A sample, evenly spread; `RALPH_FAULTS` asks for `all`, or for some: `17,18`.
pub fn points(writes: usize, sample: usize) -> Points {
    let most = |count: usize| count * 9 / 10;
    match std::env::var("RALPH_FAULTS").as_deref() {
        Ok("all") => Points { tried: Box::new(1..), least: most(writes), is_spread: true },
        Ok(some) => {
            let some: Vec<_> = some.split(',').map(|n| n.trim().parse().unwrap()).collect();
            Points { tried: Box::new(some.into_iter()), least: 1, is_spread: false }
        }
        Err(_) => {
            let tried = (0..sample).map(move |i| 1 + i * writes / sample);
            Points { tried: Box::new(tried), least: most(sample), is_spread: true }
        }
    }
}

/// On as many threads as there are cores, until they are beyond the last: how many were reached, and
/// at which the attempt panicked.
pub fn try_all(
    points: impl Iterator<Item = usize> + Send,
    writes: usize,
    attempt: impl Fn(usize) -> bool + Sync,
) -> (usize, Vec<usize>) {
    let (points, last) = (Mutex::new(points), AtomicUsize::new(writes));
    let results = Mutex::new((0, Vec::new()));
    let is_near = |n: &usize| *n <= last.load(Ordering::Relaxed) + UNREACHED;
    let next = || points.lock().unwrap().next().filter(is_near);
    let work = || {
        while let Some(n) = next() {
            let tried = std::panic::AssertUnwindSafe(|| attempt(n));
            let ended = std::panic::catch_unwind(tried);
            let mut results = results.lock().unwrap();
            match ended {
                Ok(true) => {
                    results.0 += 1;
                    last.fetch_max(n, Ordering::Relaxed);
                }
                Ok(false) => {}
                Err(_) => results.1.push(n),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    results.into_inner().unwrap()
}

pub fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn a_driver_killed_at_any_write_loses_nothing() {
    everywhere(Fault::Kill, KILLS);
}

fn a_write_that_finds_the_disk_full_loses_nothing() {
    everywhere(Fault::Error("ENOSPC"), FAILURES);
}

fn a_write_that_fails_loses_nothing() {
    everywhere(Fault::Error("EIO"), FAILURES);
}

fn a_write_that_is_not_allowed_loses_nothing() {
    everywhere(Fault::Error("EACCES"), FAILURES);
}
