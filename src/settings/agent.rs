//! Which agent runs, and how Claude Code is started.

use std::path::{Path, PathBuf};

use crate::agent;
use crate::agent::{AgentKind, AgentSettings, args_choose_mode};
use crate::model::{PermissionMode, visible_line};

use super::kind::{DOLLARS, NUMBER, PATH, SWITCH, TEXT, ValueKind};
use super::reader::{Origin, Reader, SettingsError};
use super::setting::{SettingChoice, SettingGroup as Group, setting};

const AGENT_NAME: ValueKind<AgentKind> = ValueKind::choice("`claude` or `mock`", || {
    vec![choice_of("claude", "Claude Code"), choice_of("mock", "The built-in scripted agent")]
});
const PERMISSION_MODE: ValueKind<PermissionMode> = ValueKind {
    choices: || agent::all_permission_modes().map(|m| choice_of(m.name, m.meaning)).collect(),
    ..ValueKind::text(
        "`acceptEdits`, `auto`, `dontAsk` or `bypassPermissions`",
        agent::permission_mode,
    )
};

fn choice_of(name: &'static str, help: &'static str) -> SettingChoice {
    SettingChoice { name, help }
}

/// The agent that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentChoice {
    Claude,
    Mock { script: Option<PathBuf> },
    Command { words: Vec<String> },
}

pub(super) fn settings(from: &mut Reader<'_>) -> Result<AgentSettings, SettingsError> {
    let of = |key, help| setting(Group::Agent, key, help);
    let mode = of("agent.permission_mode", "What Claude Code may do")
        .flag("permission-mode", "MODE")
        .by_default("asked once and remembered");
    let path = of("agent.program", "Where Claude Code is, if it is not on the PATH");
    let name = of("agent.name", "Which agent to run").flag("agent", "NAME").by_default("claude");
    let command = of(
        "agent.command",
        "Run any other program as the agent; it gets the prompt on standard input",
    );
    Ok(AgentSettings {
        name: from.optional(&AGENT_NAME, name)?,
        command: from.optional(&TEXT, command.flag("agent-command", "COMMAND"))?,
        permission_mode: from.optional(&PERMISSION_MODE, mode)?,
        program: from.optional(&PATH, path)?,
        model: from.optional(&TEXT, of("agent.model", "`--model` of Claude Code"))?,
        fallback_model: from
            .optional(&TEXT, of("agent.fallback_model", "`--fallback-model` of Claude Code"))?,
        allowed_tools: from
            .list(&TEXT, of("agent.allowed_tools", "Tools that run without being asked about")),
        disallowed_tools: from.list(&TEXT, of("agent.disallowed_tools", "Tools that never run")),
        max_turns: from.optional(&NUMBER, of("agent.max_turns", "`--max-turns` of Claude Code"))?,
        max_budget_usd: from.optional(
            &DOLLARS,
            of("agent.max_budget_usd", "Claude Code's own budget; the smaller one counts"),
        )?,
        append_system_prompt: from.optional(
            &TEXT,
            of("agent.append_system_prompt", "Text to append to Claude Code's system prompt"),
        )?,
        setting_sources: from
            .optional(&TEXT, of("agent.setting_sources", "`--setting-sources` of Claude Code"))?,
        mcp_config: from.list(&TEXT, of("agent.mcp_config", "`--mcp-config` of Claude Code")),
        strict_mcp_config: from.value(
            &SWITCH,
            of("agent.strict_mcp_config", "`--strict-mcp-config` of Claude Code").default("false"),
        )?,
        background_tasks: from.value(
            &SWITCH,
            of("agent.background_tasks", "Let commands run in the background").default("false"),
        )?,
        args: from.list(&TEXT, of("agent.args", "Further arguments, passed as they are")),
    })
}

/// A flag overrides the file; two agents in the same place are a mistake.
pub(super) fn choice(
    from: &mut Reader<'_>,
    settings: &AgentSettings,
    script: Option<&Path>,
) -> Result<AgentChoice, SettingsError> {
    let named = from.origins.get("agent.name").copied();
    let commanded = from.origins.get("agent.command").copied();
    if named.is_some() && named == commanded {
        let names = match named {
            Some(Origin::File) => "`agent.name` and `agent.command`",
            _ => "`--agent` and `--agent-command`",
        };
        from.reject("agent.command", format!("{names} name two agents; keep one of them"))?;
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

fn words(from: &mut Reader<'_>, text: &str) -> Result<Vec<String>, SettingsError> {
    let words = shlex::split(text).unwrap_or_default();
    if words.is_empty() {
        let text = visible_line(text);
        let expected = "expected a program with its arguments, quoted as in a shell";
        from.reject("agent.command", format!("invalid agent command `{text}`: {expected}"))?;
    }
    Ok(words)
}

/// Which of two modes Claude Code would take is hard to tell, so there must be one.
fn check_mode(
    from: &mut Reader<'_>,
    settings: &AgentSettings,
    choice: &AgentChoice,
) -> Result<(), SettingsError> {
    const KEY: &str = "agent.permission_mode";
    let Some(origin) = from.origins.get(KEY).copied() else { return Ok(()) };
    if origin == Origin::Flag && *choice != AgentChoice::Claude {
        let text = "`--permission-mode` works with Claude Code only";
        return Err(SettingsError::Usage(text.to_owned()));
    }
    if args_choose_mode(&settings.args) {
        let name = if origin == Origin::Flag { "--permission-mode" } else { KEY };
        let text = "`agent.args` in ralph.toml set a permission mode too; remove it there";
        from.reject(KEY, format!("`{name}`: {text}"))?;
    }
    Ok(())
}
