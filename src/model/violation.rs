//! What untrusted code changed that it must leave alone.

use serde::{Deserialize, Serialize};

use super::attempt::BranchLoss;

/// What ran between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Untrusted {
    Attempt,
    /// The gates of a claim.
    Gates,
    /// The gates before any work.
    Baseline,
}

/// What a held file decides about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldKind {
    /// Git's configuration, hooks and rules, and where a linked work tree points.
    GitSetup,
    /// PROMPT.md, its absence too.
    Instructions,
    /// ralph.toml.
    Settings,
    /// Files with which an agent configures itself, and that can run or redirect something.
    AgentSettings,
    /// Scripts of gates that git ignores, so that no difference shows what an attempt did to them.
    GateScripts,
}

/// Names are for people: bytes of file names that are not UTF-8 are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Violation {
    /// A git was killed while it worked and left these locks.
    Locks { paths: Vec<String> },
    /// Held files changed. `kept` is the folder with the other version of them. `claims`:
    /// `TASK_COMPLETE` was ticked in the instructions.
    Held {
        whose: HeldKind,
        paths: Vec<String>,
        kept: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        claims: bool,
    },
    /// Stashes were dropped, and came back. `new` ones appeared, and stay.
    Stashes {
        messages: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        new: Vec<String>,
    },
    /// The index lacks these files, or has other versions of the user's. Without paths: it was gone
    /// or could not be used.
    Index { paths: Vec<String> },
    /// Branches, tags or other refs were deleted, moved or planted: the first `names` of `count`. The
    /// objects of the `lost` ones are gone. `kept` is the folder of refs to what was there instead.
    Refs { names: Vec<String>, count: usize, lost: Vec<String>, kept: Option<String> },
    /// HEAD is on another branch, which contains the run's branch.
    OtherBranch { on: String },
    /// Commits of the run's branch are lost: branch and tree must be rolled back.
    BranchLost { how: BranchLoss },
    /// Uncommitted files of the user were deleted or reset, or something else was put in their place. A
    /// `blocked` one cannot be restored, because what is there cannot be read. All of them are `kept` in the snapshot.
    UserFiles {
        lost: Vec<String>,
        blocked: Vec<String>,
        /// Untracked ones with other content: they stay as they are.
        #[serde(default)]
        changed: Vec<String>,
        kept: Option<String>,
    },
    /// Files of the user that people write by hand and no commit has were changed. Those with
    /// passwords and keys were `restored`, and what they became is in the folder `kept`; others stay
    /// `changed`, and their earlier versions are in the folder `copies`.
    PrivateFiles { restored: Vec<String>, kept: String, changed: Vec<String>, copies: String },
    /// Ignored files of the user were deleted or emptied, or are no files any more: the first `lost` of
    /// `count` were restored, without those that were named before. A `blocked` one was not, because
    /// something else is in its place, or its copy is gone. Copies of all are in the folder `kept`.
    IgnoredFiles { lost: Vec<String>, count: usize, blocked: Vec<String>, kept: String },
    /// Gates wrote these files. The `kept` snapshot has what they wrote. A `blocked` one stays as it
    /// is, because it cannot be written safely.
    Written { paths: Vec<String>, blocked: Vec<String>, kept: Option<String> },
}
