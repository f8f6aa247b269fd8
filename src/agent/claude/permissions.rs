//! What Claude Code may do: its permission modes, and what of a repository's files decides it.

use std::env;
use std::fs;
use std::path::Path;

use rustix::process::getuid;
use serde_json::Value;

use crate::agent::backend::{AgentError, AgentSettings, TrustClause};
use crate::model::{PermissionMode, PermissionModes};

pub const PERMISSION_MODES: PermissionModes = PermissionModes {
    agent: "Claude Code",
    modes: &[ACCEPT_EDITS, AUTO, DONT_ASK, BYPASS_PERMISSIONS],
};

pub const ACCEPT_EDITS: PermissionMode = PermissionMode {
    name: "acceptEdits",
    meaning: "edit, move and delete files here; run harmless commands, the gates and \
              `allowed_tools`",
    advice: "the usual choice",
};

const AUTO: PermissionMode = PermissionMode {
    name: "auto",
    meaning: "Claude Code judges each step itself and denies what looks dangerous; not every \
              account has it",
    advice: "",
};

pub const DONT_ASK: PermissionMode = PermissionMode {
    name: "dontAsk",
    meaning: "edit files here; run harmless commands, the gates and `allowed_tools`; nothing more",
    advice: "",
};

const BYPASS_PERMISSIONS: PermissionMode = PermissionMode {
    name: "bypassPermissions",
    meaning: "do anything. Only in a sandbox, a container or VM without your secrets; as root \
              Claude Code wants IS_SANDBOX=1 for it",
    advice: "only in a sandbox",
};

/// Options that choose the permission mode.
const MODE_OPTIONS: [&str; 2] = ["--permission-mode", "--dangerously-skip-permissions"];

/// The free arguments choose the permission mode.
pub fn args_choose_mode(args: &[String]) -> bool {
    args.iter().any(|arg| {
        let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
        MODE_OPTIONS.contains(&name)
    })
}

/// Said at once: the agent itself would fail with each story anew.
pub fn check(mode: PermissionMode) -> Result<Option<String>, AgentError> {
    if mode != BYPASS_PERMISSIONS || is_sandbox() {
        return Ok(None);
    }
    if getuid().is_root() {
        return Err(AgentError::Refused(
            "Claude Code refuses `bypassPermissions` as root; where this is a sandbox (container \
             or VM), `IS_SANDBOX=1` in the environment says so, else choose another mode",
        ));
    }
    let text = "the agent may do anything (bypassPermissions): that belongs into a sandbox, a \
        container or VM without your secrets";
    Ok(Some(text.to_owned()))
}

/// By the marks that Claude Code goes by.
fn is_sandbox() -> bool {
    env::var("IS_SANDBOX").is_ok_and(|value| value == "1")
        || env::var("CLAUDE_CODE_BUBBLEWRAP").is_ok_and(|value| !value.is_empty())
}

/// A model's name decides nothing.
pub fn from_table(table: &AgentSettings) -> impl Iterator<Item = TrustClause> {
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

/// Keys of Claude Code's settings whose values are run.
const COMMANDS: [&str; 6] = [
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "hooks",
    "otelHeadersHelper",
    "statusLine",
];

/// Claude Code takes the project's own commands without asking when nobody is there to ask.
pub fn files(root: &Path) -> Vec<TrustClause> {
    let mut clauses = Vec::new();
    for name in [".claude/settings.json", ".claude/settings.local.json"] {
        let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
        let Ok(Value::Object(settings)) = serde_json::from_str(&text) else { continue };
        for key in COMMANDS {
            if let Some(value) = settings.get(key) {
                clauses.push(TrustClause::new(format!("`{key}` in {name}"), format!("{value:#}")));
            }
        }
    }
    if let Ok(text) = fs::read_to_string(root.join(".mcp.json")) {
        clauses.push(TrustClause::new(".mcp.json", text));
    }
    clauses
}
