//! Which agent runs, and how Claude Code is started.

use std::path::{Path, PathBuf};

use crate::agent::{AgentKind, AgentSettings, args_choose_mode};
use crate::model::visible_line;

use super::kind::{AGENT_NAME, DOLLARS, NUMBER, PATH, PERMISSION_MODE, SWITCH, TEXT};
use super::{Origin, Read, SettingsError, SettingsReader, setting, settings};

/// The agent that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentChoice {
    Claude,
    Mock { script: Option<PathBuf> },
    Command { words: Vec<String> },
}

settings! {
    pub(super) fn settings(from) -> AgentSettings {
        /// Which agent to run
        name = from.optional(&AGENT_NAME,
            setting("agent.name").flag("agent", "NAME").by_default("claude"))?;
        /// Run any other program as the agent; it gets the prompt on standard input, or in place of
        /// the word `{prompt}`, or as a file in place of `{prompt_file}`
        command = from.optional(&TEXT, setting("agent.command").flag("agent-command", "COMMAND"))?;
        /// What Claude Code may do
        permission_mode = from.optional(&PERMISSION_MODE, setting("agent.permission_mode")
            .flag("permission-mode", "MODE").by_default("asked once and remembered"))?;
        /// Path of the `claude` program, if it is not on the PATH
        program = from.optional(&PATH, setting("agent.program"))?;
        /// `--model` of Claude Code
        model = from.optional(&TEXT, setting("agent.model"))?;
        /// `--fallback-model` of Claude Code
        fallback_model = from.optional(&TEXT, setting("agent.fallback_model"))?;
        /// Tools that Claude Code may use without asking
        allowed_tools = from.list(&TEXT, setting("agent.allowed_tools"));
        /// Tools that Claude Code may not use
        disallowed_tools = from.list(&TEXT, setting("agent.disallowed_tools"));
        /// `--max-turns` of Claude Code
        max_turns = from.optional(&NUMBER, setting("agent.max_turns"))?;
        /// `--max-budget-usd` of Claude Code; the smaller of it and the remaining budgets applies
        max_budget_usd = from.optional(&DOLLARS, setting("agent.max_budget_usd"))?;
        /// Text to append to Claude Code's system prompt
        append_system_prompt = from.optional(&TEXT, setting("agent.append_system_prompt"))?;
        /// `--setting-sources` of Claude Code
        setting_sources = from.optional(&TEXT, setting("agent.setting_sources"))?;
        /// `--mcp-config` of Claude Code
        mcp_config = from.list(&TEXT, setting("agent.mcp_config"));
        /// `--strict-mcp-config` of Claude Code
        strict_mcp_config =
            from.value(&SWITCH, setting("agent.strict_mcp_config").default("false"))?;
        /// Let Claude Code run commands in the background
        background_tasks =
            from.value(&SWITCH, setting("agent.background_tasks").default("false"))?;
        /// More arguments for Claude Code
        args = from.list(&TEXT, setting("agent.args"));
    }
}

/// A flag overrides the file; two agents in the same place are a mistake.
pub(super) fn choice(
    from: &mut SettingsReader<'_>,
    settings: &AgentSettings,
    script: Option<&Path>,
) -> Read<AgentChoice> {
    let named = from.origins.get("agent.name").copied();
    let commanded = from.origins.get("agent.command").copied();
    if named.is_some() && named == commanded {
        let names = match named {
            Some(Origin::File) => "`agent.name` and `agent.command`",
            _ => "`--agent` and `--agent-command`",
        };
        from.reject("agent.command", format!("{names} name two agents; remove one"))?;
    }
    let command = settings.command.as_deref().filter(|_| commanded > named);
    let choice = match (command, settings.name) {
        (Some(text), _) => AgentChoice::Command { words: words(from, text)? },
        (None, Some(AgentKind::Claude)) => AgentChoice::Claude,
        (None, None) if script.is_none() => AgentChoice::Claude,
        (None, _) => AgentChoice::Mock { script: script.map(Path::to_owned) },
    };
    if script.is_some() && !matches!(choice, AgentChoice::Mock { .. }) {
        return Err(SettingsError::Usage("`--mock-script` needs `--agent mock`".to_owned()));
    }
    check_mode(from, settings, &choice)?;
    Ok(choice)
}

fn words(from: &mut SettingsReader<'_>, text: &str) -> Read<Vec<String>> {
    let words = shlex::split(text).unwrap_or_default();
    if words.is_empty() {
        let text = visible_line(text);
        let expected = "expected a program with its arguments, quoted as in a shell";
        from.reject("agent.command", format!("invalid agent command `{text}`: {expected}"))?;
    }
    Ok(words)
}

/// Claude Code does not document which of two modes it uses, so there must be only one.
fn check_mode(
    from: &mut SettingsReader<'_>,
    settings: &AgentSettings,
    choice: &AgentChoice,
) -> Read<()> {
    const KEY: &str = "agent.permission_mode";
    let Some(origin) = from.origins.get(KEY).copied() else { return Ok(()) };
    if origin == Origin::Flag && *choice != AgentChoice::Claude {
        let text = "`--permission-mode` works with Claude Code only";
        return Err(SettingsError::Usage(text.to_owned()));
    }
    if args_choose_mode(&settings.args) {
        let name = if origin == Origin::Flag { "--permission-mode" } else { KEY };
        let text = "`agent.args` in ralph.toml sets a permission mode too; remove it there";
        from.reject(KEY, format!("`{name}`: {text}"))?;
    }
    Ok(())
}
