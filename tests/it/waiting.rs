//! A run that waits for the service: what it shows, what ends it, what outlives it.

use std::process::Command;

use rustix::process::Signal;

use crate::service::script;
use crate::support::pty::Terminal;
use crate::support::world::{Ends, RALPH, signal, until};
use crate::support::{Prd, World};

/// A wait of a minute at least: nobody waits for its end here.
const LIMIT: &str = "{ fail = \"usage-limit\", resets_in = \"1s\" }";
const HINT: &str = "press Enter to skip the wait";

fn limited() -> World {
    World::scripted(&Prd::stories(1), &script(LIMIT))
}

fn waiting(command: Command) -> Terminal {
    let terminal = Terminal::start(command);
    terminal.await_text(HINT);
    terminal
}

/// What the countdown says: `1m12s`.
fn left(terminal: &Terminal) -> Option<String> {
    let screen = terminal.screen();
    let line = screen.lines().rfind(|line| line.contains(" left, until "))?;
    Some(line.split(" left, until ").next()?.rsplit("· ").next()?.to_owned())
}

fn await_tick(terminal: &Terminal) {
    let before = left(terminal);
    until("the countdown to go on", || left(terminal).filter(|now| Some(now) != before.as_ref()));
}

/// `Tue 03:10:07` of `… waiting until Tue 03:10:07`.
fn moment(text: &str) -> Option<String> {
    let words = text.split(" until ").nth(1)?.split_whitespace();
    Some(words.take(2).collect::<Vec<_>>().join(" ").trim_end_matches(':').to_owned())
}

#[test]
fn a_wait_counts_down_and_enter_ends_it() {
    let world = limited();
    let mut terminal = waiting(world.run_command(&["--max-iterations", "1"]));
    await_tick(&terminal);
    await_tick(&terminal);
    let screen = terminal.screen();
    assert_eq!(screen.matches("Usage limit: ").count(), 1, "{screen}");
    assert_eq!(screen.matches("; waiting until ").count(), 1, "{screen}");
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("Wait skipped; continuing"), "{screen}");
    assert!(screen.contains("All tasks complete"), "{screen}");
    assert!(!screen.contains("Usage limit: "), "{screen}");
}

#[test]
fn other_keys_and_what_was_typed_before_do_not_end_a_wait() {
    let steps = format!("{{ run = \"until [ -e ../go ]; do sleep 0.02; done\" }}, {LIMIT}");
    let world = World::scripted(&Prd::stories(1), &script(&steps));
    let mut terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text("Running mock");
    terminal.press("\r\rtyped ahead\r");
    world.write("../go", "");
    terminal.await_text(HINT);
    terminal.press(" q\x1b[A\x04");
    await_tick(&terminal);
    await_tick(&terminal);
    let screen = terminal.screen();
    assert!(!screen.contains("Wait skipped"), "{screen}");
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn the_terminal_stays_as_it_is_and_a_signal_in_a_wait_leaves_the_run_resumable() {
    for (press, send, code) in [(Some("\x03"), None, 130), (None, Some(Signal::TERM), 143)] {
        let world = limited();
        let mut terminal = Terminal::start(world.run_command(&[]));
        let modes = terminal.modes();
        let told = moment(&terminal.await_text("; waiting until "));
        terminal.await_text(HINT);
        assert_eq!(terminal.modes(), modes, "even SIGKILL leaves a usable terminal");
        press.into_iter().for_each(|keys| terminal.press(keys));
        send.into_iter().for_each(|which| terminal.signal(which));
        let interrupted = terminal.await_text("Interrupted.");
        assert!(!interrupted.contains(HINT), "{interrupted}");
        let status = world.ralph(&["status"]);
        assert_eq!(moment(&status.out), told, "{}", status.out);
        until("the terminal as it was", || (terminal.modes() == modes).then_some(()));
        assert_eq!(terminal.finish().0, code);

        let mut terminal = waiting(world.run_command(&[]));
        let screen = terminal.screen();
        assert!(screen.contains("Continuing run"), "{screen}");
        assert_eq!(moment(&screen), told, "{screen}");
        terminal.press("\r");
        assert_eq!(terminal.finish().0, 0);
    }
}

#[test]
fn a_wait_cut_short_is_not_waited_for_again_after_a_kill() {
    let hangs = "[[story.US-001.attempts]]\nsteps = [{ run = \"echo y > ../here\" }, \"hang\"]\n";
    let both = format!("[[story.US-001.attempts]]\nsteps = [{LIMIT}]\n{hangs}");
    let world = World::scripted(&Prd::stories(1), &both);
    let mut terminal = waiting(world.run_command(&[]));
    terminal.press("\r");
    world.await_file("../here");
    terminal.signal(Signal::KILL);
    terminal.finish();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    std::fs::remove_file(world.script()).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.err.contains("waiting until"), "{}", said.err);
}

#[test]
fn a_wait_survives_a_restart_and_status_knows_of_it() {
    let world = World::scripted(&Prd::stories(1), &script(&LIMIT.replace("1s", "5h")));
    let mut waits = Vec::new();
    for which in [Signal::KILL, Signal::INT, Signal::KILL] {
        let log = world.path("../log");
        let mut command = world.run_command(&[]);
        command.stderr(std::fs::File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        waits.extend(until("the wait to be told", || {
            moment(&std::fs::read_to_string(&log).unwrap()).map(Some)
        }));
        let running = world.ralph(&["status"]).out;
        assert!(running.contains("running (pid"), "{running}");
        waits.extend(moment(&running));
        signal(&child, which);
        child.code();
        let interrupted = world.ralph(&["status"]).out;
        assert!(interrupted.contains("interrupted; `ralph run` resumes it"), "{interrupted}");
        waits.extend(moment(&interrupted));
    }
    assert_eq!(waits, vec![waits[0].clone(); 9], "the same moment");
    let json = world.ralph(&["status", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["stories"][0]["attempts"], 1, "{json:#}");
    assert!(json["wait"]["error"].as_str().unwrap().starts_with("usage limit"), "{json:#}");
    assert!(json["wait"]["until"].as_str().unwrap().ends_with('Z'), "{json:#}");
}

#[test]
fn what_the_human_changes_during_a_wait_counts_and_the_countdown_continues() {
    let steps = format!("{{ write = \"half.txt\", text = \"half\" }}, {LIMIT}");
    let world = World::scripted(&Prd::stories(2), &script(&steps));
    let mut terminal = waiting(world.run_command(&[]));
    let text = world.read("PRD.json");
    let skipped = text.replacen("\"passes\": false", "\"passes\": false, \"skipped\": true", 1);
    world.write("PRD.json", &skipped);
    terminal.await_text("work on US-001 kept at");
    terminal.await_text(HINT);
    await_tick(&terminal);
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(screen.matches("; waiting until ").count(), 1, "{screen}");
    assert_eq!(world.passing(), ["US-002"]);
}

#[test]
fn the_countdown_follows_the_window_and_needs_no_color() {
    let world = limited();
    let mut command = world.run_command(&[]);
    command.env("NO_COLOR", "1");
    let mut terminal = waiting(command);
    terminal.resize(30, 40);
    until("the countdown to be cut", || {
        let screen = terminal.screen();
        let lines: Vec<_> = screen.lines().filter(|line| line.contains("Usage limit:")).collect();
        (lines.len() == 1 && lines[0].ends_with('…')).then_some(())
    });
    terminal.resize(50, 120);
    terminal.await_text(HINT);
    assert!(!terminal.raw().contains("\x1b[3"), "{}", terminal.raw());
    terminal.press("\r");
    assert_eq!(terminal.finish().0, 0);
}

#[test]
fn without_a_live_line_a_wait_is_printed_once() {
    for (args, term) in [(&["--quiet"][..], "xterm"), (&[], "dumb")] {
        let world = limited();
        let mut command = world.run_command(args);
        command.env("TERM", term);
        let mut terminal = Terminal::start(command);
        terminal.await_text("; waiting until ");
        assert!(moment(&world.ralph(&["status"]).out).is_some());
        terminal.press("\x03");
        terminal.await_text("Interrupted.");
        let raw = terminal.raw();
        assert_eq!(raw.matches("aiting").count(), 1, "{raw}");
        assert_eq!(terminal.finish().0, 130);
    }
}

/// A shell that runs it as a job.
fn as_job(world: &World, shell: &str) -> Terminal {
    let mut command = world.command("sh");
    command.args(["-c", &format!("set -m; {shell}"), RALPH]).args(world.run_words(&[]));
    Terminal::start(command)
}

const UNTIL_GO: &str = "until [ -e ../go ]; do sleep 0.02; done";

#[test]
fn in_the_background_no_key_is_read() {
    let world = limited();
    let mut terminal = as_job(&world, &format!("\"$0\" \"$@\" & {UNTIL_GO}; fg"));
    terminal.await_text("left, until");
    terminal.press("\r");
    await_tick(&terminal);
    await_tick(&terminal);
    let screen = terminal.screen();
    assert!(!screen.contains(HINT), "{screen}");
    world.write("../go", "");
    terminal.await_text(HINT);
    await_tick(&terminal);
    await_tick(&terminal);
    let screen = terminal.screen();
    assert!(!screen.contains("Wait skipped"), "it was not meant for ralph: {screen}");
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn ctrl_z_stops_a_wait_and_leaves_the_terminal_to_the_shell() {
    let world = limited();
    let shell = format!("\"$0\" \"$@\"; echo yes > ../stopped; {UNTIL_GO}; fg");
    let mut terminal = as_job(&world, &shell);
    let modes = terminal.modes();
    terminal.await_text(HINT);
    terminal.press("\x1a");
    world.await_file("../stopped");
    assert_eq!(terminal.modes(), modes);
    world.write("../go", "");
    await_tick(&terminal);
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}
