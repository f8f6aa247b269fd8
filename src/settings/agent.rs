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
