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

/// The gate is weakened by a commit.
const TWEAK: &str = "echo true > check.sh; git commit -qam tweak";

/// The story is not done without the file `work.txt`, and no agent writes it.
fn checked() -> World {
    let world = World::with(&Prd::stories(1));
    world.write("ralph.toml", "verify = [\"sh check.sh\"]\n");
    world.write("check.sh", "test -e work.txt\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "gate"]);
    world
}

/// The first attempt does it; its driver stops because the journal is lost, or is killed.
fn weakened(act: &str, is_killed: bool) -> World {
    let world = checked();
    let script =
        format!("[default]\nsteps = [{{ run = '''{act}; echo y > ../here''' }}, \"hang\"]\n");
    fs::write(world.script(), script).unwrap();
    if is_killed {
        kill_when_here(&world);
    } else {
        let said = world.run(&[]);
        assert_eq!(said.code, 1, "{}", said.err);
    }
    let claims = "[default]\nsteps = [{ run = \"echo x > x\" }, \"complete\"]\n";
    fs::write(world.script(), claims).unwrap();
    world
}

#[test]
fn an_agents_commits_are_not_the_humans_because_the_journal_is_lost() {
    for is_killed in [false, true] {
        let world = weakened(&format!("{TWEAK}; {FORGET}"), is_killed);
        let said = world.run(&[]);
        assert_eq!(said.code, 4, "{is_killed}: {}", said.err);
        let asks = "work on US-001 changed what needs your approval: `check.sh` changed";
        assert!(said.err.contains(asks), "{is_killed}: {}", said.err);
        assert_eq!(world.read("check.sh"), "test -e work.txt\n", "{is_killed}");
        assert!(!world.subjects().contains(&"tweak".to_owned()), "{is_killed}: {}", said.err);
        let kept = world.git(&["show", "refs/ralph/attempts/US-001/1:check.sh"]);
        assert_eq!(kept, "true\n", "{is_killed}");
        assert_eq!(world.passing(), [""; 0], "{is_killed}");
    }
}

/// Then nothing says whose the commits are: the human decides about what they changed of the gates.
#[test]
fn commits_that_may_be_an_agents_are_asked_about_if_the_journal_is_lost() {
    for act in [
        "env -u GIT_REFLOG_ACTION git commit -qam tweak",
        "git commit -qam tweak; rm -rf .git/logs",
        "git commit -qam tweak; rm -rf .git/logs; git update-ref -d refs/worktree/ralph/base",
        "git add .; git stash -q; git stash pop -q; true",
    ] {
        for is_killed in [false, true] {
            let act = format!("echo true > check.sh; {act}; {FORGET}");
            let world = weakened(&act, is_killed);
            let said = world.run(&["--allow-dirty"]);
            assert_ne!(said.code, 0, "{act} {is_killed}: {}", said.err);
            assert!(said.err.contains("check.sh"), "{act} {is_killed}: {}", said.err);
            assert_eq!(world.passing(), [""; 0], "{act} {is_killed}");
        }
    }
}

#[test]
fn a_run_of_which_only_its_files_are_left_is_no_first_run() {
    let gone = format!(
        "{FORGET} .git/logs .git/refs/ralph .git/refs/worktree; sed -i /ralph/d .git/packed-refs"
    );
    let world = weakened(&format!("{TWEAK}; {gone}; true"), true);
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("in a terminal"), "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
    let world = weakened(&format!("{TWEAK}; {gone}; true"), false);
    let said = world.run(&[]);
    assert_ne!(said.code, 0, "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
}
