//! An agent's own commits that could not stay on the branch.

use serde::{Deserialize, Serialize};

use super::id::StoryId;

/// One commit of the story's work is in their place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitsReplaced {
    pub story: StoryId,
    /// How many there were.
    pub commits: usize,
    pub unclean: Vec<Unclean>,
    /// The ref that has them, except those with secrets.
    pub kept: Option<String>,
}

impl CommitsReplaced {
    pub fn has_secret(&self) -> bool {
        self.unclean.iter().any(|one| one.why == WhyUnclean::Secret)
    }
}

/// What some of them had, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unclean {
    pub why: WhyUnclean,
    /// The first file; empty for a commit's message.
    pub path: String,
    /// The number of files.
    pub files: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyUnclean {
    /// The user's untracked files, or uncommitted edits.
    Users,
    Secret,
    /// Changes that were held or put back, and not accepted.
    Held,
    /// Larger than `max_file_size`.
    TooLarge,
    /// Nested repositories.
    Repository,
    /// Their names match `never_commit`.
    Name,
}
