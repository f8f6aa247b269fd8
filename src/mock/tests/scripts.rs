use std::path::Path;

use super::super::script::{Script, ScriptError};
use super::super::{check_script, step};
use super::stage;

fn problem(source: &str) -> String {
    Script::parse(Path::new("s.toml"), source).unwrap_err().to_string()
}

fn step_problem(step: &str) -> String {
    problem(&format!("[story.US-001]\nsteps = [\n  \"promise\",\n  {step},\n]\n"))
}

#[test]
fn every_step_can_be_written() {
    let tables = [
        r#"{ say = "x" }"#,
        r#"{ thinking = "x" }"#,
        r#"{ subagent = "x" }"#,
        r#"{ escalate = { type = "stuck", summary = "s", question = "q" } }"#,
        r#"{ escalate = { type = "deviation", summary = "s", context = "c", options = ["a"], question = "q" } }"#,
        r#"{ claim = "US-002" }"#,
        r#"{ write = "a" }"#,
        r#"{ write = "a", text = "t", append = true }"#,
        r#"{ delete = "a" }"#,
        r#"{ run = "true" }"#,
        r#"{ denied = "Bash" }"#,
        r#"{ sleep = "200ms" }"#,
        r#"{ cost = 0.31 }"#,
        r#"{ cost = 1 }"#,
        r#"{ turns = 4 }"#,
        r#"{ tokens = { input = 1, output = 2, cache_read = 3, cache_write = 4 } }"#,
        r#"{ model = "m" }"#,
        r#"{ retry = "overloaded" }"#,
        r#"{ retry = "login", times = 3 }"#,
        r#"{ fail = "usage-limit", resets_in = "90m" }"#,
        r#"{ fail = "server", retries = 0 }"#,
        r#"{ exit = 3 }"#,
        r#"{ exit = 3, result = true }"#,
        r#"{ hang = "ignore-term" }"#,
        r#"{ grandchild = "plain" }"#,
        r#"{ grandchild = "setsid", command = "sleep 5", pid_file = "p", holds_output = true, clean_env = true }"#,
        r#"{ grandchild = "double-fork" }"#,
        r#"{ tree = 3 }"#,
        r#"{ tree = 3, ignore_term = true }"#,
        r#"{ raw = "x" }"#,
        r#"{ stderr = "x" }"#,
        r#"{ output = { mb = 1 } }"#,
        r#"{ output = { line_mb = 1 } }"#,
        r#"{ echo_prompt = true }"#,
    ];
    let words = step::WORDS.iter().map(|word| format!("\"{word}\""));
    for step in tables.iter().map(|&t| t.to_owned()).chain(words) {
        let parsed = Script::parse(Path::new("s"), &format!("[default]\nsteps = [{step}]"));
        assert!(parsed.is_ok(), "{step}: {}", parsed.unwrap_err());
    }
    for action in step::ACTIONS {
        assert!(
            tables.iter().any(|t| t.starts_with(&format!("{{ {action} ="))),
            "{action} is not tested"
        );
    }
}

#[test]
fn an_invalid_step_is_reported_with_its_position() {
    for (step, message) in [
        (r#"{ sya = "x" }"#, "unknown step `sya`; did you mean `say`?"),
        (r#""compleet""#, "unknown step `compleet`; did you mean `complete`?"),
        (
            r#""zzz""#,
            "unknown step `zzz`; expected one of complete, claim, false_claim, promise, hang, hang_after_result, no_result, hear",
        ),
        (r#""say""#, "`say` needs a value: { say = … }"),
        ("{ complete = true }", "`complete` takes no value; write it as \"complete\""),
        (
            r#"{ say = "a", run = "b" }"#,
            "a step has one action; split `say` and `run` into two steps",
        ),
        ("{}", "a step cannot be empty"),
        ("5", "a step is a table like { say = \"…\" } or a word like \"complete\""),
        (
            r#"{ write = "a", txt = "b" }"#,
            "`write`: unknown key `txt`, expected one of `write`, `text`, `append`",
        ),
        (
            r#"{ grandchild = "plain", pid = "b" }"#,
            "`grandchild`: unknown key `pid`, expected one of `grandchild`, `command`, `pid_file`, `holds_output`, `clean_env`",
        ),
        (
            r#"{ sleep = "soon" }"#,
            "`sleep`: invalid duration `soon`; write it like 200ms, 2s, 1m or 1h",
        ),
        (
            r#"{ sleep = "-1s" }"#,
            "`sleep`: invalid duration `-1s`; write it like 200ms, 2s, 1m or 1h",
        ),
        ("{ sleep = 5 }", "`sleep`: invalid type: integer `5`, expected a string"),
        (
            r#"{ retry = "billing" }"#,
            "`retry`: unknown value `billing`, expected one of `rate-limit`, `overloaded`, `server`, `connection`, `login`",
        ),
        (
            r#"{ escalate = { type = "stuck", summary = "s" } }"#,
            "`escalate`: missing key `question`",
        ),
        ("{ output = { gb = 1 } }", "`output`: unknown value `gb`, expected `mb` or `line_mb`"),
    ] {
        assert_eq!(step_problem(step), format!("s.toml:4:3: {message}"));
    }
}

#[test]
fn an_invalid_script_is_reported_with_its_position() {
    for (source, message) in [
        (
            "[stories.US-001]\nsteps = []",
            "s.toml:1:2: unknown key `stories`, expected `default` or `story`",
        ),
        (
            "\n[story.US-001]\n",
            "s.toml:2:1: `steps` is missing (or `attempts`, each with its own `steps`)",
        ),
        (
            "[story.US-001]\nsteps = []\nattempts = []",
            "s.toml:1:1: use either `steps` or `attempts`, not both",
        ),
        ("[default]\nattempts = []", "s.toml:1:1: `attempts` is empty; add at least one"),
        (
            "[default]\nplain = true\nattempts = [{ steps = [] }]",
            "s.toml:1:1: put `plain`, `init` and `read_prompt` into each of the `attempts`",
        ),
        (
            "[default]\nsteps = []\nfast = 1",
            "s.toml:3:1: unknown key `fast`, expected one of `steps`, `plain`, `init`, `read_prompt`, `attempts`",
        ),
        (
            "[default]\nsteps = [\n  \"hang\",\n  \"complete\",\n]",
            "s.toml:4:3: this step never runs: the one before it ends the attempt",
        ),
        (
            "[default]\nsteps = [\n  { say = \"日本\" }, { sya = 1 } ]",
            "s.toml:3:19: unknown step `sya`; did you mean `say`?",
        ),
        (
            "[default]\nsteps = [ { say = \"x\" \n",
            "s.toml:2:22: unclosed inline table, expected `}`",
        ),
    ] {
        assert_eq!(problem(source), message);
    }
    assert!(problem("[story.\"../x\"]\nsteps = []").starts_with("s.toml:1:8: a story id has "));
}

#[test]
fn a_missing_script_is_refused() {
    let missing = stage().path("none.toml");
    let refused = check_script(&missing).unwrap_err();
    assert!(matches!(refused, ScriptError::Unreadable { .. }));
    assert!(refused.to_string().starts_with("cannot read the mock script /"), "{refused}");
}

#[test]
fn the_last_attempt_repeats_and_other_stories_play_default() {
    let source = "[default]\nsteps = [{ say = \"default\" }]\n\
                  [[story.US-001.attempts]]\nsteps = [{ say = \"first\" }]\n\
                  [[story.US-001.attempts]]\nsteps = [{ say = \"second\" }]\n\
                  [story.US-002]\nsteps = [{ say = \"only\" }]\n";
    for (story, attempt, said) in [
        ("US-001", 1, "first"),
        ("US-001", 2, "second"),
        ("US-001", 3, "second"),
        ("US-001", 99, "second"),
        ("US-002", 1, "only"),
        ("US-002", 2, "only"),
        ("US-003", 1, "default"),
        ("US-003", 5, "default"),
    ] {
        let mut stage = stage();
        (stage.story, stage.attempt) = (story, attempt);
        assert_eq!(stage.play(source).texts(), [said], "{story} {attempt}");
    }
}

#[test]
fn the_examples_can_be_played() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scripts: Vec<_> = files.filter(|f| f.extension().is_some_and(|e| e == "toml")).collect();
    assert!(scripts.len() >= 4);
    for script in scripts {
        check_script(&script).unwrap();
    }
}
