//! What an attempt did to things that it must not change.

use serde::{Deserialize, Serialize};

use super::id::StoryId;

/// Names are for people: bytes of file names that are not UTF-8 are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Violation {
    /// Its git was killed while it worked and left these locks.
    Locks { paths: Vec<String> },
    /// It changed the repository's configuration, hooks or rules. `kept` is the folder with its
    /// version of these files.
    Setup { names: Vec<String>, kept: String },
    /// It dropped these stashes.
    Stashes { messages: Vec<String> },
    /// It worked on a branch of its own, which contains the run's branch.
    OtherBranch { on: String },
    /// It lost commits of the run's branch: branch and tree must be rolled back.
    BranchLost { how: BranchLoss },
    /// It deleted or reset uncommitted files of the user. A `blocked` one cannot be restored,
    /// because something else is in its place. All of them are `kept` in the snapshot.
    UserFiles { lost: Vec<String>, blocked: Vec<String>, kept: Option<String> },
    /// It changed the human's instructions. `claims`: it also ticked `TASK_COMPLETE` in them.
    Instructions { path: String, kept: Option<String>, claims: bool },
    /// It marked stories in the backlog.
    Marks { ids: Vec<StoryId> },
}

/// How an agent lost the run's branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchLoss {
    /// HEAD is on a commit that does not build on the run's branch.
    Elsewhere,
    /// The branch no longer contains the story's base.
    Rewritten,
}

/// Why branch and tree are rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Too many failed attempts in a row: the story starts over.
    FreshStart,
    Elsewhere,
    Rewritten,
}

impl From<BranchLoss> for Cause {
    fn from(loss: BranchLoss) -> Self {
        match loss {
            BranchLoss::Elsewhere => Self::Elsewhere,
            BranchLoss::Rewritten => Self::Rewritten,
        }
    }
}
