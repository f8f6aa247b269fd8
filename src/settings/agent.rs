//! `[agent]`: which agent runs, and how Claude Code is started.

use std::path::PathBuf;

use serde::Deserialize;

use crate::core::permission::PermissionMode;

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
    /// None: remembered, asked or the default; or `args` say it.
    pub permission_mode: Option<PermissionMode>,
    pub allowed_tools: Vec<String>,
    pub disallowed_tools: Vec<String>,
    pub max_turns: Option<u32>,
    pub max_budget_usd: Option<f64>,
    pub append_system_prompt: Option<String>,
    pub setting_sources: Option<String>,
    pub mcp_config: Vec<String>,
    pub strict_mcp_config: bool,
    /// Commands may go on in the background, after the result too.
    pub background_tasks: bool,
    /// Anything else, as it is.
    pub args: Vec<String>,
}

/// Options of Claude Code that choose the permission mode.
const MODE_OPTIONS: [&str; 2] = ["--permission-mode", "--dangerously-skip-permissions"];

impl AgentSettings {
    /// The free arguments choose the permission mode.
    pub fn args_have_mode(&self) -> bool {
        self.args.iter().any(|arg| {
            let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
            MODE_OPTIONS.contains(&name)
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    Claude,
    Mock,
}
