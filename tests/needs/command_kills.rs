//! A command of the human's that is killed at any write: the same command again ends whole, and so
//! does the next `ralph run`.
//!
//! `cargo test` takes a sample of each command's writes; with `RALPH_FAULTS=all` every one has its
//! turn.

use std::fs;

use libtest_mimic::Trial;

use crate::Need;
use crate::faults::{self, Fault, KILLED};
use crate::kills::{points, say, try_all};
use crate::support::always::{Outcome, leftovers, outcome};
use crate::support::world::Said;
use crate::support::{Prd, World};

pub fn tests() -> Vec<Trial> {
    trials![
        Need::Tracing;
        command_kills::an_undo_killed_at_any_write_ends_whole,
        command_kills::an_undo_beside_unfinished_work_killed_at_any_write_ends_whole,
        command_kills::a_restore_killed_at_any_write_ends_whole,
        command_kills::a_restore_of_some_paths_killed_at_any_write_ends_whole,
        command_kills::a_checkpoint_killed_at_any_write_leaves_nothing_behind,
        command_kills::a_mark_killed_at_any_write_ends_whole,
        command_kills::an_init_killed_at_any_write_ends_whole,
    ]
}

/// How many writes of each command `cargo test` tries.
const SAMPLE: usize = 12;
const RUN: [&str; 1] = ["--allow-dirty"];

/// Two stories are closed, a third is begun if `half`, and the user has edits of all kinds.
fn worked(half: bool) -> World {
    let world = World::with(&Prd::stories(3));
    for (name, text) in [("old.txt", "old\n"), ("dir/gone.txt", "g\n"), ("st.txt", "s\n")] {
        world.write(name, text);
    }
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "files"]);
    let first = r#"
        [story.US-001]
        steps = [{ run = "echo a > a.txt; mkdir -p sub; echo b > sub/b.txt; echo more >> old.txt; rm -r dir" }, "complete"]
        [story.US-002]
        steps = [{ run = "echo c > c.txt" }, "complete"]
        [story.US-003]
        steps = [{ run = "echo half > half.txt" }]
    "#;
    fs::write(world.script(), first).unwrap();
    for _ in 0..if half { 3 } else { 2 } {
        assert_eq!(world.run(&["--once"]).code, 3);
    }
    world.write("README.md", "edited\n");
    world.write("st.txt", "staged\n");
    world.git(&["add", "st.txt"]);
    world.write("un.txt", "untracked\n");
    let later = r#"
        [default]
        steps = [{ run = "echo $RALPH_STORY > $RALPH_STORY.txt" }, "complete"]
    "#;
    fs::write(world.script(), later).unwrap();
    world
}

/// One begun story whose first attempt changed much.
fn begun() -> World {
    let world = World::with(&Prd::stories(2));
    for number in 0..4 {
        world.write(&format!("d{number}/f.txt"), &format!("{number}\n"));
    }
    world.write("gone.txt", "g\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "files"]);
    let act =
        "for i in 0 1 2 3; do echo x >> d$i/f.txt; done; rm gone.txt; mkdir n; echo n > n/n.txt";
    let script = format!("[default]\nsteps = [{{ run = \"{act}\" }}]\n");
    fs::write(world.script(), script).unwrap();
    world.write("un.txt", "u\n");
    assert_eq!(world.run(&["--once"]).code, 3);
    let later =
        "[default]\nsteps = [{ run = \"echo $RALPH_STORY > $RALPH_STORY.txt\" }, \"complete\"]\n";
    fs::write(world.script(), later).unwrap();
    world
}

/// A command, and what becomes of it untouched.
struct Course {
    start: World,
    words: Vec<String>,
    done: Outcome,
    then: Option<Then>,
    writes: usize,
}

/// The run that follows: after the command, and without it.
#[derive(Debug)]
struct Then {
    run: Vec<String>,
    done: Outcome,
    without: Outcome,
}

impl Course {
    fn new(start: World, words: &[&str], runs: bool) -> Self {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let world = start.copy();
        let untouched = faults::ralph(&world, &words, Fault::Kill, 0);
        assert_eq!(untouched.said.code, 0, "{}", untouched.said.err);
        let done = outcome(&world);
        let run = start.run_words(&RUN);
        let after = |world: &World| {
            let said = next(world, &run);
            assert_eq!(said.code, 0, "{}", said.err);
            outcome(world)
        };
        let then = runs.then(|| (after(&world), after(&start.copy())));
        let then = then.map(|(done, without)| Then { run, done, without });
        Self { start, words, done, then, writes: untouched.writes }
    }

    /// Killed at its Nth write. False: it had ended before.
    fn killed(&self, n: usize) -> (World, bool) {
        let world = self.start.copy();
        let faulty = faults::ralph(&world, &self.words, Fault::Kill, n);
        let reached = faulty.writes >= n;
        assert_eq!(faulty.said.code, if reached { KILLED } else { 0 }, "{}", faulty.said.err);
        (world, reached)
    }

    /// False when the command had ended before its Nth write.
    fn survives(&self, n: usize) -> bool {
        let (world, reached) = self.killed(n);
        let left = outcome(&world);
        let again = next(&world, &self.words);
        let label = format!("killed at write {n}, then again ({}):\n{}", again.code, again.err);
        assert_eq!(outcome(&world), self.done, "{label}");
        assert_eq!(leftovers(&world), [""; 0], "{label}");
        // What has ended already may not be possible twice.
        assert!(again.code == 0 || left == self.done, "{label}");
        let Some(then) = &self.then else { return reached };
        // Notes name locks by their paths, so a copy of the killed one would not do.
        let (world, _) = self.killed(n);
        let said = next(&world, &then.run);
        let label = format!("killed at write {n}, then a run:\n{}", said.err);
        assert_eq!(said.code, 0, "{label}");
        let found = outcome(&world);
        assert!(found == then.done || found == then.without, "{label}\n{found:#?}\n{then:#?}");
        assert_eq!(leftovers(&world), [""; 0], "{label}");
        reached
    }
}

fn next(world: &World, words: &[String]) -> Said {
    world.ralph(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn everywhere(course: &Course) {
    let points = points(course.writes, SAMPLE.min(course.writes));
    let (tried, failed) = try_all(points.tried, course.writes, |n| course.survives(n));
    let what = course.words.join(" ");
    say(&format!(
        "{what}: {tried} writes tried, {} failed; it has {}",
        failed.len(),
        course.writes
    ));
    assert!(failed.is_empty(), "{what}: {failed:?}");
    assert!(tried >= points.least.min(course.writes * 9 / 10), "{what}: {tried}");
}

fn an_undo_killed_at_any_write_ends_whole() {
    everywhere(&Course::new(worked(false), &["undo", "US-001"], true));
}

fn an_undo_beside_unfinished_work_killed_at_any_write_ends_whole() {
    everywhere(&Course::new(worked(true), &["undo", "US-001"], true));
}

fn a_restore_killed_at_any_write_ends_whole() {
    everywhere(&Course::new(begun(), &["restore", "1"], true));
}

fn a_restore_of_some_paths_killed_at_any_write_ends_whole() {
    everywhere(&Course::new(begun(), &["restore", "1", "d1", "gone.txt", "n"], true));
}

fn a_checkpoint_killed_at_any_write_leaves_nothing_behind() {
    everywhere(&Course::new(begun(), &["checkpoint", "-m", "mine"], true));
}

fn a_mark_killed_at_any_write_ends_whole() {
    everywhere(&Course::new(worked(true), &["mark", "US-003", "pass"], true));
    everywhere(&Course::new(World::with(&Prd::stories(2)), &["mark", "US-002", "pass"], true));
}

fn an_init_killed_at_any_write_ends_whole() {
    let world = World::new();
    everywhere(&Course::new(world, &["init", "--gate", "true"], false));
}
