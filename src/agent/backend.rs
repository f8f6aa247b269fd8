//! What a backend is: how one kind of agent is started, and its output in the same form for all
//! agents.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::files::{ReadError, follow};
use crate::model::{
    EndedBy, Gate, ModelUse, Outcome, PermissionMode, PermissionModes, StepKind, Usage, Usd,
    shorten, visible, visible_line,
};

/// The longest `detail` of an error, in characters.
const MAX_DETAIL: usize = 400;
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

    /// For the output of one attempt. A handshake may need the work tree.
    fn decoder(&self, request: &LaunchRequest<'_>) -> Box<dyn Decoder>;

    /// None: it has no permission modes, or its arguments choose one.
    fn permission_modes(&self) -> Option<PermissionModes> {
        None
    }

    /// Where the human's choice of a mode is remembered: one agent's is not another's.
    fn permission_key(&self) -> String {
        format!("permission_mode.{}", self.label())
    }

    /// Fails if the agent would refuse the mode; returns a warning if the mode is dangerous.
    fn check_permissions(&self, _mode: PermissionMode) -> Result<Option<String>, AgentError> {
        Ok(None)
    }

    /// Texts in the repository that decide which programs run and what the agent may do: from
    /// `[agent]` in ralph.toml and from the agent's own files, as they are now.
    fn trust_clauses(
        &self,
        _table: &AgentSettings,
        _root: &Path,
    ) -> Result<Vec<TrustClause>, AgentError> {
        Ok(Vec::new())
    }
}

/// Optional abilities of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It enforces its allowance itself; other agents are checked afterwards.
    pub own_budget: bool,
    /// The costs that it reports are not real.
    pub invented_costs: bool,
    /// It takes messages while it works.
    pub takes_messages: bool,
}

pub struct LaunchRequest<'a> {
    pub work_tree: &'a Path,
    /// It may run the gates of its work.
    pub gates: &'a [&'a Gate],
    /// The most it may cost.
    pub allowance: Option<Usd>,
    pub prompt: &'a str,
    /// A file with the prompt, before the agent starts.
    pub prompt_file: &'a Path,
}

/// A command line, its changes to the environment, and its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Set, or removed when None.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// A file; None: a pipe, open until its result, with the prompt as the first message.
    pub input: Option<PathBuf>,
}

impl Launch {
    pub fn new(program: PathBuf, args: Vec<OsString>, input: Option<PathBuf>) -> Self {
        Self { program, args, env: GIT_PLACES.map(|name| (name.into(), None)).to_vec(), input }
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
    /// Settings of the project that the agent would use.
    #[error("cannot read `{name}`: {problem}")]
    Unreadable { name: &'static str, problem: ReadError },
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
    follow::look(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Also if a link from elsewhere leads below it.
fn is_below(path: &Path, folder: Option<&Path>) -> bool {
    let Some(folder) = folder else { return false };
    path.starts_with(folder) || follow::real(path).is_ok_and(|real| real.starts_with(folder))
}

/// A fact in one line of output. Most lines have none.
#[derive(Debug)]
pub enum AgentEvent<'a> {
    /// A turn begins: from here to its end, requests may cost. A format without such a line begins
    /// its turn with its first line.
    Started(AgentIdentity),
    /// A whole message of the main agent's own text.
    Said(&'a str),
    /// What it does now, in one line; with the command, if it runs one.
    Doing(StepKind, &'a str),
    Usage(UsageUpdate),
    /// It was not allowed to do something: the rule that would allow it.
    Denied(&'a str),
    /// How many of its tasks run in the background.
    Background(usize),
    /// The turn is over.
    Ended(&'a AgentEnd),
    /// What to write to its standard input: a message, or the answer to a request.
    Reply(&'a str),
}

pub type EventListener<'a> = &'a mut dyn FnMut(&AgentEvent<'_>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentIdentity {
    pub version: Option<String>,
    pub model: Option<String>,
}

/// What one line says about usage.
#[derive(Debug, Default)]
pub struct UsageUpdate {
    /// Used since the last update, by sub-agents too.
    pub used: Usage,
    /// Tokens in the main agent's context.
    pub context: Option<u64>,
    /// Tokens that the context can hold.
    pub window: Option<u64>,
    /// A subscription pays; false: the dollar does.
    pub subscription: Option<bool>,
}

/// An agent's report at the end of a turn, about all of its turns.
#[derive(Clone, Debug)]
pub struct AgentEnd {
    /// How the turn ended. The agent's own text never decides it.
    pub result: Result<(), Outcome>,
    /// Its last message, or its error.
    pub text: String,
    /// None: the updates add up to it.
    pub usage: Option<Usage>,
    pub models: Vec<ModelUse>,
    /// Every call that was denied, as the rule that would allow it.
    pub denied: Vec<String>,
}

/// The protocol of one attempt: decodes output lines, answers requests and encodes messages.
pub trait Decoder: Send {
    /// False when the line is not of this format: then it is plain text.
    fn line(&mut self, line: &str, tell: EventListener<'_>) -> bool;

    /// A line of standard error, for agents that say only there why they wait or fail.
    fn error_line(&mut self, _line: &str, _tell: EventListener<'_>) {}

    /// A message to the agent, told as the agent reads it.
    fn message(&mut self, text: &str, tell: EventListener<'_>);

    /// Why the agent's retries cannot succeed, such as a login that is refused.
    fn hopeless(&self) -> Option<Outcome> {
        None
    }

    /// What this exit code means to this agent, beyond failure.
    fn of_exit_code(&self, _code: i32) -> Option<Outcome> {
        None
    }
}

/// Our order to end an agent.
pub struct EndOrder {
    pub why: EndedBy,
    /// How the last turn before it ended, if one had ended.
    pub result: Option<Result<(), Outcome>>,
    /// What the decoder knew about retries by then.
    pub hopeless: Option<Outcome>,
}

impl EndOrder {
    /// Only a result from before the order completes an attempt: an agent may answer a signal with
    /// a result and exit code 0.
    pub fn outcome(&self, last: Option<&Result<(), Outcome>>) -> Outcome {
        let in_time = self.result.as_ref();
        match (self.why, in_time.or(last)) {
            _ if in_time == Some(&Ok(())) => Outcome::Completed,
            (EndedBy::FirstEventTimeout, _) => Outcome::FirstEventTimeout,
            (EndedBy::IdleTimeout, _) => Outcome::IdleTimeout,
            (EndedBy::IterationTimeout, _) => Outcome::IterationTimeout,
            (EndedBy::Human, _) => Outcome::EndedByUs,
            (EndedBy::Stuck, _) => Outcome::Stuck,
            (EndedBy::AfterResult | EndedBy::HopelessRetry, Some(Err(failed))) => failed.clone(),
            (EndedBy::AfterResult | EndedBy::HopelessRetry, _) => {
                self.hopeless.clone().unwrap_or(Outcome::EndedByUs)
            }
        }
    }
}

/// An error's text: one visible line of bounded length.
pub fn detail(text: &str) -> String {
    shorten(&visible_line(text), MAX_DETAIL)
}
