//! Separates an agent's work from the user's uncommitted edits in the same files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use git2::{Index, MergeOptions, Tree};

use crate::decide::staging::Objection;
use crate::model::Base;

use super::WorkTree;
use super::error::{GitContext, GitError};
use super::index::unstatted;
use super::merge::unmerged;
use super::staging::{Contribution, LeftOut};
use super::tree::{TreeEntry, between, bytes_of, edited, entry_at};

/// A file that had uncommitted edits when the story began, and that was changed since.
struct Shared {
    path: PathBuf,
    /// With the user's edits, before the agent's.
    before: Option<TreeEntry>,
    now: Option<TreeEntry>,
    committed: Option<TreeEntry>,
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

    /// Removes the user's edits from the commit: the agent's changes are applied to the committed
    /// version, and untracked files stay untracked. The files on disk keep both. `as_it_is`: commit
    /// whole tracked files, with the edits.
    pub(super) fn separate_user_edits(
        &self,
        all: &mut Contribution,
        base: &Base,
        as_it_is: bool,
    ) -> Result<(), GitError> {
        let shared = self.shared(all, base)?;
        let (untracked, tracked): (Vec<_>, Vec<_>) =
            shared.into_iter().partition(|file| file.committed.is_none() && file.before.is_some());
        for file in untracked {
            all.paths.remove(&file.path);
            all.left_out.extend(file.now.map(|_| LeftOut::users(file.path)));
        }
        if as_it_is || tracked.is_empty() { Ok(()) } else { self.merge_into(all, &tracked) }
    }

    fn shared(&self, all: &Contribution, base: &Base) -> Result<Vec<Shared>, GitError> {
        let known = self.tree(&base.tree)?;
        let committed = self.committed_at(base)?;
        if committed.as_ref().map(Tree::id) == Some(known.id()) {
            return Ok(Vec::new());
        }
        let tip = self.tree_at(all.on)?;
        let mut shared = Vec::new();
        for (path, now) in &all.paths {
            let before = entry_at(Some(&known), path)?;
            if before != entry_at(committed.as_ref(), path)? {
                let committed = entry_at(tip.as_ref(), path)?;
                let now = now.as_ref().map(TreeEntry::from);
                shared.push(Shared { path: path.clone(), before, now, committed });
            }
        }
        Ok(shared)
    }

    fn merge_into(&self, all: &mut Contribution, files: &[Shared]) -> Result<(), GitError> {
        let commit = self.merged(files, |file| file.committed)?;
        let on_disk = self.fresh_index()?;
        let staged =
            |file: &Shared| on_disk.get_path(&file.path, 0).map(|entry| TreeEntry::from(&entry));
        // The user's staged changes stay staged, with the agent's changes added.
        let index = self.merged(files, staged)?;
        let conflicts: BTreeSet<String> =
            unmerged(&commit)?.into_iter().chain(unmerged(&index)?).collect();
        if !conflicts.is_empty() {
            let over = |path: String| Objection::OverAnEdit { path: PathBuf::from(path) };
            all.objections.extend(conflicts.into_iter().map(over));
            return Ok(());
        }
        for file in files {
            let entry_in = |index: &Index| {
                let entry = index.get_path(&file.path, 0).map(|entry| TreeEntry::from(&entry));
                entry.map(|entry| unstatted(&file.path, entry))
            };
            let entry = entry_in(&commit);
            if entry.as_ref().map(TreeEntry::from) == file.committed {
                all.paths.remove(&file.path);
                continue;
            }
            all.paths.insert(file.path.clone(), entry);
            if staged(file) != file.committed {
                all.staged.insert(file.path.clone(), entry_in(&index));
            }
        }
        Ok(())
    }

    /// What the agent changed, applied to another version of the files.
    fn merged(
        &self,
        files: &[Shared],
        version: impl Fn(&Shared) -> Option<TreeEntry>,
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
        version: impl Fn(&Shared) -> Option<TreeEntry>,
    ) -> Result<Tree<'_>, GitError> {
        let entries: Vec<_> =
            files.iter().map(|file| (bytes_of(&file.path), version(file))).collect();
        let tree = edited(&self.repo, None, &entries)?;
        self.repo.find_tree(tree).doing("read a tree")
    }
}
