//! A story's base: the commit and the work tree that its work is measured from.

use std::path::PathBuf;

use git2::{Oid, Tree};

use crate::model::Base;

use super::branch::{commit_id, tip};
use super::error::GitContext;
use super::tree::{ThreeWay, between, with_changes};
use super::{Result, WorkTree};

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
    /// The current commit and work tree.
    pub fn base(&self) -> Result<Base> {
        Ok(self.base_and_unread()?.0)
    }

    /// The same, and what it cannot have: files that are too large to be read, and repositories.
    pub fn base_and_unread(&self) -> Result<(Base, Vec<PathBuf>)> {
        let scan = self.scan()?;
        let commit = scan.head.map(|id| id.to_string());
        // Without the slash at the end.
        let nested = scan.nested.iter().map(|path| path.components().collect());
        let unread = scan.large.into_iter().chain(nested).collect();
        Ok((Base { commit, tree: scan.tree.to_string() }, unread))
    }

    /// What changed since the base, in the tree and by commits.
    pub fn difference_since(&self, base: &Base) -> Result<Difference> {
        self.difference(base, &self.base()?)
    }

    pub fn difference(&self, from: &Base, to: &Base) -> Result<Difference> {
        let committed = to.commit != from.commit;
        if from.tree == to.tree {
            return Ok(Difference { committed, paths: Vec::new() });
        }
        let (old, new) = (self.tree(&from.tree)?, self.tree(&to.tree)?);
        let changes = between(&self.repo, Some(&old), Some(&new))?;
        let paths = changes.into_iter().map(|change| change.path).collect();
        Ok(Difference { committed, paths })
    }

    /// Protects the base from an agent's `git gc --prune=now`, until the next base is held.
    pub fn hold(&self, base: &Base) -> Result<()> {
        self.hold_at(HELD_BASE, base, "ralph: the work tree before the story")
    }

    pub(super) fn hold_at(&self, name: &str, base: &Base, message: &str) -> Result<()> {
        if self.is_committed(base)? {
            return Ok(());
        }
        let commit = self.commit_of_base(base, message)?;
        self.set_ref(name, commit, "ralph", "store the work tree as it is")
    }

    /// Without uncommitted changes, the branch protects it.
    pub(super) fn is_committed(&self, base: &Base) -> Result<bool> {
        let commit = base.commit.as_deref().map(|id| self.commit_named(id)).transpose()?;
        Ok(commit.is_some_and(|commit| commit.tree_id().to_string() == base.tree))
    }

    /// A commit of the base's work tree, on top of the base's commit.
    pub(super) fn commit_of_base(&self, base: &Base, message: &str) -> Result<Oid> {
        let tree = self.tree(&base.tree)?;
        let parent = base.commit.as_deref().map(|id| self.commit_named(id)).transpose()?;
        self.new_commit(&tree, parent.as_slice(), message, None)
    }

    pub(super) fn tree(&self, id: &str) -> Result<Tree<'_>> {
        let tree = Oid::from_str(id).and_then(|id| self.repo.find_tree(id));
        tree.doing("find the story's base")
    }

    pub(super) fn commit_named(&self, id: &str) -> Result<git2::Commit<'_>> {
        let commit = Oid::from_str(id).and_then(|id| self.repo.find_commit(id));
        commit.doing("find the base's commit")
    }

    /// The tree of the base's commit; None on a branch without commits.
    pub(super) fn committed_at(&self, base: &Base) -> Result<Option<Tree<'_>>> {
        self.tree_at(commit_id(base)?)
    }

    pub(super) fn tree_at(&self, commit: Option<Oid>) -> Result<Option<Tree<'_>>> {
        let Some(id) = commit else { return Ok(None) };
        let tree = self.repo.find_commit(id).and_then(|c| self.repo.find_tree(c.tree_id()));
        tree.map(Some).doing("read a commit's tree")
    }

    pub(super) fn tree_or_empty(&self, commit: Option<Oid>) -> Result<Tree<'_>> {
        if let Some(tree) = self.tree_at(commit)? {
            return Ok(tree);
        }
        let empty = self.repo.treebuilder(None).and_then(|builder| builder.write());
        empty.and_then(|id| self.repo.find_tree(id)).doing("write an empty tree")
    }

    /// The base on top of the human's commits since `from`, the branch tip that the story's last
    /// attempt left. None if there are none, or if the human is on another branch.
    pub fn moved_base(&self, base: &Base, from: Option<&str>) -> Result<Option<Base>> {
        let now = tip(&self.repo)?;
        let is_same = now.commit.map(|id| id.to_string()).as_deref() == from;
        if is_same || now.reference != self.run_branch {
            return Ok(None);
        }
        self.move_base(base, from).map(Some)
    }

    /// Whether the tree is in the repository.
    pub fn has_tree(&self, base: &Base) -> bool {
        self.tree(&base.tree).is_ok()
    }

    /// Moves the base onto the current branch tip. Commits after `from` (the branch tip that the
    /// story's last attempt left) are the human's and become part of the base. The agent's earlier
    /// commits and uncommitted changes stay the story's work.
    pub fn move_base(&self, base: &Base, from: Option<&str>) -> Result<Base> {
        let now = tip(&self.repo)?.commit.map(|id| id.to_string());
        self.with_changes_between(base, from, now.as_deref())
    }

    /// A base with what changed from one commit to another, on top of that one.
    pub fn with_changes_between(
        &self,
        base: &Base,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<Base> {
        let tree_of = |id: Option<&str>| {
            self.tree_or_empty(id.map(Oid::from_str).transpose().doing("read the base")?)
        };
        let (before, after, known) = (tree_of(from)?, tree_of(to)?, self.tree(&base.tree)?);
        // If both changed a line, the human's commit wins.
        let sides = ThreeWay { base: &before, ours: &known, theirs: &after, prefers_theirs: true };
        let tree = match sides.merge(&self.repo, &[])? {
            Err(_) => after.id(),
            Ok(changes) => with_changes(&self.repo, &known, &changes)?.id(),
        };
        Ok(Base { commit: to.map(str::to_owned), tree: tree.to_string() })
    }
}
