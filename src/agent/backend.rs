//! What an agent backend is: how one kind of agent is started, spoken to and read.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::model::{Gate, PermissionMode, PermissionModes, Usd, visible};

use super::event::Decoder;

/// Variables that would lead git to another repository than the work tree.
pub const GIT_PLACES: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// One kind of agent. All that is particular to it is behind this trait.
pub trait Backend: Send + Sync {
    /// Stable over runs and versions: what is known of its service is kept under this name.
    fn name(&self) -> String;

    /// What people call it.
    fn label(&self) -> String {
        self.name()
    }

    fn capabilities(&self) -> Capabilities;

    /// Looked up anew for each start: an update may have moved the program.
    fn command(&self, request: &LaunchRequest<'_>) -> Result<Launch, AgentError>;

    /// For the output of one attempt.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// A message to the running agent, as it reads it.
    fn message(&self, text: &str) -> String {
        format!("{text}\n")
    }

    /// None: it has no such thing.
    fn permission_modes(&self) -> Option<PermissionModes> {
        None
    }

    /// The one that it is started with.
    fn permission_mode(&self) -> Option<PermissionMode> {
        None
    }

    /// Fails where the agent itself would refuse the mode; else the warning that it deserves here.
    fn check_permissions(&self, _mode: PermissionMode) -> Result<Option<String>, AgentError> {
        Ok(None)
    }

    /// What decides which programs run and what the agent may do, and comes from the repository:
    /// from the `[agent]` table of its ralph.toml or from the agent's own files.
    fn trust_clauses(&self, _table: &AgentSettings, _root: &Path) -> Vec<TrustClause> {
        Vec::new()
    }
}

/// What an agent can do beyond working and ending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It takes messages while it works, the prompt first; else it reads its prompt from a file.
    pub messages: bool,
    /// It ends by itself when it has cost what it may; others are only looked at afterwards.
    pub own_budget: bool,
    /// What it says that it costs is made up.
    pub invented_costs: bool,
}

pub struct LaunchRequest<'a> {
    pub work_tree: &'a Path,
    /// What its work has to pass, it may run.
    pub gates: &'a [&'a Gate],
    /// What it may cost, where it can be told.
    pub allowance: Option<Usd>,
}

/// A command line and what of the environment it changes.
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

/// Something that would be run, or decides what may be.
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

/// The `[agent]` table of ralph.toml. A backend takes of it what it knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSettings {
    /// `claude` or `mock`.
    pub name: Option<AgentKind>,
    /// Any other program with its arguments, in shell words.
    pub command: Option<String>,
    /// Where the agent's program is, when it is not on the path.
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

/// On the path, unless its folder is named. Never below `not_below`: the agent itself can write
/// the work tree.
pub fn find_program(
    name: &Path,
    not_below: Option<&Path>,
    advice: &'static str,
) -> Result<PathBuf, AgentError> {
    find(name, not_below).ok_or_else(|| AgentError::NotFound {
        name: visible(&name.to_string_lossy()).into_owned(),
        where_: if has_folder(name) { "" } else { " on the path" },
        advice,
    })
}

fn has_folder(name: &Path) -> bool {
    name.components().count() > 1
}

fn find(name: &Path, not_below: Option<&Path>) -> Option<PathBuf> {
    let candidates: Vec<PathBuf> = if has_folder(name) {
        vec![std::path::absolute(name).ok()?]
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
        folders.map(|folder| folder.join(name)).collect()
    };
    candidates.into_iter().find(|path| is_program(path) && !is_below(path, not_below))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// By its own place: a link from elsewhere into the work tree counts as below it.
fn is_below(path: &Path, folder: Option<&Path>) -> bool {
    let Some(folder) = folder else { return false };
    path.starts_with(folder) || path.canonicalize().is_ok_and(|real| real.starts_with(folder))
}
