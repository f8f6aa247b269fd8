//! Whether an agent that runs makes progress.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::model::Base;
use crate::runner::error::Result;
use crate::workspace::WorkTree;

/// What a running agent changed.
pub struct AgentProgress {
    /// The tree at the last scan.
    seen: Mutex<Base>,
    backlog: Option<PathBuf>,
}

impl AgentProgress {
    pub fn new(before: Base, backlog: Option<PathBuf>) -> Self {
        Self { seen: Mutex::new(before), backlog }
    }

    /// Since the last scan. A mark in the backlog may be the human's or the run's.
    pub fn look(&self, tree: &WorkTree) -> Result<bool> {
        let now = tree.base()?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *seen, now);
        let difference = tree.difference(&before, &seen)?;
        let is_work = |path: &PathBuf| Some(path) != self.backlog.as_ref();
        Ok(difference.committed || difference.paths.iter().any(is_work))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_mark_is_no_progress_and_any_other_change_is() {
        let folder = tempfile::tempdir().unwrap();
        let repo = git2::Repository::init(folder.path()).unwrap();
        let tree = WorkTree::open(folder.path()).unwrap();
        let progress = AgentProgress::new(tree.base().unwrap(), Some("PRD.json".into()));
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert!(!progress.look(&tree).unwrap());
        write("PRD.json", "marked");
        assert!(!progress.look(&tree).unwrap());
        write("a.rs", "work");
        assert!(progress.look(&tree).unwrap());
        assert!(!progress.look(&tree).unwrap(), "nothing since then");
        let who = git2::Signature::now("T", "t@example.org").unwrap();
        let empty = repo.treebuilder(None).unwrap().write().unwrap();
        let empty = repo.find_tree(empty).unwrap();
        repo.commit(Some("HEAD"), &who, &who, "its own", &empty, &[]).unwrap();
        assert!(progress.look(&tree).unwrap());
    }
}
