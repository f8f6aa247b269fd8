//! Agents that get nowhere, and words to agents at work.

use std::process::{Child, Stdio};

use ralph::model::{Event, NudgedBy, Recorded, StuckEvent};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::pty::Terminal;
use crate::support::world::{Ends, RALPH, Said, signal, until};
use crate::support::{Prd, World};

/// Talks on and on, and changes nothing.
const TALKS: &str = "while :; do echo still at it; sleep 0.1; done";
const SHORT: &str =
    "stuck_after = \"1s\"\nstuck_question_after = \"1s\"\nstuck_answer_timeout = \"1s\"\n";

fn world(script: &str, settings: &str) -> World {
    let world = World::scripted(&Prd::stories(1), script);
    world.write("ralph.toml", settings);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world
}

fn end(child: Child) -> Said {
    child.ended()
}

/// The stories whose agents were said to make no progress.
fn reminders(world: &World) -> Vec<String> {
    let reminded = |recorded: Recorded| match recorded.event {
        // The last scan may see its work before it ends.
        Event::Stuck { step: StuckEvent::Recovered, .. } => None,
        Event::Nudged { story, by: NudgedBy::Driver, .. } | Event::Stuck { story, .. } => {
            Some(story.to_string())
        }
        _ => None,
    };
    world.journal().into_iter().filter_map(reminded).collect()
}

fn health(world: &World) -> Option<String> {
    let text = std::fs::read_to_string(world.path(".ralph/status.json")).ok()?;
    let status: Value = serde_json::from_str(&text).ok()?;
    Some(status["iterations"].as_array()?.last()?["health"].as_str()?.to_owned())
}

#[test]
fn a_nudge_reaches_the_running_agent() {
    let script = "[default]\nsteps = [{ run = \"echo y > ../here\" }, \"hear\", \
                  { write = \"a.txt\", text = \"a\" }, \"complete\"]\n";
    let world = world(script, "");
    let child = world.start(&[]);
    world.await_file("../here");
    let told = world.ralph(&["nudge", "the", "tests come first"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.out.starts_with("message sent; if no agent can take it now"), "{}", told.out);
    let said = end(child);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("message delivered to the agent"), "{}", said.err);
    assert!(world.iteration_files("log").concat().contains("I was told: the tests come first"));
}

#[test]
fn a_nudge_that_the_agent_cannot_take_is_for_the_next_one() {
    let agent = "sh -c 'echo y > ../here; if test $RALPH_ATTEMPT = 1; then while ! test -e ../go; do sleep 0.05; done; \
                 else echo x > x; echo Task US-001 complete; fi'";
    let world = world("", "");
    let mut command = world.command(RALPH);
    command.args(["run", "--trust", "--agent-command", agent]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    world.await_file("../here");
    assert_eq!(world.ralph(&["nudge", "mind the gap"]).code, 0);
    until("the word to be taken up", || {
        let nudged = |one: &Recorded| matches!(one.event, Event::Nudged { delivered: false, .. });
        world.journal().iter().any(nudged).then_some(())
    });
    world.write("../go", "");
    let said = end(child);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!world.prompt(1).contains("mind the gap"));
    assert!(world.prompt(2).contains("mind the gap"), "{}", world.prompt(2));
}

#[test]
fn a_nudge_after_the_result_is_for_the_next_agent() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"not yet"}"#;
    let script = format!(
        "[[default.attempts]]\nsteps = [{{ run = \"echo x > x\" }}, {{ raw = '''{result}''' }}, \
         {{ run = \"echo y > ../here; while ! test -e ../go; do sleep 0.05; done\" }}]\n\
         [[default.attempts]]\nsteps = [{{ write = \"a.txt\", text = \"a\" }}, \"complete\"]\n"
    );
    let world = world(&script, "result_grace = \"1h\"\nbackground_grace = \"1h\"\n");
    let child = world.start(&[]);
    world.await_file("../here");
    until("the result to be read", || {
        world.iteration_files("log").concat().contains("not yet").then_some(())
    });
    let told = world.ralph(&["nudge", "mind the gap"]);
    assert!(told.out.contains("the next attempt gets it"), "{}", told.out);
    let delivered = until("the word to be taken up", || {
        world.journal().iter().find_map(|one| match one.event {
            Event::Nudged { delivered, .. } => Some(delivered),
            _ => None,
        })
    });
    world.write("../go", "");
    let said = end(child);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!delivered, "{}", said.err);
    assert!(said.err.contains("takes no messages now; the story's next attempt"), "{}", said.err);
    assert!(world.prompt(2).contains("mind the gap"), "{}", world.prompt(2));
}

#[test]
fn a_nudge_during_a_wait_is_for_the_next_agent_even_of_another_process() {
    let script = "[[default.attempts]]\nsteps = [{ fail = \"usage-limit\", resets_in = \"1h\" }]\n\
                  [[default.attempts]]\nsteps = [{ write = \"a.txt\", text = \"a\" }, \"complete\"]\n";
    let world = world(script, "");
    let wait = "press Enter to skip the wait";
    let terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text(wait);
    assert_eq!(world.ralph(&["nudge", "mind the gap"]).code, 0);
    terminal.await_text("the next attempt gets your message");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.finish().0, 143);
    let mut terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text(wait);
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    let prompts = world.iteration_files("prompt.md");
    let told = prompts.iter().filter(|prompt| prompt.contains("mind the gap")).count();
    assert_eq!((told, prompts.len()), (1, 2), "{prompts:?}");
}

#[test]
fn a_nudge_without_a_run_is_refused() {
    let world = world("", "");
    let told = world.ralph(&["nudge", "hello"]);
    assert_eq!(told.code, 1);
    assert!(told.err.contains("no run is active in this work tree"), "{}", told.err);
    assert_eq!(world.ralph(&["nudge", " "]).code, 2);
    // What was meant for an earlier run is not meant for this one.
    assert_eq!(world.run(&[]).code, 0);
}

#[test]
fn a_stuck_agent_is_reminded_once_and_continues() {
    // It talks longer than a reminder takes, and so often that no look finds it silent before that,
    // even on a busy machine.
    let talks = "{ say = \"still at it\" }, { sleep = \"100ms\" }, ".repeat(60);
    let script = format!(
        "[default]\nsteps = [{talks}\"hear\", {{ write = \"a.txt\", text = \"a\" }}, \"complete\"]\n"
    );
    let world = world(&script, "stuck_after = \"3s\"\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(reminders(&world), ["US-001"], "{}", said.err);
    let told = "US-001 is not making progress: reminded its agent of the story";
    assert_eq!(said.err.matches(told).count(), 1, "{}", said.err);
    let log = world.iteration_files("log").concat();
    assert!(log.contains("I was told: This attempt at US-001 has been running for"), "{log}");
}

#[test]
fn an_agent_with_progress_or_without_output_is_not_reminded() {
    for agent in [
        "for i in $(seq 30); do echo still at it; echo $i >> a.txt; sleep 0.1; done",
        "echo a; sleep 3; touch a.txt",
    ] {
        let world = world("", "stuck_after = \"1s\"\n");
        let agent = format!("sh -c '{agent}; echo Task US-001 complete'");
        let said = world.ralph(&["run", "--trust", "--agent-command", &agent]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(reminders(&world), [""; 0], "{agent}: {}", said.err);
    }
}

#[test]
fn without_a_human_a_stuck_agent_is_ended_and_the_next_one_continues() {
    let agent = format!(
        "sh -c 'if test $RALPH_ATTEMPT = 1; then echo half > half; sleep 1.5; {TALKS}; \
         else test -e half && echo Task US-001 complete; fi'"
    );
    let world = world("", SHORT);
    let said = world.ralph(&["run", "--trust", "--agent-command", &agent]);
    assert_eq!(said.code, 0, "{}", said.err);
    for words in [
        "its agent takes no messages now; the next attempt is reminded",
        "US-001: no progress for a long time",
        "ended the agent of US-001 after",
        "the agent made no progress for too long and was ended",
    ] {
        assert!(said.err.contains(words), "{words} is not in\n{}", said.err);
    }
    assert!(
        world.prompt(2).contains("A message that the last agent did not receive: "),
        "{}",
        world.prompt(2)
    );
    assert_eq!(world.passing(), ["US-001"]);
    assert!(world.processes().is_empty());
}

#[test]
fn in_a_terminal_the_human_gives_more_time_or_ends_it() {
    let settings = "stuck_after = \"1s\"\nstuck_question_after = \"1s\"\n";
    let agent = format!("sh -c '{TALKS}'");
    let world = world("", settings);
    let mut command = world.command(RALPH);
    command.args(["run", "--trust", "--agent-command", &agent]);
    let mut terminal = Terminal::start(command);
    terminal.await_text("is not making progress");
    terminal.await_text("s · stuck");
    terminal.await_text("Give it more time");
    until("a stuck agent in the status", || (health(&world)? == "stuck").then_some(()));
    terminal.press("1");
    terminal.await_text("US-001 gets more time");
    let menus = || terminal.raw().matches("[3]").count();
    let before = menus();
    until("the second question", || (menus() > before).then_some(()));
    terminal.press("3");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 4, "{screen}");
    assert_eq!(health(&world).as_deref(), Some("terminated"));
    assert!(world.processes().is_empty());
}

#[test]
fn a_mark_during_a_run_is_set_when_the_command_returns() {
    let script = "[story.US-001]\nsteps = [{ run = \"echo y > ../here; while ! test -e ../go; do sleep 0.05; done\" }, \
                  { write = \"a.txt\", text = \"a\" }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(3), script);
    let child = world.start(&[]);
    world.await_file("../here");
    let told = world.ralph(&["mark", "US-002", "skip"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert_eq!(told.out, "marked US-002 as skipped in the active run\n");
    let prd: Value = serde_json::from_str(&world.read("PRD.json")).unwrap();
    assert_eq!(prd["userStories"][1]["skipped"], true, "at once");
    world.write("../go", "");
    let said: Said = end(child);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-003"]);
    let prd: Value = serde_json::from_str(&world.read("PRD.json")).unwrap();
    assert_eq!(prd["userStories"][1]["skipped"], true);
}

/// However the run ends right after, or while the mark waits for it.
#[test]
fn a_mark_is_not_lost_with_the_run_that_was_to_set_it() {
    for (case, signal_first, how) in [
        ("killed", false, Signal::KILL),
        ("interrupted", false, Signal::INT),
        ("interrupted just before", true, Signal::INT),
        ("killed just before", true, Signal::KILL),
    ] {
        let world = World::scripted(
            &Prd::stories(2),
            "[story.US-001]\nsteps = [{ run = \"echo y > ../here\" }, \"hang\"]\n",
        );
        let child = world.start(&[]);
        world.await_file("../here");
        let mark = || assert_eq!(world.ralph(&["mark", "US-002", "skip"]).code, 0, "{case}");
        if !signal_first {
            mark();
        }
        signal(&child, how);
        if signal_first {
            mark();
        }
        end(child);
        until("every process to be gone", || world.processes().is_empty().then_some(()));
        std::fs::remove_file(world.script()).unwrap();
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{case}: {}", said.err);
        assert_eq!(world.passing(), ["US-001"], "{case}: {}", said.err);
        let prd: Value = serde_json::from_str(&world.read("PRD.json")).unwrap();
        assert_eq!(prd["userStories"][1]["skipped"], true, "{case}");
    }
}
