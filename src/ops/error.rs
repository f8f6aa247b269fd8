//! Why a command failed, with its exit code.

use crate::files::ReadError;
use crate::mock::ScriptError;
use crate::model::StoryId;
use crate::runner::RunnerError;
use crate::settings::SettingsError;
use crate::workspace::GitError;

pub type Result<T, E = CommandError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Of the repository, the store, the backlog or the agent, in a run or before it.
    #[error(transparent)]
    Runner(RunnerError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error("cannot read the instructions `{path}`: {source}")]
    Prompt { path: String, source: ReadError },
    #[error("HEAD is detached; use `--branch NAME` to create a branch here")]
    Detached,
    #[error(
        "tracked files have uncommitted edits:\n  {}\ncommit or stash them, or run with \
         `--allow-dirty` to keep them out of the commits", .0.join("\n  ")
    )]
    Uncommitted(Vec<String>),
    #[error("no story `{story}` in the backlog{}", hint(.nearest.as_ref()))]
    NoSuchStory { story: StoryId, nearest: Option<StoryId> },
    #[error("`{0}` is neither a number from `ralph log` nor a story id")]
    NeitherNumberNorStory(String),
    #[error("there is no work on {0} yet")]
    NothingOf(StoryId),
    #[error("{0} is not closed, so there is nothing to revert")]
    NotClosed(StoryId),
    #[error(
        "this branch has no commit of {0}; if you marked it by hand, reopen it with \
         `ralph mark {0} fail`"
    )]
    NoCommitOf(StoryId),
    #[error("{0}")]
    Refused(String),
    #[error("no run is active in this work tree; start one with `ralph run`")]
    NoRun,
    #[error("{0} is not available to agents")]
    NotForAgents(String),
    #[error(
        "the record of git's setup before the interrupted attempt is gone or was changed, so an agent may \
         have changed the setup:\n{0}\ncheck it, and run `ralph run` in a terminal to confirm it"
    )]
    UnknownSetup(String),
    #[error(
        "ralph's journal is lost, so these changes of what gates run may be an agent's:\n{0}\nundo them, or \
         run `ralph run` in a terminal to confirm that they are yours"
    )]
    UnknownGates(String),
    #[error(
        "`.ralph` has files of earlier runs, but their journal and snapshots are gone, so nothing says \
         what here is an agent's work\ncheck the files and the commits, and run `ralph run` in a terminal \
         to confirm them, or delete `.ralph`"
    )]
    UnknownRuns,
    #[error("not approved; change the files, or approve them with `ralph trust`")]
    NotTrusted,
    #[error(
        "fewer than {needed} more files can be open at a time ({source}); raise the limit with \
         `ulimit -n 1024`"
    )]
    FewDescriptors { needed: usize, source: std::io::Error },
    /// The reader of standard output is gone; not an error.
    #[error("standard output was closed")]
    Pipe,
    /// A signal or Ctrl-C ended a question.
    #[error("interrupted")]
    Interrupted { signal: i32 },
}

fn hint(nearest: Option<&StoryId>) -> String {
    nearest.map(|id| format!("; did you mean `{id}`?")).unwrap_or_default()
}

impl<E> From<E> for CommandError
where
    RunnerError: From<E>,
{
    fn from(error: E) -> Self {
        Self::Runner(error.into())
    }
}

impl CommandError {
    /// The journal is damaged.
    /// Another run has the lease.
    pub fn is_held_lease(&self) -> bool {
        matches!(self, Self::Runner(RunnerError::Store(error)) if error.is_held())
    }

    pub fn is_damaged_journal(&self) -> bool {
        matches!(self, Self::Runner(RunnerError::Store(error)) if error.is_damage())
    }

    /// No message is needed.
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::Pipe | Self::Interrupted { .. })
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Pipe => 0,
            Self::Interrupted { signal } => exit_code_of(*signal),
            Self::Settings(SettingsError::Usage(_))
            | Self::NoSuchStory { .. }
            | Self::NeitherNumberNorStory(_)
            | Self::Refused(_)
            | Self::Runner(RunnerError::Git(
                GitError::BadBranchName(_)
                | GitError::NoSuchNumber { .. }
                | GitError::NotInSnapshot { .. },
            )) => 2,
            _ => 1,
        }
    }
}

/// As in shells.
pub fn exit_code_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(1)
}
