//! An agent's work beside edits that the user had not committed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use git2::{Commit, Index, MergeOptions, Tree};

use super::WorkTree;
use super::changes::{Entry, between, bytes_of, entry_at};
use super::commit::{Plan, READ_TREE, entry_of};
use super::error::{Doing, GitError};
use super::index::unstatted;
use super::open::unmerged;
use super::staging::LeftOut;
use super::tree_edit::edited;
use crate::core::event::Base;
use crate::core::staging::Objection;

/// A file that had uncommitted edits when the story began, and that was changed since.
struct Shared {
    path: PathBuf,
    /// With the user's edits, before the agent's.
    before: Option<Entry>,
    now: Option<Entry>,
    committed: Option<Entry>,
}

impl WorkTree {
    /// Tracked files that had uncommitted edits when the story began.
    pub fn edited_before(&self, base: &Base) -> Result<Vec<PathBuf>, GitError> {
        let committed = self.committed_at(base)?;
        let tree = self.tree(&base.tree)?;
        let changes = between(&self.repo, committed.as_ref(), Some(&tree))?;
        let tracked = changes.into_iter().filter(|change| change.old.is_some());
        Ok(tracked.map(|change| change.path).collect())
    }

    /// Takes the user's edits out of the commit: what the agent changed in such a file is applied
    /// to what is committed, and a file that was untracked stays so. The files themselves keep
    /// both. `as_it_is`: the whole of a file that was tracked, edits included.
    pub(super) fn keep_the_users_out(
        &self,
        plan: &mut Plan,
        base: &Base,
        parent: Option<&Commit<'_>>,
        as_it_is: bool,
    ) -> Result<(), GitError> {
        let shared = self.shared(plan, base, parent)?;
        let (untracked, tracked): (Vec<_>, Vec<_>) =
            shared.into_iter().partition(|file| file.committed.is_none() && file.before.is_some());
        for file in untracked {
            plan.paths.remove(&file.path);
            plan.left_out.extend(file.now.map(|_| LeftOut::users(file.path)));
        }
        if as_it_is || tracked.is_empty() { Ok(()) } else { self.merge_into(plan, &tracked) }
    }

    fn shared(
        &self,
        plan: &Plan,
        base: &Base,
        parent: Option<&Commit<'_>>,
    ) -> Result<Vec<Shared>, GitError> {
        let known = self.tree(&base.tree)?;
        let committed = self.committed_at(base)?;
        let tip = parent.map(|commit| commit.tree().doing(READ_TREE)).transpose()?;
        let mut shared = Vec::new();
        for (path, now) in &plan.paths {
            let before = entry_at(Some(&known), path)?;
            if before != entry_at(committed.as_ref(), path)? {
                let committed = entry_at(tip.as_ref(), path)?;
                let now = now.as_ref().map(entry_of);
                shared.push(Shared { path: path.clone(), before, now, committed });
            }
        }
        Ok(shared)
    }

    fn merge_into(&self, plan: &mut Plan, files: &[Shared]) -> Result<(), GitError> {
        let commit = self.merged(files, |file| file.committed)?;
        let on_disk = self.fresh_index()?;
        let staged = |file: &Shared| on_disk.get_path(&file.path, 0).map(|entry| entry_of(&entry));
        // What the user staged stays staged, and the agent's change comes to it.
        let index = self.merged(files, staged)?;
        let conflicts: BTreeSet<String> =
            unmerged(&commit)?.into_iter().chain(unmerged(&index)?).collect();
        if !conflicts.is_empty() {
            let over = |path: String| Objection::OverAnEdit { path: PathBuf::from(path) };
            plan.objections.extend(conflicts.into_iter().map(over));
            return Ok(());
        }
        for file in files {
            let entry_in = |index: &Index| {
                let entry = index.get_path(&file.path, 0).map(|entry| entry_of(&entry));
                entry.map(|entry| unstatted(&file.path, entry))
            };
            let entry = entry_in(&commit);
            if entry.as_ref().map(entry_of) == file.committed {
                plan.paths.remove(&file.path);
                continue;
            }
            plan.paths.insert(file.path.clone(), entry);
            if staged(file) != file.committed {
                plan.staged.insert(file.path.clone(), entry_in(&index));
            }
        }
        Ok(())
    }

    /// What the agent changed, applied to another version of the files.
    fn merged(
        &self,
        files: &[Shared],
        version: impl Fn(&Shared) -> Option<Entry>,
    ) -> Result<Index, GitError> {
        let before = self.tree_with(files, |file| file.before)?;
        let ours = self.tree_with(files, version)?;
        let theirs = self.tree_with(files, |file| file.now)?;
        let mut options = MergeOptions::new();
        options.find_renames(false);
        let merged = self.repo.merge_trees(&before, &ours, &theirs, Some(&options));
        merged.doing("merge the agent's changes")
    }

    fn tree_with(
        &self,
        files: &[Shared],
        version: impl Fn(&Shared) -> Option<Entry>,
    ) -> Result<Tree<'_>, GitError> {
        let entries: Vec<_> =
            files.iter().map(|file| (bytes_of(&file.path), version(file))).collect();
        let tree = edited(&self.repo, None, &entries)?;
        self.repo.find_tree(tree).doing(READ_TREE)
    }
}
