//! What a story contributes to its branch.

use std::collections::BTreeSet;
use std::path::PathBuf;

use git2::{Index, Oid, Tree};

use crate::model::Base;

use super::base::commit_id;
use super::error::{GitContext, GitError};
use super::staging::{Contribution, LeftOut, Staging};
use super::tree::{TreeChange, TreeEntry, between, entry_at};
use super::{WorkTree, branch};

pub struct CollectRequest<'a> {
    pub base: &'a Base,
    /// Fail if there is nothing to commit.
    pub must_change: bool,
    /// Files, relative to the root, that are not the story's to change.
    pub except: &'a [PathBuf],
    /// What may be committed; None: everything.
    pub staging: Option<Staging<'a>>,
    /// The human saw the objections and accepted them.
    pub as_it_is: bool,
}

impl WorkTree {
    /// Everything that changed since the base. Earlier uncommitted changes that did not change
    /// since are left out.
    pub fn collect(&self, request: &CollectRequest<'_>) -> Result<Contribution, GitError> {
        let index = self.settled_index()?;
        let mut all = self.changed_files(&index, request.base)?;
        let is_excluded = |path: &PathBuf| request.except.contains(path);
        all.excluded = all.paths.extract_if(.., |path, _| is_excluded(path)).collect();
        self.separate_user_edits(&mut all, request.base, request.as_it_is)?;
        self.leave_out(&mut all, request.base, request.staging, request.as_it_is)?;
        let has_commits = request.base.commit != all.on.map(|id| id.to_string());
        if request.must_change && !has_commits && all.paths.is_empty() {
            return Err(GitError::NothingChanged);
        }
        if !request.as_it_is {
            self.require_acceptable(&mut all, request)?;
        }
        Ok(all)
    }

    /// No changes: for a commit of replaced files only.
    pub fn collect_nothing(&self) -> Result<Contribution, GitError> {
        self.settled_index()?;
        let on = branch::tip(&self.repo)?.commit;
        Ok(Contribution { root: self.root.clone(), on, began: on, ..Contribution::default() })
    }

    fn changed_files(&self, index: &Index, base: &Base) -> Result<Contribution, GitError> {
        let mut scan = self.scan()?;
        let base_tree = self.tree(&base.tree)?;
        let now = self.repo.find_tree(scan.tree).doing("read the snapshot")?;
        let changes = between(&self.repo, Some(&base_tree), Some(&now))?;
        let mut paths: BTreeSet<PathBuf> = changes.into_iter().map(|change| change.path).collect();
        paths.extend(self.changed_by_commits(base, &base_tree, scan.head)?);
        let paths = paths.into_iter();
        Ok(Contribution {
            root: self.root.clone(),
            on: scan.head,
            began: commit_id(base)?,
            paths: paths.map(|path| (path.clone(), scan.take_entry(index, &path))).collect(),
            left_out: scan.nested.into_iter().map(LeftOut::repository).collect(),
            work_tree: Some(scan.tree),
            ..Contribution::default()
        })
    }

    /// Paths that the agent committed and that were clean at the base. Their current content is the
    /// agent's work, even if it equals the base.
    fn changed_by_commits(
        &self,
        base: &Base,
        base_tree: &Tree<'_>,
        on: Option<Oid>,
    ) -> Result<Vec<PathBuf>, GitError> {
        let (old, new) = (self.committed_at(base)?, self.tree_at(on)?);
        let mut paths = Vec::new();
        for change in between(&self.repo, old.as_ref(), new.as_ref())? {
            if entry_at(Some(base_tree), &change.path)? == change.old {
                paths.push(change.path);
            }
        }
        Ok(paths)
    }

    /// Everything since the base, the agent's own commits included.
    fn changes_in(&self, all: &Contribution, base: &Base) -> Result<Vec<TreeChange>, GitError> {
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

    /// Reports all objections at once: the human can only accept objections that were shown.
    fn require_acceptable(
        &self,
        all: &mut Contribution,
        request: &CollectRequest<'_>,
    ) -> Result<(), GitError> {
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
