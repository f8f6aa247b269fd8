//! Why a command failed, with its exit code.

use std::io;

use crate::core::id::StoryId;
use crate::engine::EngineError;
use crate::git::GitError;
use crate::mock::ScriptError;
use crate::settings::{FileError, PlanError};
use crate::store::journal::JournalError;
use crate::store::lock::LockError;
use crate::store::prd::{EditError, LoadError, WriteError};
use crate::store::room::RoomError;

#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Backlog(#[from] LoadError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Settings(#[from] FileError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the prompt `{path}` cannot be read: {source}")]
    Prompt { path: String, source: io::Error },
    #[error(
        "HEAD is detached: commits would belong to no branch. `--branch NAME` works on a branch \
         made from here"
    )]
    Detached,
    #[error(
        "tracked files have uncommitted edits:\n{}\ncommit or stash them, or run with \
         `--allow-dirty`: they stay in place and out of the commits", .0.join("\n")
    )]
    Uncommitted(Vec<String>),
    #[error("there is no story `{story}` in the backlog{}", hint(.nearest.as_ref()))]
    NoSuchStory { story: StoryId, nearest: Option<StoryId> },
    #[error(
        "Claude Code refuses `bypassPermissions` as root; where this is a sandbox (container or \
         VM), `IS_SANDBOX=1` in the environment says so, else choose another mode"
    )]
    RootWithoutSandbox,
    #[error("`{0}` is neither a number of `ralph log` nor a story's id")]
    NeitherNumberNorStory(String),
    #[error("nothing was done for {0} yet")]
    NothingOf(StoryId),
    #[error(
        "{0} is not closed: `passes` is false in the backlog, so there is nothing to take back"
    )]
    NotClosed(StoryId),
    #[error(
        "no commit of {0} is in this branch's history, so it was marked by hand: set `passes` to \
         false in the backlog to reopen it"
    )]
    NoCommitOf(StoryId),
    #[error("{0}")]
    Refused(String),
    #[error("no run works in this work tree, so no agent would hear it; `ralph run` begins one")]
    NoRun,
    #[error("{0} is for the human, not for an agent")]
    NotForAgents(String),
    #[error(
        "files of this repository name commands, or what the agent may do, that you have not \
         accepted:\n{0}\n`ralph trust` shows them and asks; `--trust` accepts them where nobody can \
         be asked"
    )]
    Untrusted(String),
    #[error("nothing was run: change the files, or accept them with `ralph trust`")]
    NotTrusted,
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Whoever read the output has gone; that is nobody's fault.
    #[error("standard output was closed")]
    Pipe,
}

fn hint(nearest: Option<&StoryId>) -> String {
    nearest.map(|id| format!("; did you mean `{id}`?")).unwrap_or_default()
}

impl CliError {
    /// The journal's bytes are not what was written.
    pub fn is_damaged_journal(&self) -> bool {
        matches!(
            self,
            Self::Journal(JournalError::Damaged(_))
                | Self::Engine(EngineError::Journal(JournalError::Damaged(_)))
        )
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Plan(error) if error.is_usage() => 2,
            Self::NoSuchStory { .. } | Self::Refused(_) => 2,
            Self::NeitherNumberNorStory(_) => 2,
            Self::Git(
                GitError::BadBranchName(_)
                | GitError::NoSuchNumber { .. }
                | GitError::NotInKept { .. },
            ) => 2,
            _ => 1,
        }
    }
}
