//! Claude Code's command line.

use crate::settings::AgentSettings;

/// Files may be edited; commands are asked for, which nobody answers: denied and reported.
const DEFAULT_PERMISSION_MODE: &str = "acceptEdits";

/// The prompt is not in it: it comes on standard input.
pub fn args(settings: &AgentSettings) -> Vec<String> {
    let mut args: Vec<String> =
        ["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned).to_vec();
    let mode = settings.permission_mode.as_deref().unwrap_or(DEFAULT_PERMISSION_MODE);
    option(&mut args, "--permission-mode", Some(mode));
    option(&mut args, "--model", settings.model.as_deref());
    option(&mut args, "--fallback-model", settings.fallback_model.as_deref());
    option(&mut args, "--max-turns", settings.max_turns.map(|n| n.to_string()).as_deref());
    option(
        &mut args,
        "--max-budget-usd",
        settings.max_budget_usd.map(|n| n.to_string()).as_deref(),
    );
    option(&mut args, "--append-system-prompt", settings.append_system_prompt.as_deref());
    option(&mut args, "--setting-sources", settings.setting_sources.as_deref());
    list(&mut args, "--allowedTools", &settings.allowed_tools);
    list(&mut args, "--disallowedTools", &settings.disallowed_tools);
    list(&mut args, "--mcp-config", &settings.mcp_config);
    if settings.strict_mcp_config {
        args.push("--strict-mcp-config".to_owned());
    }
    args.extend(settings.args.iter().cloned());
    args
}

fn option(args: &mut Vec<String>, flag: &str, value: Option<&str>) {
    if let Some(value) = value {
        // One word, so that a value that begins with `-` stays a value.
        args.push(format!("{flag}={value}"));
    }
}

fn list(args: &mut Vec<String>, flag: &str, values: &[String]) {
    if !values.is_empty() {
        args.push(flag.to_owned());
        args.extend(values.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_edit_files_and_stream_json() {
        assert_eq!(
            args(&AgentSettings::default()),
            ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode=acceptEdits"]
        );
    }

    #[test]
    fn settings_become_arguments() {
        let settings = AgentSettings {
            model: Some("opus".into()),
            max_turns: Some(40),
            allowed_tools: vec!["Bash(cargo test:*)".into(), "Edit".into()],
            strict_mcp_config: true,
            args: vec!["--debug".into()],
            ..AgentSettings::default()
        };
        let found = args(&settings).split_off(5);
        assert_eq!(
            found,
            [
                "--model=opus",
                "--max-turns=40",
                "--allowedTools",
                "Bash(cargo test:*)",
                "Edit",
                "--strict-mcp-config",
                "--debug"
            ]
        );
    }
}
