//! What an attempt did to things that were not its to change.

use serde::{Deserialize, Serialize};

use crate::model::event::BranchLoss;
use crate::model::id::StoryId;

/// Names are for people; where names of files are not UTF-8, parts of them are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Violation {
    /// Its git was killed in the middle of its work and left these locks.
    Locks { paths: Vec<String> },
    /// It changed the repository's configuration, hooks or rules. `kept` is the folder with its
    /// version of these files.
    Setup { names: Vec<String>, kept: String },
    /// It dropped these stashes.
    Stashes { messages: Vec<String> },
    /// It worked on a branch of its own, which has everything that the run's branch has.
    OtherBranch { on: String },
    /// It lost commits of the run's branch: branch and tree have to go back.
    BranchLost { how: BranchLoss },
    /// It deleted or reset uncommitted files of the user. Where something else is in the place of
    /// one, it is `blocked` and cannot be restored. All of them are `kept` in the snapshot.
    UserFiles { lost: Vec<String>, blocked: Vec<String>, kept: Option<String> },
    /// It changed the human's instructions. `claims`: and ticked `TASK_COMPLETE` in them.
    Instructions { path: String, kept: Option<String>, claims: bool },
    /// It marked stories in the backlog.
    Marks { ids: Vec<StoryId> },
}
