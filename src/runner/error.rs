//! Why the loop cannot continue.

use std::io;
use std::path::PathBuf;

use crate::agent::AgentError;
use crate::model::{LaneId, StoryId, first_few};
use crate::process::SpawnError;
use crate::store::StoreError;
use crate::store::prd::{EditError, LoadError, WriteError};
use crate::store::ralph_dir::RalphDirError;
use crate::workspace::GitError;

/// On Linux the next run can find the processes of an earlier one.
const LOOK: &str = if cfg!(target_os = "linux") {
    "`ralph run` ends them"
} else {
    "kill them, then run `ralph run` again"
};

pub type Result<T, E = RunnerError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    RalphDir(#[from] RalphDirError),
    #[error(transparent)]
    Backlog(#[from] LoadError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("cannot end processes of a gate: {}; kill them yourself", .0.join(", "))]
    GateSurvivors(Vec<String>),
    #[error("the supervisor of a gate was killed; processes of the gate may still run")]
    GateLost,
    #[error(
        "cannot record your costs over all repositories, which `budget.per_user_day` needs: {0}"
    )]
    UserCosts(StoreError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error(
        "cannot end processes of the agent: {}; kill them, then run `ralph run` again",
        .0.join(", ")
    )]
    Survivors(Vec<String>),
    #[error(
        "`ralph run` was started by a process of the run that it would continue ({}); start it in \
         another shell",
        .0.join(", ")
    )]
    InsideItself(Vec<String>),
    #[error("lane {0} has no work tree")]
    NoLane(LaneId),
    #[error("internal error: {0}; run `ralph run` again, and please report this")]
    TaskLost(String),
    #[error("the agent's supervisor was killed, so processes of the agent may still run; {LOOK}")]
    SupervisorLost,
    #[error(
        "the run is on branch `{before}`, but HEAD is on `{now}`: run `git switch {before}`, or \
         continue here with `--branch {now}`"
    )]
    OtherBranch { before: String, now: String },
    #[error(
        "since the last run you edited files that the unfinished work on {story} changed in the same \
         places:\n  {}\ncommit them or undo your edits, then run `ralph run` again",
        first_few(paths, paths.len())
    )]
    MixedEdits { story: StoryId, paths: Vec<PathBuf> },
    #[error(
        "this repository configures commands or agent permissions that you haven't approved:\n\
         {0}\napprove them with `ralph trust`, or with `--trust` where there is no terminal"
    )]
    Untrusted(String),
}

impl RunnerError {
    /// Nothing can be recorded any more.
    pub fn is_lost_journal(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_lost() || error.is_damage())
    }
}
