//! The close of a story, and how much it changed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::id::StoryId;

/// The size of a difference; lines of binary and very large files are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffStat {
    pub files: usize,
    pub added: usize,
    pub removed: usize,
}

impl fmt::Display for DiffStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = if self.files == 1 { "file" } else { "files" };
        write!(f, "{} {files}, +{} -{}", self.files, self.added, self.removed)
    }
}

/// What closed a story, from its base to its commit. The backlog does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoryChange {
    #[serde(flatten)]
    pub stat: DiffStat,
    /// The gate that failed before and passes now, if nothing changed.
    #[serde(default)]
    pub turned_green: Option<String>,
}

impl StoryChange {
    pub fn new(stat: DiffStat, turned_green: Option<String>) -> Self {
        Self { stat, turned_green: turned_green.filter(|_| stat.files == 0) }
    }
}

impl fmt::Display for StoryChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.turned_green {
            _ if self.stat.files > 0 => self.stat.fmt(f),
            Some(gate) => write!(f, "no change; `{gate}` turned green"),
            None => f.write_str("no change"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoryClosed {
    pub attempt: String,
    pub story: StoryId,
    pub commit: String,
    /// None: an earlier version closed it.
    #[serde(default)]
    pub change: Option<StoryChange>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_in_words() {
        let stat = |files, added, removed| DiffStat { files, added, removed };
        let gate = || Some("cargo test".to_owned());
        for (stat, turned_green, words) in [
            (stat(3, 40, 2), None, "3 files, +40 -2"),
            (stat(1, 0, 0), gate(), "1 file, +0 -0"),
            (stat(0, 0, 0), gate(), "no change; `cargo test` turned green"),
            (stat(0, 0, 0), None, "no change"),
        ] {
            assert_eq!(StoryChange::new(stat, turned_green).to_string(), words);
        }
    }
}
