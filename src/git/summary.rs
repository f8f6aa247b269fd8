//! What a story changed so far, file by file, in a few words.

use git2::{DiffOptions, Patch, Tree};

use super::WorkTree;
use super::changes::path_of;
use super::error::{Doing, GitError};
use crate::core::event::Base;
use crate::core::handoff::{Changes, FileChange};

/// Files that are named.
const MOST: usize = 20;
/// In bytes: lines of larger files are not counted.
const LARGEST: i64 = 10_000_000;

impl WorkTree {
    /// From one state of the work tree to another.
    pub fn summary(&self, from: &Base, to: &Base) -> Result<Changes, GitError> {
        if from.tree == to.tree {
            return Ok(Changes::default());
        }
        self.summary_between(Some(&self.tree(&from.tree)?), &self.tree(&to.tree)?)
    }

    /// Of work that is kept at a ref.
    pub fn summary_of(&self, reference: &str) -> Result<Changes, GitError> {
        let kept = self.kept()?.into_iter().find(|kept| kept.reference == reference);
        let Some(kept) = kept else { return Ok(Changes::default()) };
        let (old, new) = self.sides(&kept)?;
        self.summary_between(old.as_ref(), &new)
    }

    fn summary_between(&self, old: Option<&Tree<'_>>, new: &Tree<'_>) -> Result<Changes, GitError> {
        let mut options = DiffOptions::new();
        options.max_size(LARGEST);
        let diff = self.repo.diff_tree_to_tree(old, Some(new), Some(&mut options));
        let diff = diff.doing("compare trees")?;
        let mut files = Vec::new();
        for (at, delta) in diff.deltas().enumerate().take(MOST) {
            let file = delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes());
            let path = path_of(file.unwrap_or_default()).to_string_lossy().into_owned();
            let patch = Patch::from_diff(&diff, at).doing("compare a file")?;
            let stats = patch.map(|patch| patch.line_stats()).transpose().doing("count lines")?;
            let (_, added, removed) = stats.unwrap_or_default();
            files.push(FileChange { path, added, removed });
        }
        Ok(Changes { files, more: diff.deltas().len().saturating_sub(MOST) })
    }
}

/// As `git hash-object` makes it.
pub fn hash(bytes: &[u8]) -> Option<String> {
    let id = git2::Oid::hash_object(git2::ObjectType::Blob, bytes).ok()?;
    Some(id.to_string())
}
