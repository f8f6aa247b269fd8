//! What a story contributes to its branch, separated from the user's uncommitted edits in the same
//! files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use git2::{Index, MergeOptions, Oid, Tree};

use crate::decide::staging::Objection;
use crate::model::{Base, DiffStat, LeftOut, WhyLeftOut};

use super::branch::{self, commit_id};
use super::error::{GitContext, GitError};
use super::index::unstatted;
use super::staging::{CollectRequest, Contribution};
use super::tree::{TreeChange, TreeEntry, between, bytes_of, conflicting_paths, edited, entry_at};
use super::{Result, WorkTree};

impl WorkTree {
    /// Everything that changed since the base. Earlier uncommitted changes that did not change
    /// since are left out.
    pub fn collect(&self, request: &CollectRequest<'_>) -> Result<Contribution> {
        let index = self.settled_index()?;
        let mut all = self.changes_since(&index, request)?;
        let is_excluded = |path: &PathBuf| request.except.contains(path);
        all.excluded = all.paths.extract_if(.., |path, _| is_excluded(path)).collect();
        self.leave_ignored_out(&mut all, request.base)?;
        all.replaces = self.unclean_commits(&all, request)?;
        if all.replaces.is_some() {
            all.on = all.began;
        }
        self.leave_repositories_out(&mut all, request.base)?;
        self.separate_edits(&mut all, request)?;
        self.leave_out(&mut all, request)?;
        self.unstage_replaced(&mut all, request.base)?;
        if request.must_change && !self.has_changes(&all, request)? {
            return Err(GitError::NothingChanged);
        }
        if !request.as_it_is {
            self.require_fit(&mut all, request)?;
        }
        Ok(all)
    }

    /// No changes: for a commit of replaced files only.
    pub fn collect_nothing(&self) -> Result<Contribution> {
        self.settled_index()?;
        let on = branch::tip(&self.repo)?.commit;
        Ok(Contribution { root: self.root.clone(), on, began: on, ..Contribution::default() })
    }

    fn changes_since(&self, index: &Index, request: &CollectRequest<'_>) -> Result<Contribution> {
        let base = request.base;
        let mut scan = self.scan()?;
        let base_tree = self.tree(&base.tree)?;
        let now = match request.checked {
            Some(checked) => self.tree(&checked.tree)?,
            None => self.repo.find_tree(scan.tree).doing("read the snapshot")?,
        };
        let changes = between(&self.repo, Some(&base_tree), Some(&now))?;
        let mut paths: BTreeSet<PathBuf> = changes.into_iter().map(|change| change.path).collect();
        paths.extend(self.changed_by_commits(base, scan.head)?);
        let is_on_disk = now.id() == scan.tree;
        let entry = |path: PathBuf| {
            let found = match scan.found.remove(&path) {
                _ if !is_on_disk => entry_at(Some(&now), &path)?.map(|e| unstatted(&path, e)),
                Some(found) => found,
                None => index.get_path(&path, 0),
            };
            Ok((path, found))
        };
        let paths: Result<_> = paths.into_iter().map(entry).collect();
        let left_out = |why| move |path: PathBuf| LeftOut::new(&path, 1, why);
        let nested = scan.nested.into_iter().map(left_out(WhyLeftOut::Repository));
        let large = scan.large.into_iter().map(left_out(WhyLeftOut::Size));
        Ok(Contribution {
            root: self.root.clone(),
            on: scan.head,
            began: commit_id(base)?,
            paths: paths?,
            left_out: nested.chain(large).collect(),
            ignored: scan.beside,
            work_tree: Some(scan.tree),
            ..Contribution::default()
        })
    }

    /// Paths that the agent committed and that were clean at the base. Their current content is the
    /// agent's work, even if it equals the base.
    fn changed_by_commits(&self, base: &Base, on: Option<Oid>) -> Result<Vec<PathBuf>> {
        let base_tree = self.tree(&base.tree)?;
        let (old, new) = (self.committed_at(base)?, self.tree_at(on)?);
        let mut paths = Vec::new();
        for change in between(&self.repo, old.as_ref(), new.as_ref())? {
            if entry_at(Some(&base_tree), &change.path)? == change.old {
                paths.push(change.path);
            }
        }
        Ok(paths)
    }

    /// Everything since the base, the agent's own commits included.
    fn changes_in(&self, all: &Contribution, base: &Base) -> Result<Vec<TreeChange>> {
        let (committed, on) = (self.committed_at(base)?, self.tree_at(all.on)?);
        let own = between(&self.repo, committed.as_ref(), on.as_ref())?;
        let mut changes: Vec<_> =
            own.into_iter().filter(|change| !all.paths.contains_key(&change.path)).collect();
        for (path, entry) in &all.paths {
            let old = entry_at(committed.as_ref(), path)?;
            let new = entry.as_ref().map(TreeEntry::from);
            changes.push(TreeChange { path: path.clone(), old, new });
        }
        changes.retain(|change| change.old != change.new);
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    /// How much a story changed since its base, except for some files.
    pub fn stat_of(&self, all: &Contribution, base: &Base, except: &[PathBuf]) -> Result<DiffStat> {
        self.stat_of_changes(self.changes_in(all, base)?, except)
    }

    /// A commit of the agent's may be empty, and a later one or the tree may cancel it.
    fn has_changes(&self, all: &Contribution, request: &CollectRequest<'_>) -> Result<bool> {
        if all.paths.is_empty() {
            return Ok(false);
        }
        let mut changes = self.changes_in(all, request.base)?;
        changes.retain(|change| !request.except.contains(&change.path));
        if let Some(counted) = request.counted {
            let now = request.checked.map(|checked| self.tree(&checked.tree));
            let now = now.unwrap_or_else(|| self.tree_now())?;
            let work = between(&self.repo, Some(&self.tree(&counted.tree)?), Some(&now))?;
            changes.retain(|change| work.iter().any(|one| one.path == change.path));
        }
        Ok(!changes.is_empty())
    }

    /// Reports all objections at once: the human can only accept objections that were shown.
    fn require_fit(&self, all: &mut Contribution, request: &CollectRequest<'_>) -> Result<()> {
        let mut objections = std::mem::take(&mut all.objections);
        if let Some(staging) = request.staging {
            let mut changes = self.changes_in(all, request.base)?;
            changes.retain(|change| !request.except.contains(&change.path));
            let committed = self.committed_at(request.base)?;
            objections.extend(self.objections(staging, committed.as_ref(), changes)?);
        }
        if objections.is_empty() { Ok(()) } else { Err(GitError::Unfit(objections)) }
    }
}

/// A file that had uncommitted edits when the story began, and that was changed since.
pub(super) struct Shared {
    pub path: PathBuf,
    /// With the user's edits, before the agent's.
    pub before: Option<TreeEntry>,
    pub now: Option<TreeEntry>,
    pub committed: Option<TreeEntry>,
}

impl WorkTree {
    /// Tracked files that had uncommitted edits when the story began.
    pub fn edited_before(&self, base: &Base) -> Result<Vec<PathBuf>> {
        let changes = self.uncommitted_at(base)?.into_iter();
        Ok(changes.filter(|change| change.old.is_some()).map(|change| change.path).collect())
    }

    pub(super) fn uncommitted_at(&self, base: &Base) -> Result<Vec<TreeChange>> {
        let committed = self.committed_at(base)?;
        between(&self.repo, committed.as_ref(), Some(&self.tree(&base.tree)?))
    }

    /// Removes the user's edits from the commit: the agent's changes are applied to the committed
    /// version, and untracked files stay untracked. The files on disk keep both. `as_it_is`: commit
    /// whole tracked files, with the edits.
    fn separate_edits(&self, all: &mut Contribution, request: &CollectRequest<'_>) -> Result<()> {
        let shared = self.shared(all, request.base)?;
        let (untracked, tracked): (Vec<_>, Vec<_>) =
            shared.into_iter().partition(|file| file.committed.is_none() && file.before.is_some());
        for file in untracked {
            all.paths.remove(&file.path);
            all.left_out.extend(file.now.map(|_| LeftOut::new(&file.path, 1, WhyLeftOut::Users)));
        }
        if request.as_it_is || tracked.is_empty() { Ok(()) } else { self.merge_into(all, &tracked) }
    }

    fn shared(&self, all: &Contribution, base: &Base) -> Result<Vec<Shared>> {
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

    fn merge_into(&self, all: &mut Contribution, files: &[Shared]) -> Result<()> {
        let commit = self.merged(files, |file| file.committed)?;
        let on_disk = self.fresh_index()?;
        let is_replaced = all.replaces.is_some();
        let staged = |file: &Shared| match is_replaced {
            // Staged by the agent, for its own commits.
            true => file.committed,
            false => Some(TreeEntry::from(&on_disk.get_path(&file.path, 0)?)),
        };
        // The user's staged changes stay staged, with the agent's changes added.
        let index = self.merged(files, staged)?;
        let conflicts: BTreeSet<String> =
            conflicting_paths(&commit)?.into_iter().chain(conflicting_paths(&index)?).collect();
        if !conflicts.is_empty() {
            let over = |path: String| Objection::OverAnEdit { path: PathBuf::from(path) };
            all.objections.extend(conflicts.into_iter().map(over));
            return Ok(());
        }
        for file in files {
            let entry_in = |index: &Index| {
                let entry = index.get_path(&file.path, 0)?;
                Some(unstatted(&file.path, TreeEntry::from(&entry)))
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

    /// What changed from before to now, applied to another version of the files.
    pub(super) fn merged(
        &self,
        files: &[Shared],
        version: impl Fn(&Shared) -> Option<TreeEntry>,
    ) -> Result<Index> {
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
    ) -> Result<Tree<'_>> {
        let entries = files.iter().map(|file| (bytes_of(&file.path), version(file)));
        let tree = edited(&self.repo, None, &entries.collect::<Vec<_>>())?;
        self.repo.find_tree(tree).doing("read a tree")
    }
}
