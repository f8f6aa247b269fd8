//! The settings in force are those of the run's start, for a continued run too.

use std::fs;

use ralph::model::{Event, SettingsText};

use crate::support::pty::Terminal;
use crate::support::world::{RALPH, Runs};
use crate::support::{Prd, World};

const GATE: &str = "verify = [\"test -e done\"]\n";
const WEAKER: &str = "verify = [\"true\"]\n";
/// An option that ends the run after the settings are compared.
const NO_RUN: [&str; 2] = ["--branch", "no..name"];

/// A run that was killed during an attempt, with a gate that is red.
fn killed() -> World {
    let script = "[default]\nsteps = [{ write = \"a\", text = \"a\" }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    world.write("ralph.toml", GATE);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world.kill_run_at(|event| matches!(event, Event::AttemptStarted(_)));
    world
}

/// What the runs were begun and continued with.
fn taken(world: &World) -> Vec<Option<String>> {
    let events = world.journal().into_iter().filter_map(|recorded| match recorded.event {
        Event::SettingsTaken(SettingsText { text, .. }) => Some(text),
        _ => None,
    });
    events.collect()
}

fn kept(world: &World) -> Vec<String> {
    let files = fs::read_dir(world.path(".ralph")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut kept: Vec<String> = names.filter(|name| name.starts_with("changed-")).collect();
    kept.sort();
    kept
}

#[test]
fn a_change_while_the_run_was_interrupted_is_reverted_and_kept() {
    let world = killed();
    world.write("ralph.toml", WEAKER);
    let said = world.run(&["--max-iterations", "2"]);
    assert_eq!(said.code, 3, "the weaker gate would pass: {}", said.err);
    assert!(said.err.contains("ralph.toml is not as it was in this run"), "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
    assert_eq!(world.read("ralph.toml"), GATE);
    assert_eq!(world.read(&format!(".ralph/{}", kept(&world)[0])), WEAKER);
    assert_eq!(taken(&world), [Some(GATE.to_owned())]);
}

#[test]
fn whatever_is_in_its_place() {
    let world = killed();
    let root = world.root();
    for change in [
        "rm ralph.toml",
        "echo 'not = [toml' > ralph.toml",
        "rm ralph.toml; mkdir ralph.toml; touch ralph.toml/in-it",
        "ln -sf PRD.json ralph.toml",
        "rm ralph.toml; mkfifo ralph.toml",
        "truncate -s 10G ralph.toml",
    ] {
        let done = world.command("sh").args(["-c", change]).current_dir(&root).said();
        assert_eq!(done.code, 0, "{}", done.err);
        let said = world.run(&NO_RUN);
        assert_eq!(said.code, 2, "{change}: {}", said.err);
        assert_eq!(world.read("ralph.toml"), GATE, "{change}");
        assert!(fs::symlink_metadata(world.path("ralph.toml")).unwrap().is_file(), "{change}");
    }
    assert_eq!(kept(&world).len(), 5, "all but the one that was deleted");
    let again = world.run(&NO_RUN);
    assert!(!again.err.contains("ralph.toml"), "{}", again.err);
}

#[test]
fn a_file_that_was_not_there_when_the_run_began_is_moved_away() {
    let world = World::scripted(&Prd::stories(1), "[default]\nsteps = [\"hang\"]\n");
    world.kill_run_at(|event| matches!(event, Event::AttemptStarted(_)));
    world.write("ralph.toml", "keep_processes = [\"evil\"]\n");
    assert_eq!(world.run(&NO_RUN).code, 2);
    assert!(!world.path("ralph.toml").exists());
    assert_eq!(kept(&world).len(), 1);
}

#[test]
fn flags_are_the_humans_and_ralph_trust_accepts_a_change() {
    let world = killed();
    world.write("ralph.toml", WEAKER);
    let trusted = world.ralph(&["trust", "--yes"]);
    assert!(trusted.out.contains("2 items approved"), "{}{}", trusted.out, trusted.err);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("continues with the changed ralph.toml"), "{}", said.err);
    assert_eq!(world.read("ralph.toml"), WEAKER);
    assert_eq!(taken(&world), [Some(GATE.to_owned()), Some(WEAKER.to_owned())]);
}

#[test]
fn in_a_terminal_the_difference_is_shown_and_asked_about() {
    let world = killed();
    let start = || {
        world.write("ralph.toml", WEAKER);
        let mut command = world.command(RALPH);
        command.args(world.run_words(&["--max-iterations", "2"]));
        let terminal = Terminal::start(command);
        terminal.await_text("[y] yes, use the changed version");
        let screen = terminal.screen();
        assert!(screen.contains("-verify = [\"test -e done\"]"), "{screen}");
        assert!(screen.contains("+verify = [\"true\"]"), "{screen}");
        terminal
    };
    let mut left = start();
    left.press("\x03");
    assert_eq!(left.finish().0, 130);
    assert_eq!(world.read("ralph.toml"), WEAKER, "nothing is decided");
    let mut yes = start();
    yes.press("y");
    let (code, screen) = yes.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.read("ralph.toml"), WEAKER);
}

/// A file in the tree that the command names decides what runs next.
#[test]
fn an_agent_does_not_change_the_script_that_starts_it() {
    let world = World::with(&Prd::stories(1));
    let agent = "echo '# more' >> agent.sh\necho w > w.txt\necho 'Task US-001 complete'\n";
    world.write("agent.sh", agent);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "agent"]);
    let said = world.ralph(&["run", "--once", "--trust", "--agent-command", "sh agent.sh"]);
    assert_eq!(world.read("agent.sh"), agent, "{}", said.err);
    assert!(said.err.contains("agent.sh"), "{}", said.err);
}
