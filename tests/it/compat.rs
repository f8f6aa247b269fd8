//! Repositories, events and settings of an earlier release are read and continued.
//!
//! `tests/fixtures/compat/README.md` says how they were made. They are never made again: what a
//! release wrote has to be understood by every release after it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ralph::model::Event;
use serde_json::Value;

use crate::support::always::{self, kept};
use crate::support::pty::Terminal;
use crate::support::world::{RALPH, Runs};
use crate::support::{Prd, World};

/// What the agents do after the update.
const THEN: &str = r#"
    [story.US-002]
    steps = [{ run = "cp half.txt seen.txt" }, { cost = 0.5 }, "complete"]
    [story.US-003]
    steps = [{ write = "c.txt", text = "c\n" }, "complete"]
    [story.US-006]
    steps = [{ write = "f.txt", text = "f\n" }, "complete"]
    [story.US-007]
    steps = [{ run = "cp g.txt seen-g.txt" }, "complete"]
"#;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compat").join(name)
}

fn unpack(name: &str) -> World {
    let world = World::unpacked(&fixture(&format!("{name}.tar.gz")));
    fs::write(world.script(), THEN).unwrap();
    world
}

/// The prompt that came last of a story.
fn last_prompt(world: &World, story: &str) -> String {
    let log = world.git(&["log", "--format=%(trailers:key=Ralph-Run,valueonly,separator=)", "-1"]);
    let folder = world.path(".ralph/runs").join(log.trim());
    let ending = format!("-{story}.prompt.md");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of_story = files.filter(|path| path.to_str().unwrap().ends_with(&ending));
    fs::read_to_string(of_story.max().expect("a prompt")).unwrap()
}

fn is_sound(world: &World, before: &std::collections::BTreeSet<String>, label: &str) {
    assert!(!before.is_empty(), "{label} kept nothing that could be lost");
    always::holds(world, before, label);
    world.git(&["fsck", "--no-dangling"]);
}

/// Both runs end the same way: nothing of the story's or the user's is lost or closed twice.
fn goes_on_to_the_end(name: &str) -> String {
    let world = unpack(name);
    let before = kept(&world);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{name}: {}", said.err);
    let subjects = [
        "US-003: Story 3",
        "US-002: Story 2",
        "a commit of its own",
        "US-001: Story 1",
        "backlog",
        "first",
    ];
    assert_eq!(world.subjects(), subjects, "{name}");
    let closing = world.git(&["show", "--name-only", "--format=", "HEAD~1"]);
    assert_eq!(closing, "PRD.json\nhalf.txt\nseen.txt\n", "{name}");
    assert_eq!(world.read("seen.txt"), "half\nmore\n", "{name}: its unfinished work was there");
    assert_eq!(world.passing(), ["US-001", "US-002", "US-003"], "{name}");
    assert_eq!(world.status(), "?? notes.txt\n", "{name}");
    assert_eq!(world.read("notes.txt"), "the user's own\n", "{name}");
    assert!(!world.read(".git/config").contains("ralph"), "{name}");
    let state = world.state();
    assert_eq!(state["iterations"], 5, "{name}: the same run, and its fourth iteration came next");
    assert_eq!(state["stop"]["reason"], "all_done", "{name}");
    assert!(last_prompt(&world, "US-002").contains("half.txt +2 -0"), "{name}");
    is_sound(&world, &before, name);
    said.err
}

#[test]
fn a_run_whose_driver_was_killed_continues_to_the_end() {
    let text = goes_on_to_the_end("killed");
    for told in ["marks of US-002, US-003", "config", "notes.txt", "iteration 3"] {
        assert!(text.contains(told), "{told} is not in\n{text}");
    }
}

#[test]
fn an_interrupted_run_continues_to_the_end() {
    let text = goes_on_to_the_end("interrupted");
    assert!(!text.contains("marks of"), "{text}");
}

#[test]
fn what_was_parked_can_be_looked_at() {
    let world = unpack("parked");
    let state = world.state();
    let stories = state["stories"].as_array().unwrap();
    let states: Vec<&str> = stories.iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["passes", "parked", "passes", "skipped", "passes", "open", "parked"]);
    assert_eq!(stories[1]["question"]["options"][1], "Use Postgres");
    assert_eq!((&state["cost_usd"], &state["counted_usd"]), (&1.6.into(), &2.85.into()));
    assert_eq!((&state["iterations"], &state["running"]), (&9.into(), &false.into()));
    let read = |args: &[&str]| {
        let said = world.ralph(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        said.out
    };
    assert!(read(&["status"]).contains("US-002 asks: Which database?"));
    assert_eq!(read(&["log"]).lines().count(), 17, "a heading and sixteen kept states");
    assert!(read(&["log", "--json"]).contains("refs/ralph/attempts/US-007/2"));
    assert!(read(&["diff", "US-005"]).contains("+by the agent"));
    assert!(read(&["diff", "3"]).contains("+more"), "work that was set aside");
    let csv = read(&["cost", "--by", "story", "--csv"]);
    let cost = "PRD.json,US-005,\"Story 5\",3,1.0,3610,104,2430,40,1,0.25,1,3,3,16";
    assert!(csv.contains(cost), "{csv}");
    assert!(read(&["cost"]).contains("mock-2"));
    assert!(read(&["prompt", "US-002"]).contains("half.txt +2 -0"));
    read(&["restore", "16", "g.txt"]);
    assert_eq!(world.read("g.txt"), "second\n");
}

#[test]
fn what_was_parked_is_answered_and_its_work_comes_back() {
    let world = unpack("parked");
    let before = kept(&world);
    let mut terminal = Terminal::start(world.run_command(&["--allow-dirty"]));
    terminal.await_text("Which one do you want?");
    terminal.await_text("[a]");
    terminal.press("2");
    terminal.await_text("How should US-007 go on?");
    terminal.await_text("❯ [1]");
    terminal.press("1");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.passing(), ["US-001", "US-002", "US-003", "US-005", "US-006", "US-007"]);
    assert!(world.read("PRD.json").contains("\"skipped\": true"));
    let prompt = last_prompt(&world, "US-002");
    assert!(prompt.contains("Proceed with option 2: Use Postgres"), "{prompt}");
    assert!(last_prompt(&world, "US-007").contains("Proceed with option 1: Try a different"));
    assert_eq!(world.read("seen.txt"), "half\nmore\n", "it was set aside and came back");
    assert_eq!(world.read("seen-g.txt"), "second\n");
    assert_eq!(world.read("README.md"), "hello\nchanged\n");
    // The user's edit is still an edit, and the agent's line in the same file is committed.
    assert_eq!(world.status(), " M docs.md\n?? notes.txt\n");
    assert!(world.read("docs.md").starts_with("edited by the user\n"));
    assert!(world.git(&["show", "HEAD:docs.md"]).starts_with("one\n"));
    is_sound(&world, &before, "parked");
}

#[test]
fn what_was_parked_can_be_skipped_without_a_terminal() {
    let world = unpack("parked");
    let before = kept(&world);
    let said = world.run(&["--allow-dirty", "--on-escalation", "skip"]);
    // US-006 waits for a story that was skipped.
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-003", "US-005"]);
    assert!(kept(&world).is_superset(&before), "{:?}", kept(&world));
    assert_eq!(world.git(&["show", "refs/ralph/attempts/US-002/1:half.txt"]), "half\nmore\n");
}

/// Every line of the file, which has every kind of event with every field.
#[test]
fn every_event_is_read_with_all_that_it_says() {
    let text = fs::read_to_string(fixture("events.jsonl")).unwrap();
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for line in text.lines() {
        let written: Value = serde_json::from_str(line).unwrap();
        let event = Event::from_json(line).unwrap_or_else(|error| {
            panic!("{error}: {line}");
        });
        let read = serde_json::to_value(&event).unwrap();
        assert!(holds(&read, &written), "of\n{written}\nthis was understood:\n{read}");
        *kinds.entry(written["kind"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(kinds.len(), 37, "{kinds:?}");
}

/// Fields may come with time, none may go.
fn holds(read: &Value, written: &Value) -> bool {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => written
            .iter()
            .all(|(name, value)| read.get(name).is_some_and(|found| holds(found, value))),
        (Value::Array(read), Value::Array(written)) => {
            read.len() == written.len() && read.iter().zip(written).all(|(a, b)| holds(a, b))
        }
        _ => read == written,
    }
}

/// A program that says with which arguments it was called.
fn fake_claude(world: &World) -> String {
    let program = world.home().join("claude");
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" > ../argv\necho nothing\n";
    fs::write(&program, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    format!("{}:{}", world.home().display(), std::env::var("PATH").unwrap())
}

fn run_with_settings(text: &str) -> (World, crate::support::world::Said) {
    let world = World::with(&Prd::stories(1));
    world.write("ralph.toml", text);
    world.write("PROMPT.md", "Do it well.\n");
    world.write("web/index.html", "hello\n");
    world.write("mcp.json", "{}\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    let mut command = world.command(RALPH);
    command.args(["run", "--trust", "--once"]).env("PATH", fake_claude(&world));
    command.env_remove("RALPH_BACKOFF");
    let said = command.said();
    (world, said)
}

#[test]
fn every_setting_is_understood() {
    let text = fs::read_to_string(fixture("ralph.toml")).unwrap();
    let (world, said) = run_with_settings(&text);
    assert!(!said.err.contains("ralph.toml"), "{}", said.err);
    assert_eq!(said.code, 3, "{}", said.err);
    let argv = world.read("../argv");
    for option in [
        "--model=sonnet\n",
        "--fallback-model=haiku\n",
        "--permission-mode=dontAsk\n",
        "Bash(make)\n",
        "--disallowedTools\nWebFetch\n",
        "--max-turns=100\n",
        "--max-budget-usd=2\n",
        "--append-system-prompt=Be brief.\n",
        "--setting-sources=user\n",
        "--mcp-config\nmcp.json\n",
        "--strict-mcp-config\n",
    ] {
        assert!(argv.contains(option), "{option} is not in\n{argv}");
    }
    // A name that it does not know is an error, so each of the others was known.
    let (_, said) = run_with_settings(&text.replace("max_turns", "max_turn"));
    assert!(said.code == 1 && said.err.contains("max_turn"), "{}", said.err);
}

#[test]
fn an_agent_of_ones_own_is_understood() {
    let (world, said) = run_with_settings("[agent]\ncommand = \"claude 'two words'\"\n");
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!(world.read("../argv"), "two words\n");
}
