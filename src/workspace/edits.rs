//! What the user changed while no run was active and a story's unfinished work was in the tree.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::model::Base;

use super::collect::Shared;
use super::tree::{TreeChange, TreeEntry, between, conflicting_paths, entry_at, with_changes};
use super::{Result, WorkTree, branch};

/// Keeps the tree that a process left from `git gc`; each work tree has its own.
const HELD_LEFT: &str = "refs/worktree/ralph/left";

/// The user's changes since a recorded state of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserEdits {
    /// Uncommitted changes of files that git or the story knew.
    pub edited: Vec<PathBuf>,
    /// New files.
    pub untracked: Vec<PathBuf>,
    /// Edits that cannot be told from the story's own changes in the same files.
    pub mixed: Vec<PathBuf>,
    /// A base with the changes, except mixed ones: measured from it, they are not the story's.
    pub tree: String,
}

impl WorkTree {
    /// The tree that this process leaves, on the run's branch. The next process finds it again.
    pub fn leave(&self) -> Result<Base> {
        self.require_own_branch()?;
        let left = self.base()?;
        let commit = self.commit_of_base(&left, "ralph: the work tree as a run left it")?;
        self.set_ref(HELD_LEFT, commit, "ralph", "store the work tree as it is")?;
        Ok(left)
    }

    /// `base` is on top of the current branch tip. Files in `except` are the user's anyway: nobody
    /// is told about them.
    pub fn edits_since(&self, left: &Base, base: &Base, except: &[PathBuf]) -> Result<UserEdits> {
        let (then, now) = (self.tree(&left.tree)?, self.tree_now()?);
        let head = self.tree_at(branch::tip(&self.repo)?.commit)?;
        let known = self.tree(&base.tree)?;
        let mut found = UserEdits::default();
        let (mut changes, mut shared) = (Vec::new(), Vec::new());
        for TreeChange { path, old, new } in between(&self.repo, Some(&then), Some(&now))? {
            let committed = entry_at(head.as_ref(), &path)?;
            let is_edit = new != committed && !except.contains(&path);
            if is_edit && old.is_none() && committed.is_none() {
                found.untracked.push(path.clone());
            } else if is_edit {
                found.edited.push(path.clone());
            }
            let before = entry_at(Some(&known), &path)?;
            if before == old || !is_edit || new.is_none() {
                changes.push(TreeChange { path, old: before, new });
            } else if before != new {
                shared.push(Shared { path, before: old, now: new, committed: before });
            }
        }
        found.mixed = self.merge_edits(&shared, &mut changes)?;
        found.tree = with_changes(&self.repo, &known, &changes)?.id().to_string();
        Ok(found)
    }

    /// Returns the files whose edits conflict with the story's changes.
    fn merge_edits(&self, files: &[Shared], changes: &mut Vec<TreeChange>) -> Result<Vec<PathBuf>> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let merged = self.merged(files, |file| file.committed)?;
        let conflicts: BTreeSet<String> = conflicting_paths(&merged)?.into_iter().collect();
        let mut mixed = Vec::new();
        for Shared { path, committed, .. } in files {
            if conflicts.contains(path.to_string_lossy().as_ref()) {
                mixed.push(path.clone());
                continue;
            }
            let new = merged.get_path(path, 0).map(|entry| TreeEntry::from(&entry));
            changes.push(TreeChange { path: path.clone(), old: *committed, new });
        }
        Ok(mixed)
    }
}
