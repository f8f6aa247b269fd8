//! Changes of files that decide what gates or agents run: out of the tree until the human decides.

use std::fs;

use ralph::model::Event;

use crate::support::pty::Terminal;
use crate::support::{Prd, World};

const STRICT: &str = "test -e late || test -e ok\n";

/// The gate's script, changed by the first attempt, which claims.
fn changed_script(to: &str, next: &str) -> World {
    let script = format!(
        "[[story.US-001.attempts]]\nsteps = [{{ run = \"touch work; echo '{to}' > check.sh\" }}, \"complete\"]\n\
         [[story.US-001.attempts]]\nsteps = [{{ run = \"{next}\" }}, \"complete\"]\n"
    );
    let world = World::scripted(&Prd::stories(1), &script);
    world.write("ralph.toml", "verify = [\"sh check.sh\"]\nbackoff = \"none\"\n");
    world.write("check.sh", STRICT);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world
}

fn asked(world: &World) -> (Terminal, String) {
    let terminal = Terminal::start(world.run_command(&[]));
    let screen = terminal.await_text("❯ [r] restore the original");
    (terminal, screen)
}

fn questions(world: &World) -> usize {
    let events = world.journal().into_iter();
    events.filter(|one| matches!(one.event, Event::QuestionRaised { .. })).count()
}

#[test]
fn no_gate_runs_with_a_changed_script_before_the_human_decides() {
    let world = changed_script("exit 0", "touch ok");
    let (mut terminal, screen) = asked(&world);
    assert!(screen.contains("`check.sh` changed"), "{screen}");
    assert_eq!(world.read("check.sh"), STRICT);
    assert!(!screen.contains("`sh check.sh` passed"), "{screen}");
    // What Enter chooses: the claim is checked with the original.
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.iteration_files("prompt.md").len(), 2, "its first claim fails: {screen}");
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\nok\nwork\n");
    assert_eq!((questions(&world), world.read("check.sh")), (1, STRICT.to_owned()));
}

#[test]
fn an_accepted_change_is_the_storys_and_is_asked_about_once() {
    // It is red with the accepted script, and green after the second attempt.
    let world = changed_script("test -e late", "touch late");
    let (mut terminal, _) = asked(&world);
    terminal.press("y");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.iteration_files("prompt.md").len(), 2, "{screen}");
    assert_eq!(questions(&world), 1, "{screen}");
    assert_eq!(world.git(&["show", "HEAD:check.sh"]), "test -e late\n");
    assert_eq!(world.status(), "");
}

#[test]
fn agents_settings_wait_for_the_human_also_without_a_claim() {
    let script = "[[story.US-001.attempts]]\nsteps = [{ run = \"echo servers > .mcp.json\" }]\n\
                  [[story.US-001.attempts]]\nsteps = [{ run = \"cat .mcp.json > seen.txt\" }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("`.mcp.json` changed: taken out"), "{}", said.err);
    assert!(!world.path(".mcp.json").exists());
    let (mut terminal, _) = asked(&world);
    terminal.press("y");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.git(&["show", "HEAD:seen.txt"]), "servers\n");
    assert_eq!(world.git(&["show", "HEAD:.mcp.json"]), "servers\n");
}

#[test]
fn only_the_version_that_was_shown_is_accepted() {
    let world = changed_script("exit 0", "touch ok");
    let (mut terminal, _) = asked(&world);
    let held = world.journal().into_iter().find_map(|recorded| match recorded.event {
        Event::ChangesHeld { changes, .. } => changes.into_iter().next(),
        _ => None,
    });
    fs::write(world.path(&held.unwrap().changed.unwrap()), "touch ../stolen\n").unwrap();
    terminal.press("y");
    terminal.await_text("the accepted change does not fit any more");
    terminal.await_text("❯ [r]");
    terminal.press("r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.read("check.sh"), STRICT);
    assert!(!world.path("../stolen").exists());
}
