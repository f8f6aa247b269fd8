//! Why the loop cannot continue.

use std::io;

use crate::agent::AgentError;
use crate::model::{LaneId, StoryId};
use crate::process::SpawnError;
use crate::store::StoreError;
use crate::store::prd::{EditError, LoadError, WriteError};
use crate::store::ralph_dir::RalphDirError;
use crate::workspace::GitError;

/// On Linux the next run can find the processes of an earlier one.
const LOOK: &str = if cfg!(target_os = "linux") {
    "run `ralph run` again to end it"
} else {
    "end it by hand, then run `ralph run` again"
};

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
    #[error("processes of a gate could not be ended: {}; end them by hand", .0.join(", "))]
    GateSurvivors(Vec<String>),
    #[error("the supervisor of a gate was killed; check for processes that it left")]
    GateLost,
    #[error(
        "cannot store your costs over all repositories, which a budget needs \
         (`budget.per_user_day`, `--budget-user-day`): {0}"
    )]
    UserCosts(StoreError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error(
        "processes of the agent could not be ended: {}; end them by hand, then run `ralph run` again",
        .0.join(", ")
    )]
    Survivors(Vec<String>),
    #[error(
        "this `ralph run` was started by processes of the run that it would continue: {}; \
         start it in another shell",
        .0.join(", ")
    )]
    InsideItself(Vec<String>),
    #[error("lane {0} has no work tree")]
    NoLane(LaneId),
    #[error("a part of ralph broke down: {0}; run `ralph run` again, and please report this")]
    TaskLost(String),
    #[error("the supervisor of the agent was killed, so parts of the agent may still run; {LOOK}")]
    SupervisorLost,
    #[error(
        "the run is on `{before}`, but HEAD is on `{now}`: `git switch {before}`, or continue here \
         with `--branch {now}`"
    )]
    OtherBranch { before: String, now: String },
    #[error(
        "the backlog was broken for too long, so {story} could not be closed; fix it and run \
         `ralph run` again to close it\n{problem}"
    )]
    BacklogBroken { story: StoryId, problem: String },
}
