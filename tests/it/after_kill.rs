//! What an agent or a gate left when its driver was killed: the next command puts it back first.

use crate::hostile::kill_when_here;
use crate::support::{Prd, World};

/// A program that would run with the next signed commit.
const PLANTED: &str = r#"printf '#!/bin/sh\ntouch %s\n' "$PWD/../ran" > ../evil; chmod +x ../evil
    git config commit.gpgsign true; git config gpg.program "$PWD/../evil""#;

/// One story is closed; the second one's attempt does this, and its driver is killed.
fn killed(act: &str) -> World {
    let script = format!(
        r#"
        [story.US-001]
        steps = [{{ run = "echo one > one.txt" }}, "complete"]
        [[story.US-002.attempts]]
        steps = [{{ run = '''{act}; echo y > ../here''' }}, "hang"]
        [[story.US-002.attempts]]
        steps = [{{ run = "echo two > two.txt" }}, "complete"]
        "#
    );
    let world = World::scripted(&Prd::stories(2), &script);
    for text in ["older", "newer"] {
        world.write("README.md", &format!("{text} and stashed\n"));
        world.git(&["stash", "push", "-q", "-m", text]);
    }
    kill_when_here(&world);
    world
}

fn planted_and_forgot() -> World {
    killed(&format!("{PLANTED}; rm .git/ralph/attempt"))
}

#[test]
fn an_agent_that_deletes_the_note_of_its_attempt_gains_nothing() {
    let world = planted_and_forgot();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!world.path("../ran").exists(), "the planted program ran: {}", said.err);
    assert!(!world.read(".git/config").contains("gpg"), "{}", said.err);
    assert!(said.err.contains("restored git configuration or hooks"), "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-002"]);
    assert!(!world.path(".git/ralph/attempt").exists());
}

#[test]
fn every_command_that_writes_puts_gits_setup_back_first() {
    for commands in [
        &[&["undo", "US-001"][..]][..],
        &[&["restore", "2"], &["undo", "US-001"]],
        &[&["checkpoint"], &["undo", "US-001"]],
        &[&["mark", "US-002", "skip"], &["mark", "US-002", "reopen"], &["undo", "US-001"]],
    ] {
        for world in [killed(PLANTED), planted_and_forgot()] {
            for command in commands {
                let said = world.ralph(command);
                assert_eq!(said.code, 0, "{command:?}: {}{}", said.out, said.err);
            }
            assert!(!world.path("../ran").exists(), "{commands:?}: the planted program ran");
            assert!(!world.read(".git/config").contains("gpg"), "{commands:?}");
            assert_eq!(world.passing(), [""; 0]);
        }
    }
}

#[test]
fn no_command_that_writes_takes_a_setup_without_a_record_for_the_humans() {
    for command in [&["undo", "US-001"][..], &["restore", "1"], &["checkpoint"]] {
        let world = killed(&format!("{PLANTED}; rm .git/ralph/attempt .git/ralph/held.json"));
        let said = world.ralph(command);
        assert_eq!(said.code, 1, "{command:?}: {}{}", said.out, said.err);
        assert!(said.err.contains("in a terminal"), "{}", said.err);
        assert!(!world.path("../ran").exists(), "{command:?}: the planted program ran");
        assert!(world.path("one.txt").exists());
    }
}

#[test]
fn a_stash_that_was_dropped_comes_back() {
    let world = killed("git stash clear; git gc -q --prune=now");
    assert_eq!(world.git(&["stash", "list"]), "");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("restored stashes that the agent dropped: "), "{}", said.err);
    assert_eq!(world.git(&["show", "stash@{0}:README.md"]), "newer and stashed\n");
    assert_eq!(world.git(&["show", "stash@{1}:README.md"]), "older and stashed\n");
}
