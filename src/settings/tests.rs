//! The declarations, and the values that are read by them.

use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::decide::staging::Rules;
use crate::decide::stuck::StuckPolicy;
use crate::model::{Budgets, Limits, MemoryLimits, Timeouts, Usd};

fn flags(values: &[(&'static str, &str)]) -> Flags {
    Flags {
        values: values.iter().map(|(key, text)| (*key, text.into())).collect(),
        ..Flags::default()
    }
}

fn read(flags: &Flags, env: &[(&str, &str)], file: &str) -> Result<RunSettings, SettingsError> {
    let lookup =
        |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, text)| (*text).to_owned());
    RunSettings::new(file, flags, &lookup)
}

fn auto_mode() -> crate::model::PermissionMode {
    crate::agent::permission_mode("auto").unwrap()
}

fn of_file(text: &str) -> Result<RunSettings, SettingsError> {
    read(&Flags::default(), &[], text)
}

/// All values, without where they come from.
fn values(settings: &RunSettings) -> String {
    let text = format!("{settings:?}").replace("run_by_default: true", "run_by_default: false");
    text.split(", origins: ").next().unwrap().to_owned()
}

/// Three valid values, none of them the default.
fn samples(setting: &Setting) -> [&'static str; 3] {
    match setting.expected {
        _ if setting.key == "verify" => ["[\"a\"]", "[\"b\"]", "[\"c\"]"],
        "`true` or `false`" => ["true", "true", "true"],
        "`wait` or `stop`" => ["\"stop\"", "\"stop\"", "\"stop\""],
        "`all` or `none`" => ["\"none\"", "\"none\"", "\"none\""],
        "`claude` or `mock`" => ["\"mock\"", "\"mock\"", "\"mock\""],
        "`ask`, `park`, `skip` or `abort`" => ["\"park\"", "\"skip\"", "\"abort\""],
        text if text.starts_with("`acceptEdits`") => ["\"auto\"", "\"dontAsk\"", "\"acceptEdits\""],
        text if text.starts_with("a time") => ["\"41s\"", "\"42s\"", "\"43s\""],
        text if text.starts_with("a size") => ["\"2MB\"", "\"3MB\"", "\"4MB\""],
        text if text.starts_with("a number") || text.starts_with("an amount") => ["4", "6", "7"],
        _ if is_list(setting) => ["[\"A_1\"]", "[\"B_1\"]", "[\"C_1\"]"],
        _ => ["\"A_1\"", "\"B_1\"", "\"C_1\""],
    }
}

fn is_list(setting: &Setting) -> bool {
    let lists = ["keep", "protect", "signals", "stages", "never_commit", "keep_processes"];
    let of_agent = ["allowed_tools", "disallowed_tools", "mcp_config", "args"];
    let name = setting.key.rsplit('.').next().unwrap();
    lists.contains(&setting.key) || of_agent.contains(&name)
}

fn line(setting: &Setting, value: &str) -> String {
    format!("{} = {value}\n", setting.key)
}

#[test]
fn a_flag_overrides_the_environment_and_the_environment_the_file() {
    let default = values(&of_file("").unwrap());
    for setting in RunSettings::declared() {
        let [file, env, flag] = samples(&setting);
        let by_file = |value: &str| {
            let settings = of_file(&line(&setting, value)).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(settings.origin(setting.key), Some(Origin::File));
            values(&settings)
        };
        assert_ne!(by_file(file), default, "{}", setting.key);
        let (bare_env, bare_flag) = (env.trim_matches('"'), flag.trim_matches('"'));
        let text = line(&setting, file);
        if let Some(name) = setting.env {
            let settings = read(&Flags::default(), &[(name, bare_env)], &text).unwrap();
            assert_eq!(values(&settings), by_file(env), "{name}");
            assert_eq!(settings.origin(setting.key), Some(Origin::Environment));
        }
        if let Some(name) = setting.flag {
            let env: Vec<(&str, &str)> = setting.env.iter().map(|n| (*n, bare_env)).collect();
            let settings = read(&flags(&[(setting.key, bare_flag)]), &env, &text).unwrap();
            assert_eq!(values(&settings), by_file(flag), "--{name}");
            assert_eq!(settings.origin(setting.key), Some(Origin::Flag));
        }
    }
}

#[test]
fn the_declared_default_is_the_real_one() {
    let default = of_file("").unwrap();
    for setting in RunSettings::declared().iter().filter(|setting| !setting.default.is_empty()) {
        let value = setting.default;
        let is_bare = value.parse::<f64>().is_ok() || ["true", "false"].contains(&value);
        let value = if is_bare { value.to_owned() } else { format!("\"{value}\"") };
        let written = of_file(&line(setting, &value)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(values(&written), values(&default), "{}", setting.key);
    }
    let (seconds, minutes) = (Duration::from_secs, Duration::from_mins);
    let limits = Limits {
        max_consecutive_errors: Some(5),
        max_failing: Some(8),
        max_run_time: Some(Duration::from_hours(12)),
        max_average_iteration: None,
        cool_down: Some(minutes(30)),
        backoff: Some(seconds(1)),
    };
    assert_eq!(default.limits, limits);
    let timeouts = Timeouts {
        first_event: seconds(180),
        idle: minutes(15),
        iteration: minutes(90),
        after_result: seconds(10),
        background: minutes(2),
    };
    assert_eq!(default.timeouts, timeouts);
    let stuck_after = Some(minutes(30));
    let stuck = StuckPolicy { stuck_after, ask_after: minutes(10), answer: minutes(15) };
    assert_eq!(default.stuck, stuck);
    let memory = MemoryLimits { outcomes: 5, errors: 5, worked: 3, entry: 500, total: 5000 };
    assert_eq!(default.memory, memory);
    assert_eq!(default.staging, Rules::default());
    assert_eq!(default.agent, AgentChoice::Claude);
    let budgets = Budgets {
        per_run: Some(Usd::from_cents(2500)),
        run_by_default: true,
        ..Budgets::default()
    };
    assert_eq!(default.budgets, budgets);
    assert!(!of_file("budget.per_run = 25").unwrap().budgets.run_by_default);
}

#[test]
fn names_are_unique_and_every_choice_is_a_value() {
    let declared = RunSettings::declared();
    assert!(declared.len() > 60, "{}", declared.len());
    for (index, one) in declared.iter().enumerate() {
        assert!(!one.help.is_empty() && !one.help.ends_with('.'), "{}", one.key);
        for other in &declared[index + 1..] {
            assert_ne!(one.key, other.key);
            assert!(one.flag.is_none() || one.flag != other.flag, "{:?}", one.flag);
            assert!(one.env.is_none() || one.env != other.env, "{:?}", one.env);
        }
        for (choice, _) in &one.choices {
            of_file(&line(one, &format!("{choice:?}"))).unwrap();
            assert!(one.expected.contains(&format!("`{choice}`")), "{}", one.expected);
        }
    }
}

#[test]
fn none_disables_a_limit_and_zero_is_an_error() {
    for setting in RunSettings::declared().iter().filter(|setting| setting.takes_none()) {
        assert!(of_file(&line(setting, "\"none\"")).is_ok(), "{}", setting.key);
        if ![
            "max_new_files",
            "min_free_disk",
            "max_file_size",
            "max_ignored_file",
            "max_ignored_total",
        ]
        .contains(&setting.key)
        {
            assert!(of_file(&line(setting, "0")).is_err(), "{}", setting.key);
        }
    }
    let off = of_file("max_iterations = 'none'\nmax_run_time = 'none'\nbudget.per_run = 'none'\n");
    let off = off.unwrap();
    assert_eq!((off.max_iterations, off.limits.max_run_time), (None, None));
    assert_eq!(off.budgets.per_run, None);
}

#[test]
fn a_bad_value_is_wrong_usage_on_the_command_line_and_an_error_in_the_file() {
    for bad in ["0", "-5", "nan", "inf", "1e9", "", "lots"] {
        let error = read(&flags(&[("budget.per_run", bad)]), &[], "").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&format!("invalid value `{bad}` for --budget: ")), "{text}");
        assert!(matches!(error, SettingsError::Usage(_)));
        let error = read(&Flags::default(), &[("RALPH_BUDGET_DAY", bad)], "").unwrap_err();
        assert!(matches!(error, SettingsError::Usage(_)));
        assert!(error.to_string().contains("RALPH_BUDGET_DAY in the environment"), "{error}");
    }
    for bad in [
        "max_failing = 11",
        "memory.worked = 21",
        "log_limit = '999kB'",
        "verify = [0]",
        "never_commit = ['']",
        "keep_processes = ['/bin/x']",
        "signals = ['> x']",
        "stages = ['A_1', 'A_1']",
        "completion_promise = ''",
        "branch = 1",
        "allow_dirty = 'yes'",
        "agent.max_budget_usd = -1",
        "budget = 3",
        "agent.command = \"'open\"",
        "protect = 'x'",
    ] {
        let error = of_file(bad).unwrap_err();
        assert!(matches!(error, SettingsError::InvalidFile { .. }), "{bad}: {error}");
        assert!(error.to_string().contains("ralph.toml:1:"), "{error}");
    }
}

#[test]
fn all_errors_of_the_file_are_reported_at_once_with_suggestions() {
    let text = "max_iteration = 3\nbranch = 5\n[agent]\nmodell = 'x'\nkeep_days = 3\n";
    let error = of_file(text).unwrap_err().to_string();
    for part in [
        "4 errors",
        "ralph.toml:1:1: unknown setting `max_iteration`",
        "did you mean `max_iterations`?",
        "did you mean `agent.model`?",
        "put `keep_days` above `[agent]`",
    ] {
        assert!(error.contains(part), "{part} is not in\n{error}");
    }
}

#[test]
fn a_mock_script_selects_the_mock_agent() {
    let script = Some(PathBuf::from("s.toml"));
    let with =
        |values: &[(&'static str, &str)]| Flags { mock_script: script.clone(), ..flags(values) };
    let chosen = read(&with(&[]), &[], "").unwrap().agent;
    assert_eq!(chosen, AgentChoice::Mock { script: script.clone() });
    assert!(read(&with(&[("agent.name", "claude")]), &[], "").is_err());
    assert!(read(&with(&[("agent.command", "x")]), &[], "").is_err());
}

#[test]
fn an_agent_flag_overrides_the_file_and_two_agents_are_an_error() {
    let words = |words: &[&str]| AgentChoice::Command {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    let (mock, command) = ("agent.name = 'mock'", "agent.command = \"my-agent --say 'a b'\"");
    let agent =
        |values: &[(&'static str, &str)], file| read(&flags(values), &[], file).unwrap().agent;
    assert_eq!(agent(&[], command), words(&["my-agent", "--say", "a b"]));
    assert_eq!(agent(&[("agent.command", "x")], mock), words(&["x"]));
    assert_eq!(agent(&[("agent.name", "claude")], command), AgentChoice::Claude);
    assert!(of_file(&format!("{mock}\n{command}")).is_err());
    let both = flags(&[("agent.name", "mock"), ("agent.command", "x")]);
    assert!(matches!(read(&both, &[], ""), Err(SettingsError::Usage(_))));
}

#[test]
fn permissions_are_a_setting_or_an_argument_and_not_both() {
    let auto = [("agent.permission_mode", "auto")];
    for (values, file, mode) in [
        (&[][..], "agent.args = ['--permission-mode', 'plan']", None),
        (&[], "agent.permission_mode = 'auto'", Some(auto_mode())),
        (&auto, "agent.permission_mode = 'dontAsk'", Some(auto_mode())),
    ] {
        let settings = read(&flags(values), &[], file).unwrap();
        assert_eq!(settings.agent_settings.permission_mode, mode, "{file}");
    }
    let skip = "agent.args = ['--dangerously-skip-permissions']\n";
    let error = read(&flags(&auto), &[], skip).unwrap_err();
    assert!(matches!(error, SettingsError::Usage(_)), "{error}");
    let error = of_file(&format!("{skip}agent.permission_mode = 'auto'\n")).unwrap_err();
    assert!(matches!(error, SettingsError::InvalidFile { .. }), "{error}");
    let mock = flags(&[("agent.permission_mode", "auto"), ("agent.name", "mock")]);
    assert!(matches!(read(&mock, &[], ""), Err(SettingsError::Usage(_))));
}

#[test]
fn the_table_of_the_file_has_no_values_of_flags() {
    let file = "agent.permission_mode = 'auto'\nagent.command = 'x'\n";
    let table = |values: &[(&'static str, &str)]| {
        let table = read(&flags(values), &[], file).unwrap().agent_table();
        (table.command, table.permission_mode)
    };
    assert_eq!(table(&[]), (Some("x".to_owned()), Some(auto_mode())));
    assert_eq!(table(&[("agent.command", "y")]), (None, Some(auto_mode())));
    let claude = [("agent.name", "claude"), ("agent.permission_mode", "dontAsk")];
    assert_eq!(table(&claude), (Some("x".to_owned()), None));
}

#[test]
fn a_path_in_the_file_is_relative_to_the_root() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(FILE_NAME), "prompt = 'a.md'\n").unwrap();
    let prompt = |flags: &Flags| RunSettings::load(folder.path(), flags, &|_| None).unwrap().prompt;
    assert_eq!(prompt(&Flags::default()), Some(folder.path().join("a.md")));
    assert_eq!(prompt(&flags(&[("prompt", "b.md")])), Some(PathBuf::from("b.md")));
}
