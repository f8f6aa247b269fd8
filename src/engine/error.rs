//! What can keep the loop from going on.

use std::io;

use crate::agent::AgentError;
use crate::core::id::StoryId;
use crate::evidence::EvidenceError;
use crate::git::GitError;
use crate::process::SpawnError;
use crate::store::books::UserBooksError;
use crate::store::journal::JournalError;
use crate::store::prd::{EditError, LoadError, WriteError};
use crate::store::room::RoomError;

/// Where the next run can tell which processes are an earlier one's, it looks itself.
const LOOK: &str = if cfg!(target_os = "linux") {
    "`ralph run` again looks for it and ends it"
} else {
    "look for it, then run `ralph run` again"
};

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error(transparent)]
    Backlog(#[from] LoadError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    #[error(
        "what you spent in all repositories cannot be kept, and a budget depends on it \
         (`budget.per_user_day`, `--budget-user-day`): {0}"
    )]
    UserBooks(UserBooksError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error(
        "processes of the agent could not be ended: {}; end them by hand, then run `ralph run` again",
        .0.join(", ")
    )]
    Survivors(Vec<String>),
    #[error(
        "this `ralph run` was started below processes of the run that it would go on with: {}; \
         start it in a shell of its own",
        .0.join(", ")
    )]
    InsideItself(Vec<String>),
    #[error(
        "the supervisor of the agent was killed from outside, so nobody can tell what of the \
         agent still runs; {LOOK}"
    )]
    SupervisorLost,
    #[error(
        "the run works on `{before}` and HEAD is on `{now}`: `git switch {before}`, or go on here \
         with `--branch {now}`"
    )]
    OtherBranch { before: String, now: String },
    #[error(
        "the backlog was broken for too long, so {story} could not be closed; mend it and run \
         `ralph run` again: the work is kept and will be closed then\n{problem}"
    )]
    BacklogBroken { story: StoryId, problem: String },
}
