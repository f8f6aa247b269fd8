//! Files of a work tree with which agents configure themselves, and that can run or redirect
//! something: settings, hooks, commands, plugins, tools' servers. Not texts for the agent alone.

use std::path::PathBuf;

use super::AgentSettings;

/// Files and folders, from the work tree's root.
pub const SETTINGS_FILES: &[&str] = &[
    // Claude Code.
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".claude/commands",
    ".claude/agents",
    ".claude/skills",
    ".claude/plugins",
    ".claude-plugin",
    ".mcp.json",
    // Codex.
    ".codex",
    // Cursor.
    ".cursor/agents",
    ".cursor/cli.json",
    ".cursor/commands",
    ".cursor/environment.json",
    ".cursor/hooks",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".cursor/skills",
    ".cursor/worktrees.json",
    // Gemini CLI and Qwen Code.
    ".gemini/.env",
    ".gemini/agents",
    ".gemini/commands",
    ".gemini/extensions",
    ".gemini/hooks",
    ".gemini/policies",
    ".gemini/sandbox-macos-custom.sb",
    ".gemini/sandbox.Dockerfile",
    ".gemini/sandbox.bashrc",
    ".gemini/settings.json",
    ".gemini/skills",
    ".qwen/.env",
    ".qwen/agents",
    ".qwen/commands",
    ".qwen/extensions",
    ".qwen/settings.json",
    // OpenCode.
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    // GitHub Copilot.
    ".copilot",
    ".github/hooks",
    ".github/mcp.json",
    ".vscode/mcp.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    // Kiro, Amazon Q, Roo, Kilo Code, Windsurf, Continue.
    ".amazonq",
    ".continue",
    ".kilocode",
    ".kiro",
    ".roo",
    ".windsurf",
    // Factory, Amp, Crush, pi, Aider.
    ".factory",
    ".amp/settings.json",
    ".crush.json",
    "crush.json",
    ".pi",
    ".aider.conf.yml",
    ".aider.model.settings.yml",
    // Of several.
    ".agents/skills",
];

/// The options of `[agent] args` whose values are files with settings.
const OPTIONS: [&str; 2] = ["--settings", "--mcp-config"];

/// Paths that the settings give the agent, and words that may be one. Not texts in JSON.
pub fn named_files(settings: &AgentSettings) -> Vec<PathBuf> {
    let command = settings.command.as_deref().and_then(shlex::split).unwrap_or_default();
    let mut named = settings.mcp_config.clone();
    let mut is_value = false;
    for arg in &settings.args {
        let option = OPTIONS.iter().find(|option| arg.starts_with(*option));
        let value = option.and_then(|option| arg.strip_prefix(option)?.strip_prefix('='));
        match value {
            Some(value) => named.push(value.to_owned()),
            // One option may have several values.
            None if is_value && !arg.starts_with('-') => named.push(arg.clone()),
            None => is_value = option.is_some(),
        }
    }
    let words = command.into_iter().chain(named).filter(|word| !word.trim_start().starts_with('{'));
    words.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_files_in_commands_options_and_lists() {
        let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let settings = AgentSettings {
            command: Some("python3 'tools/my agent.py'".into()),
            mcp_config: strings(&["mcp.json", "{\"mcpServers\": {}}"]),
            args: strings(&[
                "--verbose",
                "--settings",
                "ci/a.json",
                "--mcp-config=b.json",
                "--mcp-config",
                "c.json",
                "d.json",
                "--model",
                "opus",
            ]),
            ..AgentSettings::default()
        };
        let expected =
            ["python3", "tools/my agent.py", "mcp.json", "ci/a.json", "b.json", "c.json", "d.json"];
        assert_eq!(named_files(&settings), expected.map(PathBuf::from));
    }
}
