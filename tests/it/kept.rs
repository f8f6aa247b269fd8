//! What is kept around each attempt, and the commands about it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::backlog_edits::MARKS_REVERTED;
use crate::snapshots::shot;
use crate::support::world::{Ends, Runs, signal, until};
use crate::support::{Prd, World};

const FAILS: &str = r#"{ exit = 7 }"#;

fn refs(world: &World, below: &str) -> Vec<String> {
    let list = world.git(&["for-each-ref", "--format=%(refname)", below]);
    list.lines().map(str::to_owned).collect()
}

fn log(world: &World) -> Vec<Value> {
    let said = world.ralph(&["log", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    serde_json::from_str::<Value>(&said.out).unwrap().as_array().unwrap().clone()
}

fn numbers(world: &World, kind: &str) -> Vec<String> {
    let of_kind = log(world).into_iter().filter(|entry| entry["kind"] == kind);
    of_kind.map(|entry| entry["number"].to_string()).collect()
}

#[test]
fn every_attempt_begins_with_a_snapshot_and_a_failed_one_is_kept() {
    let script = format!(
        r#"
        [[story.US-001.attempts]]
        steps = [{{ write = "half.txt", text = "half\n" }}, {FAILS}]
        [[story.US-001.attempts]]
        steps = [{{ write = "whole.txt", text = "whole\n" }}, "complete"]
        "#
    );
    let world = World::scripted(&Prd::stories(2), &script);
    world.write("mine.txt", "mine\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let snapshots = refs(&world, "refs/ralph/snapshots");
    assert_eq!(snapshots.len(), 3, "{snapshots:?}");
    for (reference, files) in snapshots.iter().zip([
        "PRD.json\nREADME.md\nmine.txt\n",
        "PRD.json\nREADME.md\nhalf.txt\nmine.txt\n",
        "PRD.json\nREADME.md\nhalf.txt\nmine.txt\nwhole.txt\n",
    ]) {
        assert_eq!(world.git(&["ls-tree", "-r", "--name-only", reference]), files);
    }
    assert_eq!(refs(&world, "refs/ralph/attempts"), ["refs/ralph/attempts/US-001/1"]);
    assert_eq!(world.git(&["show", "refs/ralph/attempts/US-001/1:half.txt"]), "half\n");
    // It stays in the tree all the same, and becomes a part of the story.
    assert_eq!(world.git(&["show", "HEAD~1:half.txt"]), "half\n");
    let entries = log(&world);
    let kinds: Vec<&str> = entries.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["snapshot", "attempt", "snapshot", "snapshot"]);
    let numbers: Vec<u64> = entries.iter().map(|entry| entry["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!((&entries[1]["story"], &entries[1]["files"]), (&"US-001".into(), &1.into()));
}

#[test]
fn a_diff_is_of_a_number_or_of_a_story() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [{ run = "echo own > own.txt; git add own.txt; git commit -qm own" }, { write = "one.txt", text = "1\n" }, "complete"]
        [[story.US-002.attempts]]
        steps = [{ write = "two.txt", text = "2\u001b[2J\n" }]
    "#;
    let world = World::scripted(&Prd::stories(3), script);
    assert_eq!(world.run(&["--max-iterations", "2"]).code, 3);
    shot("diff_closed", &world, &["diff", "US-001"]);
    let in_work = world.ralph(&["diff", "US-002"]).out;
    assert!(in_work.contains("+++ b/two.txt") && !in_work.contains("one.txt"), "{in_work}");
    assert!(in_work.contains("+2\u{1b}[2J\n"), "as it is where a program reads it");
    let colored = world.ralph(&["--color", "always", "diff", "US-002"]).out;
    assert!(colored.contains("\u{1b}[32m+2\\x1b[2J\u{1b}[0m"), "{colored:?}");
    for (name, words) in [
        ("nothing_of_story", &["diff", "US-003"][..]),
        ("like_a_story", &["diff", "US-01"]),
        ("like_a_number", &["diff", "99"]),
        ("neither_number_nor_story", &["diff", "../x"]),
        ("no_such_number", &["restore", "99"]),
        ("like_a_path", &["restore", "1", "READM.md"]),
        ("outside", &["restore", "1", "../out"]),
        ("not_a_number", &["restore", "x"]),
    ] {
        shot(&format!("kept_{name}"), &world, words);
    }
    let nowhere = World::without_repository();
    for words in [vec!["log"], vec!["diff", "1"], vec!["restore", "1"], vec!["checkpoint"]] {
        let said = nowhere.ralph(&words);
        assert_eq!(said.code, 1);
        assert!(said.err.contains("git init"), "{}", said.err);
    }
}

#[test]
fn files_are_restored_and_the_way_back_is_shown() {
    let world = World::with(&Prd::stories(1));
    world.write("notes.txt", "old\n");
    assert_eq!(world.run(&[]).code, 0);
    world.write("notes.txt", "new\n");
    world.write("more.txt", "more\n");
    let prd = world.read("PRD.json");
    let said = world.ralph(&["restore", "1"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("notes.txt"), "old\n");
    assert!(!world.path("more.txt").exists() && !world.path("mock/US-001.md").exists());
    assert_eq!(world.read("PRD.json"), prd, "marks belong to the commits");
    assert!(said.out.contains("undo this with `ralph restore 2`"), "{}", said.out);
    assert_eq!(world.ralph(&["restore", "2"]).code, 0);
    assert_eq!(
        (world.read("notes.txt"), world.read("more.txt")),
        ("new\n".into(), "more\n".into())
    );
    assert_eq!(world.status(), "?? more.txt\n?? notes.txt\n");
    let said = world.ralph(&["restore", "1", "notes.txt"]);
    assert_eq!((said.code, world.read("notes.txt")), (0, "old\n".to_owned()));
    assert!(world.path("more.txt").exists());
    assert_eq!(world.ralph(&["restore", "1", "PRD.json"]).code, 0);
    assert_ne!(world.read("PRD.json"), prd, "unless it is named");
}

#[test]
fn restoring_waits_for_no_run_and_a_checkpoint_can_be_made_during_one() {
    let script = "[default]\nsteps = [{ run = \"echo y > ../here\" }, \"hang\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    let child = world.start(&[]);
    world.await_file("../here");
    for words in [vec!["restore", "1"], vec!["undo", "US-001"]] {
        let said = world.ralph(&words);
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(
            said.err.contains("another `ralph run` is active in this work tree"),
            "{}",
            said.err
        );
    }
    let said_checkpoint = world.ralph(&["checkpoint", "-m", "in between"]);
    assert_eq!(said_checkpoint.code, 0, "{}", said_checkpoint.err);
    assert!(said_checkpoint.out.contains("saved snapshot 2"), "{}", said_checkpoint.out);
    assert!(world.ralph(&["log"]).out.contains("in between"));
    signal(&child, rustix::process::Signal::INT);
    assert_eq!(child.ended().code, 130);
}

#[test]
fn names_that_are_not_utf8_are_listed_shown_and_restored() {
    let world = World::with(&Prd::stories(1));
    let odd = world.root().join(OsStr::from_bytes(b"caf\xe9.txt"));
    fs::write(&odd, "odd\n").unwrap();
    assert_eq!(world.ralph(&["checkpoint"]).code, 0);
    fs::remove_file(&odd).unwrap();
    assert_eq!(world.ralph(&["diff", "1"]).code, 0);
    let output = world
        .command(crate::support::world::RALPH)
        .args([OsStr::new("restore"), OsStr::new("1"), OsStr::from_bytes(b"caf\xe9.txt")])
        .said();
    assert_eq!(output.code, 0, "{}", output.err);
    assert_eq!(fs::read_to_string(&odd).unwrap(), "odd\n");
}

#[test]
fn a_closed_story_is_undone_and_done_again() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [{ run = "echo own > own.txt; git add own.txt; git commit -qm own" }, { write = "one.txt", text = "1\n" }, "complete"]
        [default]
        steps = [{ run = "echo $RALPH_STORY > $RALPH_STORY.txt" }, "complete"]
    "#;
    let world = World::scripted(&Prd::stories(2), script);
    world.write("mine.txt", "mine\n");
    let original = world.read("PRD.json");
    assert_eq!(world.run(&[]).code, 0);
    let said = world.ralph(&["undo", "US-001"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects()[0], "Revert US-001: Story 1");
    assert!(!world.path("own.txt").exists() && !world.path("one.txt").exists());
    assert!(world.path("US-002.txt").exists());
    assert_eq!(world.passing(), ["US-002"]);
    let reopened = original.split("US-002").next().unwrap();
    assert!(world.read("PRD.json").starts_with(reopened), "the bytes of the rest are as they were");
    assert_eq!(world.status(), "?? mine.txt\n");
    let again = world.ralph(&["undo", "US-001"]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("is not closed"), "{}", again.err);

    let run = world.run(&[]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(!run.err.contains(MARKS_REVERTED), "{}", run.err);
    assert_eq!(world.subjects()[0], "US-001: Story 1");
    assert_eq!(world.git(&["show", "HEAD:one.txt"]), "1\n");
    assert_eq!(world.ralph(&["undo", "US-001"]).code, 0, "and once more");
}

#[test]
fn a_story_that_others_build_on_stays() {
    let script = r#"
        [default]
        steps = [{ run = "echo $RALPH_STORY >> README.md" }, "complete"]
    "#;
    let world = World::scripted(&Prd::stories(2), script);
    assert_eq!(world.run(&[]).code, 0);
    let (head, prd) = (world.git(&["rev-parse", "HEAD"]), world.read("PRD.json"));
    let said = world.ralph(&["undo", "US-001"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("later commits conflict (README.md), so nothing was undone"),
        "{}",
        said.err
    );
    assert_eq!((world.git(&["rev-parse", "HEAD"]), world.read("PRD.json")), (head, prd));
    assert_eq!(world.status(), "");
    let said = world.ralph(&["undo", "US-02"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("did you mean `US-002`?"), "{}", said.err);
    assert_eq!(world.ralph(&["undo", "US-002"]).code, 0);
    assert_eq!(world.ralph(&["undo", "US-001"]).code, 0);
    assert_eq!(world.read("README.md"), "hello\n");
}

/// The driver dies in the middle of another story; what the human takes back meanwhile stays so.
#[test]
fn a_story_taken_back_after_a_crash_is_no_agents_doing() {
    let script = r#"
        [story.US-001]
        steps = [{ write = "one.txt", text = "1\n" }, "complete"]
        [story.US-002]
        steps = [{ write = "two.txt", text = "2\n" }, { run = "echo y > ../here" }, "hang"]
    "#;
    let world = World::scripted(&Prd::stories(2), script);
    let mut child = world.start(&[]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    let said = world.ralph(&["undo", "US-001"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let asks = r#"
        [story.US-002]
        steps = [{ escalate = { type = "stuck", summary = "s", question = "q" } }]
    "#;
    fs::write(world.script(), asks).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(!said.err.contains(MARKS_REVERTED), "{}", said.err);
    let subjects = world.subjects();
    assert_eq!(subjects[1], "Revert US-001: Story 1", "{subjects:?}");
    assert_eq!(subjects[0], "US-001: Story 1", "it was done again");
    assert_eq!(world.git(&["show", "refs/ralph/attempts/US-002/1:two.txt"]), "2\n");
}

#[test]
fn old_snapshots_go_at_the_start_of_a_run_but_not_those_of_the_last_two() {
    let world = World::with(&Prd::stories(1));
    world.write("ralph.toml", "keep_snapshots = 1\n");
    let once = |number: usize| {
        world.write("PRD.json", &Prd::stories(number).text());
        assert_eq!(world.run(&["--once", "--story", &format!("US-{number:03}")]).code, 0);
        refs(&world, "refs/ralph/snapshots").len()
    };
    assert_eq!([once(1), once(2), once(3), once(4)], [1, 2, 3, 3]);
    assert_eq!(numbers(&world, "snapshot"), ["2", "3", "4"]);
    world.write("ralph.toml", "keep_snapshots = 0\n");
    let said = world.run(&[]);
    assert!(said.err.contains("for `keep_snapshots`"), "{}", said.err);
}

const THREE_ERRORS: &str = r#"
    [[story.US-001.attempts]]
    steps = [{ write = "a.txt", text = "a\n" }, { fail = "turn-limit" }]
    [[story.US-001.attempts]]
    steps = [{ write = "b.txt", text = "b\n" }, { exit = 7 }]
    [[story.US-001.attempts]]
    steps = [{ run = "echo c > c.txt; git add -A; git commit -qm c" }, { exit = 7, result = true }]
    [[story.US-001.attempts]]
    steps = [{ run = "ls > ../files" }, { write = "d.txt", text = "d\n" }, "complete"]
"#;

#[test]
fn after_three_failed_attempts_a_story_starts_over_and_knows_what_was_tried() {
    let world = World::scripted(&Prd::stories(1), THREE_ERRORS);
    world.write("README.md", "edited by the user\n");
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("US-001 starts over"), "{}", said.err);
    assert_eq!(world.read("../files"), "PRD.json\nREADME.md\n");
    assert_eq!(world.subjects(), ["US-001: Story 1", "backlog", "first"]);
    let names = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(names, "PRD.json\nd.txt\n");
    assert_eq!(world.status(), " M README.md\n");
    for (number, file) in [(1, "a"), (2, "b"), (3, "c")] {
        let kept = format!("refs/ralph/attempts/US-001/{number}");
        assert_eq!(world.git(&["show", &format!("{kept}:{file}.txt")]), format!("{file}\n"));
        assert!(world.prompt(4).contains(&format!("`{kept}` (")), "{}", world.prompt(4));
    }
    assert!(world.prompt(4).contains("work tree was reset to the story's base"));
    assert!(!world.prompt(3).contains("work tree was reset to the story's base"));
}

#[test]
fn starting_over_can_be_switched_off() {
    let world = World::scripted(&Prd::stories(1), THREE_ERRORS);
    world.write("ralph.toml", "fresh_start_after = \"none\"\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.err.contains("starts over"), "{}", said.err);
    let names = world.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
        assert!(names.contains(name), "{names}");
    }
}

/// The tree cannot be rolled back because the index is locked: the run stops in the middle, and the
/// next one finishes it.
#[test]
fn a_start_over_that_was_cut_off_is_finished() {
    let script =
        THREE_ERRORS.replace("git commit -qm c", "git commit -qm c; mkdir -p .git/index.lock/x");
    let world = World::scripted(&Prd::stories(1), &script);
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("index.lock"), "{}", said.err);
    fs::remove_dir_all(world.path(".git/index.lock")).unwrap();
    // Half of the way back is done.
    fs::remove_file(world.path("a.txt")).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("../files"), "PRD.json\nREADME.md\n");
    assert_eq!(world.subjects(), ["US-001: Story 1", "backlog", "first"]);
    let kept = refs(&world, "refs/ralph/attempts");
    let whole = kept.last().unwrap();
    let names = world.git(&["ls-tree", "-r", "--name-only", whole]);
    assert_eq!(names, "PRD.json\nREADME.md\na.txt\nb.txt\nc.txt\n", "{kept:?}");
}
