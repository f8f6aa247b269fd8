//! Claude Code: its command line, permission modes and trust clauses.

mod decoder;

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::getuid;

use crate::files::{self, ReadError};
use crate::model::{Gate, GateCommand, PermissionMode, PermissionModes, Usd};

use super::backend::{
    AgentError, AgentSettings, Backend, Capabilities, Decoder, Launch, LaunchRequest, TrustClause,
    find_program,
};

pub use decoder::ClaudeDecoder;

/// In bytes.
const LONGEST_SETTINGS: u64 = 1024 * 1024;

/// Variables that tell the agent that it runs inside another session.
const NESTING_MARKS: [&str; 2] = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"];

const NOT_FOUND: &str = "Install Claude Code (`npm install -g @anthropic-ai/claude-code`), use \
    another agent with `--agent-command`, or try the loop with `--agent mock`";

/// All tools that write files, inside the work tree. Every story needs them.
const EDIT_HERE: &str = "Edit(./**)";
/// Commands that every story needs and that can do no harm, with any arguments.
///
/// Claude Code keeps them to the work tree. By itself it runs the forms of `git diff`, `git log`,
/// `find` and the like that only read; they are not listed because a prefix would allow more than
/// that: `git diff --output=FILE` writes anywhere.
const SAFE_COMMANDS: [&str; 8] = ["git status", "ls", "cat", "head", "tail", "wc", "grep", "mkdir"];

/// Claude Code takes messages while it runs and prints events as they happen.
const ALWAYS: [&str; 6] =
    ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];

pub const PERMISSION_MODES: PermissionModes = PermissionModes {
    agent: "Claude Code",
    modes: &[ACCEPT_EDITS, AUTO, DONT_ASK, BYPASS_PERMISSIONS],
};

const ACCEPT_EDITS: PermissionMode = PermissionMode {
    name: "acceptEdits",
    meaning: "edit, move and delete files here; run harmless commands, the gates and \
              `allowed_tools`",
    advice: "the usual choice",
};

const AUTO: PermissionMode = PermissionMode {
    name: "auto",
    meaning: "do anything that Claude Code does not consider dangerous; not available to every \
              account",
    advice: "",
};

const DONT_ASK: PermissionMode = PermissionMode {
    name: "dontAsk",
    meaning: "edit files here; run harmless commands, the gates and `allowed_tools`; nothing more",
    advice: "",
};

const BYPASS_PERMISSIONS: PermissionMode = PermissionMode {
    name: "bypassPermissions",
    meaning: "do anything; only for a sandbox: a container or VM without your secrets. As root, \
              Claude Code requires IS_SANDBOX=1",
    advice: "only in a sandbox",
};

/// Options that choose the permission mode.
const MODE_OPTIONS: [&str; 2] = ["--permission-mode", "--dangerously-skip-permissions"];

/// Settings of the project. They can run programs (hooks, helpers, plugins, servers), allow tools,
/// and lead the API key elsewhere (`env`), so their whole text counts.
const PROJECT_FILES: [&str; 3] =
    [".claude/settings.json", ".claude/settings.local.json", ".mcp.json"];

pub struct Claude {
    pub settings: AgentSettings,
}

impl Backend for Claude {
    fn label(&self) -> String {
        "claude".to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { own_budget: true, invented_costs: false, takes_messages: true }
    }

    fn command(&self, request: &LaunchRequest<'_>) -> Result<Launch, AgentError> {
        let name = self.settings.program.clone().unwrap_or_else(|| PathBuf::from("claude"));
        let program = find_program(&name, Some(request.work_tree), NOT_FOUND)?;
        let args = args(&self.settings, request.gates, request.allowance);
        let mut launch = Launch::new(program, args.into_iter().map(OsString::from).collect(), None);
        launch.env.extend(NESTING_MARKS.map(|mark| (mark.into(), None)));
        launch.env.push(("DISABLE_AUTOUPDATER".into(), Some("1".into())));
        if !self.settings.background_tasks {
            launch.env.push(("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS".into(), Some("1".into())));
        }
        Ok(launch)
    }

    fn decoder(&self, _request: &LaunchRequest<'_>) -> Box<dyn Decoder> {
        Box::<ClaudeDecoder>::default()
    }

    fn permission_modes(&self) -> Option<PermissionModes> {
        (!args_choose_mode(&self.settings.args)).then_some(PERMISSION_MODES)
    }

    /// As in databases from before there were other agents.
    fn permission_key(&self) -> String {
        "permission_mode".to_owned()
    }

    fn check_permissions(&self, mode: PermissionMode) -> Result<Option<String>, AgentError> {
        if mode != BYPASS_PERMISSIONS || is_sandbox() {
            return Ok(None);
        }
        if getuid().is_root() {
            return Err(AgentError::Refused(
                "Claude Code refuses `bypassPermissions` as root; if this is a sandbox (container \
                 or VM), set IS_SANDBOX=1, otherwise choose another mode",
            ));
        }
        let text = "the agent may do anything (bypassPermissions): use this only in a sandbox, a \
            container or VM without your secrets";
        Ok(Some(text.to_owned()))
    }

    fn trust_clauses(
        &self,
        table: &AgentSettings,
        root: &Path,
    ) -> Result<Vec<TrustClause>, AgentError> {
        Ok(table_clauses(table).chain(file_clauses(root)?).collect())
    }
}

/// The prompt is not among them: it comes on standard input.
fn args(settings: &AgentSettings, gates: &[&Gate], allowance: Option<Usd>) -> Vec<String> {
    let mut args: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
    option(&mut args, "--permission-mode", settings.permission_mode.map(|mode| mode.name));
    option(&mut args, "--model", settings.model.as_ref());
    option(&mut args, "--fallback-model", settings.fallback_model.as_ref());
    option(&mut args, "--max-turns", settings.max_turns);
    let most = settings.max_budget_usd.map(Usd::of).into_iter().chain(allowance).min();
    option(&mut args, "--max-budget-usd", most.map(Usd::as_f64));
    option(&mut args, "--append-system-prompt", settings.append_system_prompt.as_ref());
    option(&mut args, "--setting-sources", settings.setting_sources.as_ref());
    list(&mut args, "--allowedTools", &allowed_tools(settings, gates));
    list(&mut args, "--disallowedTools", &settings.disallowed_tools);
    list(&mut args, "--mcp-config", &settings.mcp_config);
    if settings.strict_mcp_config {
        args.push("--strict-mcp-config".to_owned());
    }
    args.extend(settings.args.iter().cloned());
    args
}

/// Everything that runs without being asked about.
fn allowed_tools(settings: &AgentSettings, gates: &[&Gate]) -> Vec<String> {
    let own = settings.allowed_tools.iter().cloned();
    match settings.permission_mode {
        Some(ACCEPT_EDITS | DONT_ASK) => {
            let safe = SAFE_COMMANDS.map(|command| format!("Bash({command}:*)"));
            let gates = gates.iter().filter_map(|gate| rule(gate));
            std::iter::once(EDIT_HERE.to_owned()).chain(safe).chain(gates).chain(own).collect()
        }
        // Claude Code judges, all is allowed, or the free arguments decide.
        _ => own.collect(),
    }
}

/// Allows exactly this command: with more words it is another one, such as `make deploy` for
/// `make`. None if a character has another meaning in a rule.
fn rule(gate: &Gate) -> Option<String> {
    let command = match &gate.run {
        GateCommand::Shell(command) => command.trim().to_owned(),
        GateCommand::Program(words) => shlex::try_join(words.iter().map(String::as_str)).ok()?,
    };
    (!command.contains(['*', '\\'])).then(|| format!("Bash({command})"))
}

fn option(args: &mut Vec<String>, flag: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        // One word, so that a value that begins with `-` is not an option.
        args.push(format!("{flag}={value}"));
    }
}

fn list(args: &mut Vec<String>, flag: &str, values: &[String]) {
    if !values.is_empty() {
        args.push(flag.to_owned());
        args.extend(values.iter().cloned());
    }
}

/// Whether the free arguments choose the permission mode.
pub fn args_choose_mode(args: &[String]) -> bool {
    args.iter().any(|arg| {
        let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
        MODE_OPTIONS.contains(&name)
    })
}

/// As Claude Code recognizes one.
fn is_sandbox() -> bool {
    env::var("IS_SANDBOX").is_ok_and(|value| value == "1")
        || env::var("CLAUDE_CODE_BUBBLEWRAP").is_ok_and(|value| !value.is_empty())
}

/// Settings in ralph.toml that decide what runs. A model's name does not.
fn table_clauses(table: &AgentSettings) -> impl Iterator<Item = TrustClause> {
    let list = |values: &[String]| (!values.is_empty()).then(|| values.join("\n"));
    let program = table.program.as_ref().map(|path| path.to_string_lossy().into_owned());
    let parts = [
        ("program", program),
        ("permission_mode", table.permission_mode.map(|mode| mode.name.to_owned())),
        ("allowed_tools", list(&table.allowed_tools)),
        ("append_system_prompt", table.append_system_prompt.clone()),
        ("setting_sources", table.setting_sources.clone()),
        ("mcp_config", list(&table.mcp_config)),
        ("args", list(&table.args)),
    ];
    parts.into_iter().filter_map(|(name, text)| {
        Some(TrustClause::new(format!("`{name}` of the agent in ralph.toml"), text?))
    })
}

/// Unattended, Claude Code uses the project's own settings without asking. Fails if one cannot be
/// shown.
fn file_clauses(root: &Path) -> Result<Vec<TrustClause>, AgentError> {
    let mut clauses = Vec::new();
    for name in PROJECT_FILES {
        match files::read_text(&root.join(name), LONGEST_SETTINGS) {
            Ok(text) => clauses.push(TrustClause::new(name, text)),
            Err(ReadError::Io(error)) if is_absence(&error) => {}
            Err(problem) => return Err(AgentError::Unreadable { name, problem }),
        }
    }
    Ok(clauses)
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests;
