//! The work tree as a git tree, without touching index, HEAD or files.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use git2::{DiffDelta, DiffOptions, Index, IndexEntry, Oid, Repository, Tree};

use super::changes::{Entry, between, bytes_of, changes_in, path_of};
use super::commit::entry_of;
use super::error::{Doing, GitError};
use super::tree_edit::edited;
use super::{OWN_FOLDER, WorkTree, head};
use crate::core::event::Base;

/// Git's bit for files that a sparse checkout leaves out of the work tree.
const SKIP_WORKTREE: u16 = 1 << 14;
/// Older index formats cannot hold that bit.
const FIRST_VERSION_WITH_BITS: u32 = 3;
/// Keeps a base from `git gc`; each work tree has its own.
const HELD_BASE: &str = "refs/worktree/ralph/base";

/// How the work tree differs from an earlier state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The branch is at another commit.
    pub committed: bool,
    pub paths: Vec<PathBuf>,
}

impl Difference {
    pub fn is_empty(&self) -> bool {
        !self.committed && self.paths.is_empty()
    }
}

impl WorkTree {
    /// Tracked and untracked (not ignored) files as a tree.
    pub fn snapshot(&self) -> Result<String, GitError> {
        Ok(self.scan()?.to_string())
    }

    /// Where the repository stands now.
    pub fn base(&self) -> Result<Base, GitError> {
        let commit = head::tip(&self.repo)?.commit.map(|id| id.to_string());
        Ok(Base { commit, tree: self.snapshot()? })
    }

    /// Did anything change since the base, in the tree or by commits?
    pub fn changed_since(&self, base: &Base) -> Result<bool, GitError> {
        let commit = head::tip(&self.repo)?.commit.map(|id| id.to_string());
        Ok(commit != base.commit || self.snapshot()? != base.tree)
    }

    /// What changed since the base, in the tree and by commits.
    pub fn difference_since(&self, base: &Base) -> Result<Difference, GitError> {
        let now = self.base()?;
        let changes =
            between(&self.repo, Some(&self.tree(&base.tree)?), Some(&self.tree(&now.tree)?))?;
        let paths = changes.into_iter().map(|change| change.path).collect();
        Ok(Difference { committed: now.commit != base.commit, paths })
    }

    /// Protects the base from a `git gc --prune=now` of an agent, until the next is held.
    pub fn hold(&self, base: &Base) -> Result<(), GitError> {
        if self.is_committed(base)? {
            return Ok(());
        }
        let commit = self.commit_of_base(base, "ralph: the work tree before the story")?;
        self.locking(&self.ref_lock(HELD_BASE), || {
            let held = self.repo.reference(HELD_BASE, commit, true, "ralph");
            held.map(drop).doing("hold the story's base")
        })
    }

    /// With nothing uncommitted, the branch itself protects it.
    pub(super) fn is_committed(&self, base: &Base) -> Result<bool, GitError> {
        let commit = base.commit.as_deref().map(|id| self.commit_named(id)).transpose()?;
        Ok(commit.is_some_and(|commit| commit.tree_id().to_string() == base.tree))
    }

    /// A commit of what was in the work tree, on top of what was committed.
    pub(super) fn commit_of_base(&self, base: &Base, message: &str) -> Result<Oid, GitError> {
        let tree = self.tree(&base.tree)?;
        let parent = base.commit.as_deref().map(|id| self.commit_named(id)).transpose()?;
        self.new_commit(&tree, parent.as_slice(), message)
    }

    pub(super) fn tree(&self, id: &str) -> Result<Tree<'_>, GitError> {
        let tree = Oid::from_str(id).and_then(|id| self.repo.find_tree(id));
        tree.doing("find the story's base")
    }

    pub(super) fn commit_named(&self, id: &str) -> Result<git2::Commit<'_>, GitError> {
        let commit = Oid::from_str(id).and_then(|id| self.repo.find_commit(id));
        commit.doing("find the base's commit")
    }

    pub(super) fn scan(&self) -> Result<Oid, GitError> {
        Ok(self.scan_into(&mut self.fresh_index()?)?.tree)
    }

    /// The work tree as a tree; afterwards the index in memory says the same, but for what the scan
    /// knew already.
    pub(super) fn scan_into(&self, index: &mut Index) -> Result<Scan, GitError> {
        let mut seen = self.seen();
        let nested = stage_all(&self.repo, index, &mut |path| seen.knows(path));
        let nested = nested.doing(READ_FILES)?;
        let odb = self.repo.odb().doing("open the repository's objects")?;
        seen.verify(&odb, index).doing(READ_FILES)?;
        let tree = self.tree_of_index(index, &seen.unchanged)?;
        seen.remember(self, index);
        Ok(Scan { tree, nested, known: seen.unchanged })
    }

    /// From what differs from HEAD: libgit2's own way asks the repository for each of the objects.
    fn tree_of_index(
        &self,
        index: &Index,
        known: &BTreeMap<PathBuf, IndexEntry>,
    ) -> Result<Oid, GitError> {
        let head = head::tip(&self.repo)?.commit.map(|id| self.repo.find_commit(id));
        let head = head.transpose().and_then(|commit| commit.map(|c| c.tree()).transpose());
        let head = head.doing("read HEAD's tree")?;
        let diff = self.repo.diff_tree_to_index(head.as_ref(), Some(index), None);
        let changes = changes_in(&diff.doing("compare the index with HEAD")?);
        let changes = changes.iter().map(|change| (&change.path, change.new));
        let known = known.iter().map(|(path, entry)| (path, Some(entry_of(entry))));
        let edits: BTreeMap<&PathBuf, Option<Entry>> = changes.chain(known).collect();
        let edits: Vec<_> = edits.into_iter().map(|(path, new)| (bytes_of(path), new)).collect();
        edited(&self.repo, head.as_ref(), &edits)
    }
}

/// What a look at the work tree found.
pub(super) struct Scan {
    pub tree: Oid,
    /// Repositories inside the work tree, which cannot be a part of it.
    pub nested: Vec<PathBuf>,
    /// Files that were known already, and are not in the index.
    pub known: BTreeMap<PathBuf, IndexEntry>,
}

const READ_FILES: &str = "read the work tree (is every file readable?)";

/// Brings the index in memory to what is in the work tree, but for the files that `is_known`
/// takes upon itself; the nested repositories it left out.
pub(super) fn stage_all(
    repo: &Repository,
    index: &mut Index,
    is_known: &mut dyn FnMut(&Path) -> bool,
) -> Result<Vec<PathBuf>, git2::Error> {
    index.remove_dir(Path::new(OWN_FOLDER), 0)?;
    let sparse = left_out_by_sparse_checkout(index);
    let mut left_out = Vec::new();
    for (path, exists) in differences(repo, index)? {
        // libgit2 marks nested repositories with a slash, and cannot add them.
        if bytes_of(&path).ends_with(b"/") {
            left_out.push(path);
            continue;
        }
        let is_ours = !path.starts_with(OWN_FOLDER) && !sparse.contains(&path);
        if is_ours && !exists {
            index.remove_path(&path)?;
        } else if is_ours && !is_known(&path) {
            index.add_path(&path)?;
        }
    }
    Ok(left_out)
}

/// Paths where index and work tree differ, and whether the work tree has them. What libgit2's own
/// `add_all` does before it adds, without a look at the attributes of each.
fn differences(repo: &Repository, index: &Index) -> Result<Vec<(PathBuf, bool)>, git2::Error> {
    let mut options = DiffOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).include_typechange(true);
    let diff = repo.diff_index_to_workdir(Some(index), Some(&mut options))?;
    let path = |delta: DiffDelta<'_>| {
        let path = delta.old_file().path_bytes().map(path_of);
        path.map(|path| (path, delta.new_file().exists()))
    };
    Ok(diff.deltas().filter_map(path).collect())
}

pub(super) fn left_out_by_sparse_checkout(index: &Index) -> HashSet<PathBuf> {
    if index.version() < FIRST_VERSION_WITH_BITS {
        return HashSet::new();
    }
    let left_out = index.iter().filter(|entry| entry.flags_extended & SKIP_WORKTREE != 0);
    left_out.map(|entry| path_of(&entry.path)).collect()
}
