//! Files of a work tree with which agents configure themselves, and that can run or redirect
//! something: settings, hooks, commands, plugins, tools' servers. Not texts for the agent alone.

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
    ".cursor/cli.json",
    ".cursor/commands",
    ".cursor/hooks",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    // Gemini CLI and Qwen Code.
    ".gemini/.env",
    ".gemini/commands",
    ".gemini/extensions",
    ".gemini/hooks",
    ".gemini/settings.json",
    ".qwen/.env",
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
    ".vscode/mcp.json",
    // Factory, Amp, Crush, pi, Aider.
    ".factory",
    ".amp/settings.json",
    ".crush.json",
    "crush.json",
    ".pi",
    ".aider.conf.yml",
    ".aider.model.settings.yml",
];
