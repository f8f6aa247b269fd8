//! The backend trait: how one kind of agent is started and read.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::model::{Gate, PermissionMode, PermissionModes, Usd, visible};

use super::event::Decoder;

/// Variables that point git to another repository than the work tree.
pub const GIT_PLACES: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// One kind of agent. Everything particular to it is behind this trait.
pub trait Backend: Send + Sync {
    /// The agent's name. Must not change between runs and versions: service faults are keyed by it.
    fn label(&self) -> String;

    fn capabilities(&self) -> Capabilities;

    /// Called for each start: an update may have moved the program.
    fn command(&self, request: &LaunchRequest<'_>) -> Result<Launch, AgentError>;

    /// For the output of one attempt.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// None: it has no permission modes.
    fn permission_modes(&self) -> Option<PermissionModes> {
        None
    }

    /// Fails if the agent would refuse the mode; returns a warning if the mode is dangerous.
    fn check_permissions(&self, _mode: PermissionMode) -> Result<Option<String>, AgentError> {
        Ok(None)
    }

    /// Texts in the repository that decide which programs run and what the agent may do: from
    /// `[agent]` in ralph.toml and from the agent's own files.
    fn trust_clauses(&self, _table: &AgentSettings, _root: &Path) -> Vec<TrustClause> {
        Vec::new()
    }
}

/// Optional abilities of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It takes messages while it works, the prompt first. Without this, its standard input is a
    /// file with the prompt.
    pub messages: bool,
    /// It enforces its allowance itself; other agents are checked afterwards.
    pub own_budget: bool,
    /// The costs that it reports are not real.
    pub invented_costs: bool,
}

pub struct LaunchRequest<'a> {
    pub work_tree: &'a Path,
    /// It may run the gates of its work.
    pub gates: &'a [&'a Gate],
    /// The most it may cost.
    pub allowance: Option<Usd>,
}

/// A command line and its changes to the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Set, or removed when None.
    pub env: Vec<(OsString, Option<OsString>)>,
}

impl Launch {
    pub fn new(program: PathBuf, args: Vec<OsString>) -> Self {
        Self { program, args, env: GIT_PLACES.map(|name| (name.into(), None)).to_vec() }
    }
}

/// A text that must be approved: a command, or a setting that decides what may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustClause {
    /// Where it comes from.
    pub what: String,
    pub text: String,
}

impl TrustClause {
    pub fn new(what: impl Into<String>, text: impl Into<String>) -> Self {
        Self { what: what.into(), text: text.into() }
    }
}

/// The `[agent]` table of ralph.toml. A backend uses the settings it knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSettings {
    /// `claude` or `mock`.
    pub name: Option<AgentKind>,
    /// Any other program with its arguments, in shell words.
    pub command: Option<String>,
    /// Where the agent's program is, if it is not on the path.
    pub program: Option<PathBuf>,
    pub model: Option<String>,
    pub fallback_model: Option<String>,
    /// None: remembered, asked for or the default, or set in `args`.
    pub permission_mode: Option<PermissionMode>,
    pub allowed_tools: Vec<String>,
    pub disallowed_tools: Vec<String>,
    pub max_turns: Option<u32>,
    pub max_budget_usd: Option<f64>,
    pub append_system_prompt: Option<String>,
    pub setting_sources: Option<String>,
    pub mcp_config: Vec<String>,
    pub strict_mcp_config: bool,
    /// Commands may run in the background, also after the result.
    pub background_tasks: bool,
    /// Further arguments, passed as they are.
    pub args: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    Claude,
    Mock,
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("`{name}` was not found{where_}. {advice}")]
    NotFound { name: String, where_: &'static str, advice: &'static str },
    #[error("{0}")]
    Refused(&'static str),
}

/// Searches the PATH unless the name has a folder. Never returns a program below `not_below`, where
/// the agent can write.
pub fn find_program(
    name: &Path,
    not_below: Option<&Path>,
    advice: &'static str,
) -> Result<PathBuf, AgentError> {
    let has_folder = name.components().count() > 1;
    let candidates: Vec<PathBuf> = if has_folder {
        std::path::absolute(name).into_iter().collect()
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
        folders.map(|folder| folder.join(name)).collect()
    };
    let is_usable = |path: &PathBuf| is_program(path) && !is_below(path, not_below);
    candidates.into_iter().find(is_usable).ok_or_else(|| AgentError::NotFound {
        name: visible(&name.to_string_lossy()).into_owned(),
        where_: if has_folder { "" } else { " on the PATH" },
        advice,
    })
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Also if a link from elsewhere leads below it.
fn is_below(path: &Path, folder: Option<&Path>) -> bool {
    let Some(folder) = folder else { return false };
    path.starts_with(folder) || path.canonicalize().is_ok_and(|real| real.starts_with(folder))
}
