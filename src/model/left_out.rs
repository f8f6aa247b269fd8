//! What changed and is in no commit.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Something in the work tree that changed and was not committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub path: String,
    /// The number of files, if it is a folder.
    pub files: usize,
    pub why: WhyLeftOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyLeftOut {
    /// It is larger than 1 GiB.
    Size,
    /// It is a nested repository.
    Repository,
    /// Its name matches `never_commit`.
    Name,
    /// It is the user's and was untracked when the story began.
    Users,
    /// Git ignored it when the story began.
    Ignored,
    /// It needs an external git filter.
    Filter,
}

impl LeftOut {
    pub fn new(path: &Path, files: usize, why: WhyLeftOut) -> Self {
        Self { path: path.to_string_lossy().into_owned(), files, why }
    }
}
