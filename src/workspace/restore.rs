//! Restores files from a snapshot.

use std::path::{Path, PathBuf};

use git2::Tree;

use super::WorkTree;
use super::error::{GitContext, GitError};
use super::kept::SnapshotRef;
use super::tree::{TreeChange, between, path_of};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// The checkpoint taken right before.
    pub checkpoint: SnapshotRef,
    /// Sorted.
    pub files: Vec<PathBuf>,
}

impl WorkTree {
    /// Takes a checkpoint, then restores `paths` (files or folders, relative to the root) from the
    /// snapshot, or without paths everything except `except`. Index and HEAD stay as they are. None
    /// if nothing differs.
    pub fn recall(
        &self,
        kept: &SnapshotRef,
        paths: &[PathBuf],
        except: &[PathBuf],
    ) -> Result<Option<Recalled>, GitError> {
        let then = self.tree_of_kept(kept)?;
        let now = self.repo.find_tree(self.scan()?.tree).doing("read the snapshot")?;
        for path in paths {
            require_known(kept, path, &[&then, &now])?;
        }
        let is_wanted = |change: &TreeChange| match paths {
            [] => !except.contains(&change.path),
            paths => paths.iter().any(|path| change.path.starts_with(path)),
        };
        let mut changes = between(&self.repo, Some(&now), Some(&then))?;
        changes.retain(is_wanted);
        if changes.is_empty() {
            return Ok(None);
        }
        let hidden: Vec<_> = changes.iter().filter(|change| self.is_in_the_way(change)).collect();
        if !hidden.is_empty() {
            let paths = hidden.iter().map(|change| change.path.display().to_string()).collect();
            return Err(GitError::IgnoredInTheWay(paths));
        }
        self.require_writable(&changes)?;
        let checkpoint =
            self.checkpoint(&format!("ralph: before `ralph restore {}`", kept.number))?;
        let files = changes.iter().map(|change| change.path.clone()).collect();
        self.restore_files(&then, changes)?;
        Ok(Some(Recalled { checkpoint, files }))
    }
}

/// A misspelled path must not look like one without changes.
fn require_known(kept: &SnapshotRef, path: &Path, trees: &[&Tree<'_>]) -> Result<(), GitError> {
    let everything = path.as_os_str().is_empty();
    if everything || trees.iter().any(|tree| tree.get_path(path).is_ok()) {
        return Ok(());
    }
    let nearest = trees.first().and_then(|tree| nearest(tree, path));
    Err(GitError::NotInKept { number: kept.number, path: path.display().to_string(), nearest })
}

fn nearest(tree: &Tree<'_>, wanted: &Path) -> Option<String> {
    let wanted = wanted.to_string_lossy();
    let mut best: (f64, Option<String>) = (0.8, None);
    let _ = tree.walk(git2::TreeWalkMode::PreOrder, |folder, entry| {
        let path = path_of(entry.name_bytes());
        let path = format!("{folder}{}", path.display());
        let alike = strsim::jaro_winkler(&path, &wanted);
        if alike > best.0 {
            best = (alike, Some(path));
        }
        git2::TreeWalkResult::Ok
    });
    best.1
}
