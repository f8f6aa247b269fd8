use super::*;

fn json(text: &str) -> Result<Gate, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn a_string_is_a_shell_command() {
    assert_eq!(json(r#""cargo test && echo ok""#), Ok(Gate::shell("cargo test && echo ok")));
}

#[test]
fn a_table_has_all_settings() {
    let text = r#"{ "run": ["cargo", "test"], "timeout": "90s", "dir": "sub/dir",
                    "env": { "CI": "1" }, "retries": 2, "fix": true, "each_story": false }"#;
    let gate = Gate {
        run: GateCommand::Program(vec!["cargo".into(), "test".into()]),
        timeout: Duration::from_secs(90),
        dir: Some("sub/dir".into()),
        env: BTreeMap::from([("CI".into(), "1".into())]),
        retries: 2,
        fix: true,
        each_story: Some(false),
    };
    assert_eq!(json(text).as_ref(), Ok(&gate));
    assert_eq!(gate.to_string(), "cargo test");
    let toml = "verify = [\"true\", { run = \"make check\", retries = 1 }]";
    let file: BTreeMap<String, Vec<Gate>> = toml::from_str(toml).unwrap();
    let make = Gate { retries: 1, ..Gate::shell("make check") };
    assert_eq!(file["verify"], [Gate::shell("true"), make]);
}

#[test]
fn errors_name_the_problem() {
    for (text, said) in [
        ("7", "a shell command, or a table with `run`"),
        ("\"  \"", "the gate has no command"),
        (r#"{ "run": [] }"#, "the gate has no command"),
        (r#"{ "run": [7] }"#, "expected a string"),
        (r#"{ "timeout": "1m" }"#, "missing field `run`"),
        (r#"{ "run": "x", "timeout": "soon" }"#, "`soon` is not a time such as"),
        (
            r#"{ "run": "x", "dir": "../up" }"#,
            "`../up` is not a relative path inside the work tree",
        ),
        (r#"{ "run": "x", "dir": "/" }"#, "`/` is not a relative path inside the work tree"),
        (r#"{ "run": "x", "retries": 11 }"#, "`retries` must be at most 10"),
        (r#"{ "run": "x", "retry": 1 }"#, "unknown field `retry`"),
    ] {
        let error = json(text).unwrap_err();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn control_characters_of_a_command_become_visible() {
    assert_eq!(Gate::shell("echo \x1b[2J\nrm").to_string(), "echo \\x1b[2J rm");
}
