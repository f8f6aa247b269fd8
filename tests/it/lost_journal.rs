//! A journal that is deleted or broken: nothing that was planted with it stays.

use std::fs;

use crate::hostile::kill_when_here;
use crate::support::world::Said;
use crate::support::{Prd, World};

const FORGET: &str = "rm -rf .git/ralph";
const BREAK: &str = "for file in .git/ralph/journal.db*; do echo garbage > $file; done";

/// Takes what is the human's, and plants what the next process would use.
const ACT: &str = r#"printf '#!/bin/sh\ntouch %s\n' "$PWD/../ran" > ../evil; chmod +x ../evil
    git config commit.gpgsign true; git config gpg.program "$PWD/../evil"
    echo planted > PROMPT.md; echo 'verify = []' > ralph.toml; rm .env mine.txt
    mkdir -p .claude; echo '{}' > .claude/settings.json
    sed -i 's/it is done/anything/' PRD.json;"#;

fn world(gate: &str, script: &str) -> World {
    let world = World::scripted(&Prd::stories(2), script);
    world.write(".gitignore", ".env\n");
    world.write("ralph.toml", &format!("verify = ['''{gate}''']\n"));
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world.write("mine.txt", "mine\n");
    world.write(".env", "KEY=1\n");
    world
}

/// The first attempt does it.
fn attempt(act: &str, then: &str) -> World {
    let script = format!(
        r#"
        [[story.US-001.attempts]]
        steps = [{{ run = '''{act}''' }}, {then}]
        [default]
        steps = [{{ run = "echo $RALPH_STORY > $RALPH_STORY.txt" }}, "complete"]
        "#
    );
    world("true", &script)
}

fn nothing_stays(world: &World, said: &Said) {
    assert!(!world.path("../ran").exists(), "the planted program ran: {}", said.err);
    assert!(!world.read(".git/config").contains("gpg"), "{}", said.err);
    assert!(!world.path("PROMPT.md").exists(), "{}", said.err);
    assert_ne!(world.read("ralph.toml"), "verify = []\n", "{}", said.err);
    assert!(!world.path(".claude/settings.json").exists(), "{}", said.err);
    assert!(!world.read("PRD.json").contains("anything"), "{}", said.err);
    let text = |name: &str| fs::read_to_string(world.path(name)).unwrap_or_default();
    assert_eq!(text("mine.txt"), "mine\n", "{}", said.err);
    assert_eq!(text(".env"), "KEY=1\n", "{}", said.err);
}

#[test]
fn a_run_that_loses_its_journal_puts_everything_back_before_it_stops() {
    let gate = format!(
        "test ! -e US-001.txt || test -e ../done || {{ touch ../done; {ACT} {FORGET}; sleep 1000; }}"
    );
    let work =
        "[default]\nsteps = [{ run = \"echo $RALPH_STORY > $RALPH_STORY.txt\" }, \"complete\"]";
    for world in [
        attempt(&format!("{ACT} {FORGET}"), "\"hang\""),
        attempt(&format!("{ACT} {FORGET}"), "\"complete\""),
        attempt(&format!("{ACT} {BREAK}"), "\"complete\""),
        world(&gate, work),
    ] {
        let said = world.run(&[]);
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.err.contains("journal is"), "{}", said.err);
        nothing_stays(&world, &said);
        assert_eq!(world.processes(), [""; 0]);
        let _ = fs::remove_file(world.script());
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{}", said.err);
        nothing_stays(&world, &said);
        assert_eq!(world.passing(), ["US-001", "US-002"]);
    }
}

/// Its driver is killed as well, so that nothing is put back.
fn killed(forget: &str) -> World {
    let world = attempt(&format!("{ACT} {forget}; echo y > ../here"), "\"hang\"");
    kill_when_here(&world);
    fs::remove_file(world.script()).unwrap();
    assert!(world.read("PRD.json").contains("anything"));
    world
}

#[test]
fn without_a_journal_no_program_runs_that_git_names() {
    let world = killed(FORGET);
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("program = ") && said.err.contains("in a terminal"), "{}", said.err);
    assert!(!world.path("../ran").exists(), "the planted program ran: {}", said.err);
    // The record of git's setup is beside the journal.
    let world = killed(BREAK);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!world.path("../ran").exists(), "the planted program ran: {}", said.err);
    assert!(!world.read(".git/config").contains("gpg"), "{}", said.err);
}

#[test]
fn without_a_journal_the_humans_files_are_those_of_the_newest_snapshot() {
    let world = killed(FORGET);
    world.git(&["config", "--unset", "gpg.program"]);
    world.git(&["config", "--unset", "commit.gpgsign"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    for planted in ["PROMPT.md", ".claude/settings.json"] {
        assert!(!world.path(planted).exists(), "{planted}: {}", said.err);
    }
    assert_ne!(world.read("ralph.toml"), "verify = []\n", "{}", said.err);
    assert!(!world.read("PRD.json").contains("anything"), "{}", said.err);
    for told in ["your instructions", "ralph's settings", "settings of agents", "PRD.json"] {
        assert!(said.err.contains(told), "{told}: {}", said.err);
    }
    let kept = |name: &str| world.read(&format!(".git/ralph/changed/unrecorded/{name}"));
    assert_eq!(kept("PROMPT.md"), "planted\n");
    assert!(kept("PRD.json").contains("anything"));
    assert_eq!(world.passing(), ["US-001", "US-002"]);
}
