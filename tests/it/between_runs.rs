//! The human edits files while no run is active and a story's unfinished work is in the tree.

use ralph::model::Event;
use rustix::process::Signal;

use crate::support::world::{Ends, Said, signal, until};
use crate::support::{Prd, World};

/// The agent changes and creates files, then works on until the run is interrupted; the next agent
/// adds a file and claims the story.
const HALF: &str = "[default]\nsteps = [{ run = \"sed -i 's/^1$/one/' lines; echo a > half.txt; \
                    echo y > ../here\" }, \"hang\"]\n";
const REST: &str = "[default]\nsteps = [{ run = \"echo b > rest.txt\" }, \"complete\"]\n";
const FAILS: &str = "[default]\nsteps = [{ fail = \"error\" }]\n";

/// The run ended, and the work is unfinished.
fn unfinished() -> World {
    let world = World::with(&Prd::stories(1));
    world.write("lines", &(1..=9).map(|n| format!("{n}\n")).collect::<String>());
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "lines"]);
    std::fs::write(world.script(), HALF).unwrap();
    let child = world.start(&[]);
    world.await_file("../here");
    signal(&child, Signal::TERM);
    assert_eq!(child.ended().code, 143);
    world
}

fn continued(world: &World, script: &str, args: &[&str]) -> Said {
    std::fs::write(world.script(), script).unwrap();
    world.run(args)
}

#[test]
fn edits_between_runs_are_refused_like_at_the_start_and_stay_out_of_the_commit() {
    let world = unfinished();
    world.write("lines", &world.read("lines").replace('9', "nine"));
    world.write("mine.txt", "mine\n");
    let said = continued(&world, REST, &[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("uncommitted edits:\n    lines\n"), "{}", said.err);
    assert!(said.err.contains("untracked files, never committed: mine.txt"), "{}", said.err);

    let said = continued(&world, REST, &["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let changed = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(changed, "PRD.json\nhalf.txt\nlines\nrest.txt\n");
    assert_eq!(world.git(&["show", "HEAD:lines"]).lines().last(), Some("9"));
    assert_eq!(world.read("lines"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    assert_eq!(world.status(), " M lines\n?? mine.txt\n");
}

#[test]
fn new_files_between_runs_are_not_shelved_with_the_story() {
    let world = unfinished();
    world.write("mine.txt", "mine\n");
    let text = world.read("PRD.json");
    let skipped = text.replacen("\"passes\": false", "\"passes\": false, \"skipped\": true", 1);
    world.write("PRD.json", &skipped);
    let said = continued(&world, FAILS, &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!((world.read("mine.txt"), world.path("half.txt").exists()), ("mine\n".into(), false));
    let kept = world.git(&["ls-tree", "--name-only", "-r", "refs/ralph/attempts/US-001/1"]);
    assert!(kept.contains("half.txt"), "{kept}");
}

#[test]
fn edits_in_the_storys_own_lines_are_the_humans_to_commit_first() {
    let world = unfinished();
    world.write("half.txt", "mine\n");
    let said = continued(&world, REST, &["--allow-dirty"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("unfinished work on US-001 changed"), "{}", said.err);
    assert!(said.err.contains("half.txt"), "{}", said.err);
    world.git(&["add", "half.txt"]);
    world.git(&["commit", "-qm", "mine", "half.txt"]);
    let said = continued(&world, REST, &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let changed = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(changed, "PRD.json\nlines\nrest.txt\n");
}

#[test]
fn what_the_human_undoes_between_runs_needs_no_permission() {
    let world = unfinished();
    world.git(&["checkout", "-q", "lines"]);
    std::fs::remove_file(world.path("half.txt")).unwrap();
    let said = continued(&world, REST, &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let changed = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!((changed.as_str(), world.status().as_str()), ("PRD.json\nrest.txt\n", ""));
}

/// Its agent failed in the middle of the work; ralph is killed while it waits for the next try.
#[test]
fn edits_after_a_kill_in_a_wait_are_the_humans_like_after_a_clean_end() {
    let world = World::with(&Prd::stories(1));
    world.write("lines", "1\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "lines"]);
    let half = "[default]\nsteps = [{ run = \"echo one > lines; echo a > half.txt\" }, \
                { fail = \"error\" }]\n";
    std::fs::write(world.script(), half).unwrap();
    let mut command = world.run_command(&[]);
    let mut child = command.env("RALPH_BACKOFF", "10m").spawn().unwrap();
    until("the tree to be recorded", || {
        let has_begun = world.path(".ralph/runs").exists();
        let journal = if has_begun { world.journal() } else { Vec::new() };
        journal.iter().any(|one| matches!(one.event, Event::TreeLeft { .. })).then_some(())
    });
    child.kill().unwrap();
    child.code();
    world.write("mine.txt", "mine\n");
    world.write("README.md", "edited\n");
    let said = continued(&world, REST, &[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("uncommitted edits:\n    README.md\n"), "{}", said.err);
    let said = continued(&world, REST, &["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let changed = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(changed, "PRD.json\nhalf.txt\nlines\nrest.txt\n");
    assert_eq!(world.status(), " M README.md\n?? mine.txt\n");
}
