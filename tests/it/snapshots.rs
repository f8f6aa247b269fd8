//! What a user sees: command line, standard output, standard error and exit code.

use crate::support::world::Runs;
use crate::support::{Prd, World};

/// Everything that differs from one run of the tests to the next is replaced.
pub fn shot(name: &str, world: &World, args: &[&str]) {
    snapshot(name, &normalized(world, &seen(world, args)));
}

fn seen(world: &World, args: &[&str]) -> String {
    let mut command = world.command(crate::support::world::RALPH);
    command.args(args).env("COLUMNS", "80");
    let said = command.said();
    let mut text = format!("$ ralph {}\n{}", args.join(" "), said.out);
    if !said.err.is_empty() {
        text.push_str(&format!("── standard error ──\n{}", said.err));
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text + &format!("── exit code {} ──", said.code)
}

/// A run with the mock agent.
fn shot_of_run(name: &str, world: &World, args: &[&str]) {
    let words = world.run_words(args);
    shot(name, world, &words.iter().map(String::as_str).collect::<Vec<_>>());
}

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn normalized(world: &World, text: &str) -> String {
    let root = world.root().display().to_string();
    let script = world.script().display().to_string();
    let text = text.replace(&root, "/repo").replace(&script, "script.toml");
    let mut shown = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || ":-.".contains(c) {
            word.push(c);
        } else {
            shown.push_str(&normal_word(&word));
            word.clear();
            shown.push(c);
        }
    }
    shown.trim_end().to_owned()
}

fn normal_word(word: &str) -> String {
    let shape: String = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let is_hex = word.chars().all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase());
    let is_id = word.len() == 36 && word.matches('-').count() == 4;
    let is_seconds = word.strip_suffix('s').is_some_and(|n| n.parse::<f64>().is_ok());
    match shape.as_str() {
        "0000-00-00" => "2026-01-01".to_owned(),
        "00:00:00" => "12:00:00".to_owned(),
        _ if is_id => "01990000-0000-7000-8000-000000000000".to_owned(),
        _ if word.len() >= 7 && is_hex => {
            "0123456789abcdef".chars().cycle().take(word.len()).collect()
        }
        _ if is_seconds => "1s".to_owned(),
        _ => word.to_owned(),
    }
}

const COMMANDS: [&str; 15] = [
    "run",
    "check",
    "init",
    "status",
    "cost",
    "prompt",
    "mark",
    "nudge",
    "trust",
    "log",
    "diff",
    "restore",
    "checkpoint",
    "undo",
    "completions",
];

#[test]
fn help() {
    let world = World::without_repository();
    snapshot("help", &seen(&world, &["--help"]));
    snapshot("help_short", &seen(&world, &["-h"]));
    for command in COMMANDS {
        snapshot(&format!("help_{command}"), &seen(&world, &[command, "--help"]));
        snapshot(&format!("help_{command}_short"), &seen(&world, &[command, "-h"]));
    }
}

/// Everything that ralph.toml can have wrong, by kind of value.
#[test]
fn settings_errors_of_the_file() {
    let world = World::with(&Prd::stories(1));
    for (name, text) in [
        ("count", "stuck_threshold = 0"),
        ("limit", "max_iterations = 0"),
        ("up_to_ten", "max_failing = 11"),
        ("time", "answer_timeout = 5"),
        ("time_limit", "max_run_time = \"forever\""),
        ("size", "log_limit = \"1kB\""),
        ("size_limit", "max_file_size = \"big\""),
        ("file_count", "max_new_files = -1"),
        ("dollars", "[budget]\nper_run = 0"),
        ("memory_count", "[memory]\nerrors = 21"),
        ("memory_length", "[memory]\nentry = 2001"),
        ("switch", "allow_dirty = \"yes\""),
        ("choice", "on_escalation = \"panic\""),
        ("permission_mode", "[agent]\npermission_mode = \"yolo\""),
        ("text", "branch = 5"),
        ("list", "protect = \"tests/**\""),
        ("list_item", "keep_processes = [\"sccache\", \"/usr/bin/watchman\"]"),
        ("pattern", "never_commit = [\"\"]"),
        ("promise", "completion_promise = \"\""),
        ("signal", "signals = [\"> quoted\"]"),
        ("stage_twice", "stages = [\"TESTED\", \"TESTED\"]"),
        ("gate", "verify = [{ run = 5 }]"),
        ("gate_field", "verify = [{ run = \"true\", time = \"5m\" }]"),
        ("command", "[agent]\ncommand = \"my-agent 'open\""),
        ("two_agents", "[agent]\nname = \"mock\"\ncommand = \"my-agent\""),
        ("two_modes", "[agent]\npermission_mode = \"auto\"\nargs = [\"--permission-mode=plan\"]"),
        ("unknown", "max_iteration = 5"),
        ("unknown_in_table", "[budget]\nper_stroy = 5"),
        ("unknown_without_guess", "colour = \"red\""),
        ("outside_its_table", "per_run = 5"),
        ("below_a_table", "[agent]\nmodel = \"opus\"\nkeep_days = 3"),
        ("not_a_table", "budget = 5"),
        ("syntax", "max_iterations = \n"),
        ("several", "max_iteration = 5\nbranch = 5\n[budget]\nper_run = 0"),
        ("control_characters", "branch = [\"\\u001b[2J\"]\n\"\\u001b[2J\" = 1"),
    ] {
        world.write("ralph.toml", text);
        shot(&format!("settings_{name}"), &world, &["check"]);
    }
}

#[test]
fn settings_errors_of_the_command_line() {
    let world = World::with(&Prd::stories(1));
    for (name, args) in [
        ("limit", &["--max-iterations", "0"][..]),
        ("time", &["--answer-timeout", "soon"]),
        ("dollars", &["--budget", "-5"]),
        ("dollars_word", &["--budget=lots"]),
        ("choice", &["--on-limit", "halt"]),
        ("permission_mode", &["--permission-mode", "yolo"]),
        ("permission_mode_of_another_agent", &["--agent", "mock", "--permission-mode", "auto"]),
        ("two_agents", &["--agent", "mock", "--agent-command", "x"]),
        ("empty_command", &["--agent-command", " "]),
        ("script_without_mock", &["--agent", "claude", "--mock-script", "x.toml"]),
        ("unknown_flag", &["--max-iteration", "5"]),
        ("quiet_and_verbose", &["-q", "-v"]),
        ("story", &["--agent", "mock", "--story", "US-01"]),
        ("branch_name", &["--agent", "mock", "--branch", "a..b"]),
        ("no_prompt", &["--agent", "mock", "--prompt", "missing.md"]),
        ("no_script", &["--mock-script", "missing.toml"]),
    ] {
        let args: Vec<&str> = ["run"].iter().chain(args).copied().collect();
        shot(&format!("flags_{name}"), &world, &args);
    }
    let mut command = world.command(crate::support::world::RALPH);
    let output = command.arg("run").env("RALPH_BUDGET_STORY", "0").said();
    snapshot("environment_dollars", &output.err);
}

#[test]
fn errors() {
    let world = World::without_repository();
    shot("error_no_backlog", &world, &["check"]);
    shot("error_unknown_command", &world, &["chekc"]);
    shot("error_init_folder", &world, &["init", "/dev/null"]);
    shot("error_init_below_a_file", &world, &["init", "/dev/null/plans"]);
    world.write("PRD.json", &Prd::stories(2).text());
    shot("error_no_repository", &world, &["status"]);
    let world = World::with(&Prd::stories(2));
    for (name, args) in [
        ("no_such_story", &["mark", "US-01", "pass"][..]),
        ("no_run", &["nudge", "hello"]),
        ("empty_message", &["nudge", " "]),
        ("not_closed", &["undo", "US-001"]),
        ("neither_number_nor_story", &["diff", "a b"]),
        ("nothing_of_story", &["diff", "US-001"]),
        ("no_such_number", &["restore", "7"]),
        ("empty_checkpoint", &["checkpoint", "-m", " "]),
        ("dry_run_with_claude", &["run", "--dry-run", "--agent", "claude"]),
    ] {
        shot(&format!("error_{name}"), &world, args);
    }
    world.ralph(&["mark", "US-001", "pass"]);
    shot("error_no_commit", &world, &["undo", "US-001"]);
    world.ralph(&["mark", "US-001", "fail"]);
    world.ralph(&["checkpoint"]);
    shot("error_outside", &world, &["restore", "1", "../elsewhere"]);
    world.write("ralph.toml", "verify = [\"cargo test\"]\n");
    shot("error_gates_exist", &world, &["init", "--gate", "make test"]);
    shot("error_not_approved", &world, &["run", "--agent", "mock"]);
    std::fs::remove_file(world.path("ralph.toml")).unwrap();
    world.write("README.md", "edited\n");
    shot("error_uncommitted", &world, &["run", "--agent", "mock"]);
    world.git(&["checkout", "-q", "README.md"]);
    world.git(&["checkout", "-q", "--detach"]);
    shot("error_detached", &world, &["run", "--agent", "mock"]);
    let mut command = world.command(crate::support::world::RALPH);
    let output = command.args(["mark", "US-001", "pass"]).env("RALPH_RUN_ID", "x").said();
    snapshot("error_agent", &output.err);
}

#[test]
fn check_and_init() {
    let world = World::with(&Prd::stories(2));
    shot("check_fine", &world, &["check"]);
    world.write("ralph.toml", "max_iterations = 1\n");
    shot("check_warning", &world, &["check"]);
    shot("check_strict", &world, &["check", "--strict"]);
    world.write(
        "PRD.json",
        "{\"project\": \"demo\", \"description\": \"d\", \"userStories\": [\n  \
         {\"id\": \"US-001\", \"title\": \"a\", \"passes\": \"no\", \"depends_on\": [\"US-02\"]},\n  \
         {\"id\": \"US-002\", \"titel\": \"b\", \"criteria\": [\"x\"], \"passes\": false}\n]}\n",
    );
    shot("check_errors", &world, &["check"]);
    world.write("PRD.json", "{\"project\": ");
    shot("check_syntax", &world, &["check"]);
    let world = World::new();
    shot("init", &world, &["init"]);
    shot("init_again", &world, &["init"]);
    shot("init_gates", &world, &["init", "plans", "--gate", "make test"]);
    snapshot("init_gates_file", &world.read("ralph.toml"));
    let world = World::new();
    std::os::unix::fs::symlink("nowhere", world.path("ralph.toml")).unwrap();
    shot("init_gates_at_a_link", &world, &["init", "--gate", "true"]);
}

#[test]
fn commands_before_and_after_a_run() {
    let world = World::with(&Prd::stories(2));
    shot("status_before", &world, &["status"]);
    shot("cost_before", &world, &["cost"]);
    shot("log_before", &world, &["log"]);
    shot("trust_nothing", &world, &["trust"]);
    shot("dry_run", &world, &["run", "--dry-run", "-q"]);
    shot("prompt", &world, &["prompt", "US-001"]);
    shot("mark_pass", &world, &["mark", "US-002", "pass"]);
    shot("mark_again", &world, &["mark", "US-002", "pass"]);
    shot("mark_fail", &world, &["mark", "US-002", "fail"]);
    shot("mark_skip", &world, &["mark", "US-002", "skip"]);
    shot("mark_reopen", &world, &["mark", "US-002", "reopen"]);
    world.write("ralph.toml", "verify = [\"true\"]\n");
    shot("trust_gate", &world, &["trust", "--yes"]);
    std::fs::remove_file(world.path("ralph.toml")).unwrap();
    assert_eq!(world.run(&["--once"]).code, 3);
    shot("status_stopped", &world, &["status"]);
    assert_eq!(world.run(&[]).code, 0);
    shot("status_done", &world, &["status"]);
    shot("cost_by_story", &world, &["cost", "--by", "story"]);
    let csv = seen(&world, &["cost", "--by", "story", "--csv"]);
    let without_time = |line: &str| line.rsplit_once(',').map_or(line, |(rest, _)| rest).to_owned();
    snapshot("cost_csv", &csv.lines().map(without_time).collect::<Vec<_>>().join("\n"));
    shot("log", &world, &["log"]);
    shot("diff_story", &world, &["diff", "US-001"]);
    shot("diff_number", &world, &["diff", "1"]);
    shot("checkpoint", &world, &["checkpoint", "-m", "before the merge"]);
    world.write("README.md", "edited\n");
    shot("restore", &world, &["restore", "3", "README.md"]);
    shot("restore_again", &world, &["restore", "3", "README.md"]);
    shot("undo", &world, &["undo", "US-002"]);
    shot("status_reopened", &world, &["status"]);
}

/// Every verdict of an attempt, a question that is parked, and what the next run makes of it.
#[test]
fn runs_and_their_summaries() {
    let world = World::scripted(
        &Prd::default().story("").story("").story(r#""depends_on": ["US-002"]"#).story(""),
        r#"
        [[story.US-001.attempts]]
        steps = [{ write = "half.txt", text = "half\n" }, { exit = 7 }]
        [[story.US-001.attempts]]
        steps = [{ write = "half.txt", text = "more\n" }, { say = "More to do." }]
        [[story.US-001.attempts]]
        steps = [{ write = "whole.txt", text = "whole\n" }, "complete"]
        [[story.US-002.attempts]]
        steps = [{ write = "two.txt", text = "2\n" }, { escalate = { type = "stuck", summary = "No database", context = "There is none.", options = ["SQLite", "None"], question = "Which database?" } }]
        [story.US-004]
        steps = ["complete"]
        "#,
    );
    shot_of_run("run_once", &world, &["--once"]);
    shot("diff_unfinished", &world, &["diff", "US-001"]);
    shot_of_run("run_to_a_question", &world, &["--on-escalation", "park", "--max-iterations", "6"]);
    shot("status_question", &world, &["status"]);
    shot("log_of_attempts", &world, &["log"]);
    shot("cost", &world, &["cost"]);
    shot_of_run("run_with_open_questions", &world, &["--on-escalation", "park", "--once"]);
}

#[test]
fn a_run_that_cannot_select_a_story() {
    let prd = Prd::default()
        .story(r#""skipped": true"#)
        .story(r#""depends_on": ["US-001"]"#)
        .story(r#""depends_on": ["US-002"]"#)
        .story("");
    let world = World::with(&prd);
    shot_of_run("run_nothing_to_select", &world, &[]);
    assert_eq!(world.passing(), ["US-004"]);
}

#[test]
fn quiet_and_verbose_runs() {
    let script = r#"
        [default]
        steps = [{ say = "Looking\u001b[2J round." }, { write = "a.txt", text = "a\n" }, "complete"]
    "#;
    for flag in ["quiet", "verbose"] {
        let world = World::scripted(&Prd::stories(1), script);
        shot_of_run(&format!("run_{flag}"), &world, &[&format!("--{flag}")]);
    }
}
