//! The commands around the loop, and wrong usage.

use ralph::model::{AttemptEnded, Event};
use serde_json::json;

use crate::support::world::until;
use crate::support::world::{Ends, Runs};
use crate::support::{Prd, World};

/// All but `run`.
const COMMANDS: [&str; 11] = [
    "check",
    "init",
    "status",
    "cost",
    "prompt",
    "log",
    "diff",
    "restore",
    "checkpoint",
    "undo",
    "completions",
];

#[test]
fn init_writes_what_run_can_use_and_overwrites_nothing() {
    let world = World::new();
    world.write("PROMPT.md", "mine\n");
    let said = world.ralph(&["init"]);
    assert_eq!(said.code, 0);
    assert_eq!(world.read("PROMPT.md"), "mine\n");
    assert!(said.out.contains("created ./PRD.json"), "{}", said.out);
    assert_eq!(world.ralph(&["check", "--strict"]).code, 0);
    assert_eq!(world.run(&[]).code, 0);
    let before = world.read("PRD.json");
    assert_eq!(world.ralph(&["init"]).code, 0);
    assert_eq!(world.read("PRD.json"), before);
}

#[test]
fn help_of_each_command_has_an_example() {
    let world = World::without_repository();
    let said = world.ralph(&["--help"]);
    assert_eq!(said.code, 0);
    assert!(said.out.contains("ralph run PRD.json --dry-run"), "{}", said.out);
    for command in COMMANDS.into_iter().chain(["run"]) {
        let said = world.ralph(&[command, "--help"]);
        assert_eq!(said.code, 0);
        assert!(said.out.contains(&format!("Examples:\n  ralph {command}")), "{}", said.out);
    }
    assert!(!said.out.contains("supervise") && !said.out.contains("mock-agent"));
}

#[test]
fn the_short_help_is_short_and_the_long_one_complete() {
    let world = World::without_repository();
    let short = world.ralph(&["run", "-h"]).out;
    let long = world.ralph(&["run", "--help"]).out;
    assert!(!short.contains("fresh agent process"), "{short}");
    for text in [
        "fresh agent process",
        "[env: MAX_ITERATIONS]",
        "[env: RALPH_ANSWER_TIMEOUT]",
        "STUCK_THRESHOLD",
        "every story passes or was skipped",
        "-q, --quiet",
        "-v, --verbose",
    ] {
        assert!(long.contains(text), "{text} is not in\n{long}");
    }
    for command in COMMANDS {
        let short = world.ralph(&[command, "-h"]).out;
        let long = world.ralph(&[command, "--help"]).out;
        assert!(short.lines().count() < long.lines().count(), "{short}\n{long}");
        assert!(!long.contains("--quiet"), "{long}");
    }
}

#[test]
fn quiet_may_stand_before_the_command() {
    let world = World::with(&Prd::stories(1));
    let mut words = vec!["-q".to_owned()];
    words.extend(world.run_words(&[]));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = world.ralph(&words);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.err.contains("Iteration 1"), "{}", said.err);
    assert_eq!(world.ralph(&["run", "-q", "-v"]).code, 2);
}

#[test]
fn status_changes_nothing() {
    let world = World::with(&Prd::stories(1));
    let said = world.ralph(&["status"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!world.path(".git/ralph").exists());
    assert!(!world.path(".ralph").exists());
}

#[test]
fn a_story_runs_only_while_somebody_holds_the_lock() {
    let script = "[default]\nsteps = [{ run = \"echo yes > started.txt\" }, \"hang\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    let mut child = world.start(&[]);
    world.await_file("started.txt");
    let running = world.ralph(&["status"]).out;
    assert!(running.contains("US-001  running"), "{running}");
    child.kill().unwrap();
    child.code();
    until("the agent to be gone", || world.processes().is_empty().then_some(()));
    let killed = world.ralph(&["status"]).out;
    assert!(killed.contains("US-001  open"), "{killed}");
    assert!(killed.contains("interrupted; `ralph run` resumes it"), "{killed}");
}

#[test]
fn the_agents_version_and_model_are_known_with_each_attempt() {
    let world = World::with(&Prd::stories(1));
    assert_eq!(world.run(&[]).code, 0);
    let state = world.state();
    assert_eq!((&state["agent_version"], &state["model"]), (&json!("mock"), &json!("mock")));
    let events = world.journal();
    let ended = events.iter().find_map(|recorded| match &recorded.event {
        Event::AttemptEnded(ended) => Some(ended),
        _ => None,
    });
    let ended = ended.expect("an attempt");
    assert_eq!(
        (ended.agent_version.as_deref(), ended.model.as_deref()),
        (Some("mock"), Some("mock"))
    );

    // As it was written before there were such fields.
    let mut old = serde_json::to_value(ended).unwrap();
    old.as_object_mut().unwrap().retain(|key, _| key != "agent_version" && key != "model");
    let read: AttemptEnded = serde_json::from_value(old).unwrap();
    assert_eq!((read.agent_version, read.model), (None, None));
}

#[test]
fn wrong_usage_exits_2() {
    let world = World::with(&Prd::stories(1));
    for words in [
        vec!["run", "--nope"],
        vec!["fly"],
        vec!["run", "--max-iterations", "0"],
        vec!["run", "--max-iterations", "many"],
        vec!["run", "--on-escalation", "panic"],
        vec!["run", "--agent", "claude", "--agent-command", "x"],
        vec!["run", "--story", "../x"],
    ] {
        let said = world.ralph(&words);
        assert_eq!(said.code, 2, "{words:?}: {}", said.err);
        assert!(!said.err.is_empty());
    }
    assert_eq!(world.subjects(), ["backlog", "first"]);
}

#[test]
fn a_missing_agent_is_reported_before_the_run_starts() {
    let world = World::with(&Prd::stories(1));
    let mut command = world.command(crate::support::world::RALPH);
    let output = command.arg("run").env("PATH", "/nonexistent").said();
    let err = output.err;
    assert_eq!(output.code, 1);
    assert!(err.contains("`claude` was not found") && err.contains("--agent mock"), "{err}");
}

#[test]
fn a_claude_inside_the_work_tree_is_not_trusted() {
    let world = World::with(&Prd::stories(1));
    world.write("bin/claude", "#!/bin/sh\n: > ran\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(world.path("bin/claude"), mode).unwrap();
    let mut command = world.command(crate::support::world::RALPH);
    let output = command.arg("run").env("PATH", world.path("bin")).said();
    assert_eq!(output.code, 1, "{}", output.err);
    assert!(output.err.contains("`claude` was not found"), "{}", output.err);
    assert!(!world.path("ran").exists());
}

#[test]
fn errors_in_settings_name_their_line() {
    let world = World::with(&Prd::stories(1));
    world.write("ralph.toml", "max_iterations = 3\nmax_iteration = 4\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("ralph.toml:2:1: unknown setting"), "{}", said.err);
    world.write("ralph.toml", "max_iterations = 0\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("ralph.toml:1:18: invalid value `0`"), "{}", said.err);
}

#[test]
fn completions_are_made_for_a_shell() {
    let world = World::without_repository();
    let said = world.ralph(&["completions", "bash"]);
    assert_eq!(said.code, 0);
    assert!(said.out.contains("_ralph()"), "{}", said.out);
}
