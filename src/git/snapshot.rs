//! The work tree as a git tree, without touching index, HEAD or files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use git2::{Index, IndexAddOption, Oid, Tree};

use super::changes::{bytes_of, path_of};
use super::error::{Doing, GitError};
use super::lock::patiently;
use super::{OWN_FOLDER, WorkTree, head};
use crate::core::event::Base;

/// Git's bit for files that a sparse checkout leaves out of the work tree.
const SKIP_WORKTREE: u16 = 1 << 14;
/// Older index formats cannot hold that bit.
const FIRST_VERSION_WITH_BITS: u32 = 3;
/// Keeps a base from `git gc`; each work tree has its own.
const HELD_BASE: &str = "refs/worktree/ralph/base";

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

    /// Protects the base from a `git gc --prune=now` of an agent, until the next is held.
    pub fn hold(&self, base: &Base) -> Result<(), GitError> {
        if self.is_committed(base)? {
            return Ok(());
        }
        let commit = self.commit_of_base(base, "ralph: the work tree before the story")?;
        let lock = self.git_dir.join(format!("{HELD_BASE}.lock"));
        patiently(self.lock_patience, &lock, || {
            let held = self.repo.reference(HELD_BASE, commit, true, "ralph");
            held.map(drop).doing("hold the story's base")
        })
    }

    /// With nothing uncommitted, the branch itself protects it.
    fn is_committed(&self, base: &Base) -> Result<bool, GitError> {
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
        Ok(snapshot_into(&mut self.fresh_index()?)?.tree)
    }
}

/// What a look at the work tree found.
pub(super) struct Scan {
    pub tree: Oid,
    /// Repositories inside the work tree, which cannot be a part of it.
    pub nested: Vec<PathBuf>,
}

/// The work tree as a tree; afterwards the index in memory says the same.
pub(super) fn snapshot_into(index: &mut Index) -> Result<Scan, GitError> {
    let nested = stage_all(index).doing("read the work tree (is every file readable?)")?;
    let tree = index.write_tree().doing("write the snapshot")?;
    Ok(Scan { tree, nested })
}

/// Brings the index in memory to what is in the work tree; the nested repositories it left out.
pub(super) fn stage_all(index: &mut Index) -> Result<Vec<PathBuf>, git2::Error> {
    index.remove_dir(Path::new(OWN_FOLDER), 0)?;
    let sparse = left_out_by_sparse_checkout(index);
    let mut left_out = Vec::new();
    let mut skip = |path: &Path, _: &[u8]| {
        // libgit2 marks nested repositories with a slash, and cannot add them.
        let nested = bytes_of(path).ends_with(b"/");
        if nested {
            left_out.push(path.to_owned());
        }
        i32::from(nested || path.starts_with(OWN_FOLDER) || sparse.contains(path))
    };
    // Without a pattern git2 hands a null pointer to the closure.
    index.add_all(["*"], IndexAddOption::DEFAULT, Some(&mut skip))?;
    Ok(left_out)
}

pub(super) fn left_out_by_sparse_checkout(index: &Index) -> HashSet<PathBuf> {
    if index.version() < FIRST_VERSION_WITH_BITS {
        return HashSet::new();
    }
    let left_out = index.iter().filter(|entry| entry.flags_extended & SKIP_WORKTREE != 0);
    left_out.map(|entry| path_of(&entry.path)).collect()
}
