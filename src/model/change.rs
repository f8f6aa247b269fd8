//! Changes that could be meant, and wait outside the work tree for the human's decision.

use serde::{Deserialize, Serialize};

/// A change of something that decides what counts as done. The earlier version is in the tree.
/// Names are for people: bytes of file names that are not UTF-8 are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldChange {
    pub of: ChangeKind,
    /// In the work tree; of a backlog elsewhere, its own path.
    pub path: String,
    /// One line: what changed.
    pub what: String,
    /// For people, redacted.
    pub diff: String,
    /// Copies of both versions, below the work tree's root or absolute. None: there was no file.
    pub before: Option<String>,
    pub changed: Option<String>,
    /// Of the changed version, as git counts it: the copy could be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// PRD.json: criteria, gates, markers, ids, order.
    Backlog,
    /// A file that decides what gates or agents run.
    File,
}

/// The backlog file. Its marks do not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BacklogText {
    /// None: an earlier version found it too large for the journal.
    pub text: Option<String>,
    /// Where it was looked for, whatever is there now.
    #[serde(default)]
    pub path: String,
    /// Where its path leads, if that is a symlink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}
