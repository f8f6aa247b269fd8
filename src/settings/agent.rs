//! `[agent]`: which agent runs, and how Claude Code is started.

use std::path::PathBuf;

use serde::Deserialize;

/// The `[agent]` table of ralph.toml.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSettings {
    /// `claude` or `mock`.
    pub name: Option<AgentKind>,
    /// Any other program with its arguments, in shell words.
    pub command: Option<String>,
    /// Where Claude Code is, when it is not on the path.
    pub program: Option<PathBuf>,
    pub model: Option<String>,
    pub fallback_model: Option<String>,
    pub permission_mode: Option<String>,
    pub allowed_tools: Vec<String>,
    pub disallowed_tools: Vec<String>,
    pub max_turns: Option<u32>,
    pub max_budget_usd: Option<f64>,
    pub append_system_prompt: Option<String>,
    pub setting_sources: Option<String>,
    pub mcp_config: Vec<String>,
    pub strict_mcp_config: bool,
    /// Anything else, as it is.
    pub args: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    Claude,
    Mock,
}

/// Files may be edited; commands are asked for, which nobody answers: denied and reported.
const DEFAULT_PERMISSION_MODE: &str = "acceptEdits";

impl AgentSettings {
    /// Claude Code's command line. The prompt is not in it: it comes on standard input.
    pub fn claude_args(&self) -> Vec<String> {
        let mut args: Vec<String> =
            ["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned).to_vec();
        let mode = self.permission_mode.as_deref().unwrap_or(DEFAULT_PERMISSION_MODE);
        option(&mut args, "--permission-mode", Some(mode));
        option(&mut args, "--model", self.model.as_deref());
        option(&mut args, "--fallback-model", self.fallback_model.as_deref());
        option(&mut args, "--max-turns", self.max_turns.map(|n| n.to_string()).as_deref());
        option(
            &mut args,
            "--max-budget-usd",
            self.max_budget_usd.map(|n| n.to_string()).as_deref(),
        );
        option(&mut args, "--append-system-prompt", self.append_system_prompt.as_deref());
        option(&mut args, "--setting-sources", self.setting_sources.as_deref());
        list(&mut args, "--allowedTools", &self.allowed_tools);
        list(&mut args, "--disallowedTools", &self.disallowed_tools);
        list(&mut args, "--mcp-config", &self.mcp_config);
        if self.strict_mcp_config {
            args.push("--strict-mcp-config".to_owned());
        }
        args.extend(self.args.iter().cloned());
        args
    }
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
            AgentSettings::default().claude_args(),
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
        let args = settings.claude_args().split_off(5);
        assert_eq!(
            args,
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
