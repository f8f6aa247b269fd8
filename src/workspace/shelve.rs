//! Shelving: stores a story's unfinished work at a ref and resets the tree to the base. Unshelving
//! merges the work into the tree again.

use std::collections::BTreeSet;
use std::path::PathBuf;

use git2::{Commit, Oid, RepositoryState, Tree};

use crate::model::{Base, DiffStat, StoryId};

use super::branch::{Tip, commit_id};
use super::catalog::{SnapshotKind, SnapshotRef, kind_of};
use super::diff::stat;
use super::error::{GitContext, GitError, if_found};
use super::index::{Staged, unstatted};
use super::snapshot::SnapshotNote;
use super::tree::{ThreeWay, TreeChange, TreeEntry, between, entry_at, path_of, with_changes};
use super::{Result, WorkTree, branch};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unshelved {
    /// The work is in the tree, merged with later changes.
    Clean,
    /// Nothing was changed: these paths conflict.
    Conflicts(Vec<String>),
}

/// How files are reset.
pub struct Reset<'a> {
    /// To this tree.
    pub to: &'a str,
    /// These stay as they are.
    pub except: &'a [PathBuf],
}

/// Everything needed to reset the tree to the base.
struct ResetPlan<'a> {
    now: Tree<'a>,
    base_tree: Tree<'a>,
    /// What the base had committed; None on a branch without commits.
    committed: Option<Tree<'a>>,
    /// From the tree now to the base's tree.
    changes: Vec<TreeChange>,
    /// What the agent committed.
    commits: Vec<TreeChange>,
}

impl WorkTree {
    /// Stores everything since the base, including the agent's own commits, as a commit at
    /// `refs/ralph/attempts/<story>/<n>`, then resets branch, index and files to the base. Files in
    /// `except` stay as they are. None if nothing changed.
    ///
    /// An interrupted call can be repeated: refs are never overwritten.
    pub fn shelve(
        &self,
        story: &StoryId,
        n: u32,
        base: &Base,
        except: &[PathBuf],
    ) -> Result<Option<String>> {
        self.shelve_to(story, n, base, &Reset { to: &base.tree, except })
    }

    /// Resets the files to another tree than the base's: commits of the story's stay on the branch.
    pub fn shelve_to(
        &self,
        story: &StoryId,
        n: u32,
        base: &Base,
        reset: &Reset<'_>,
    ) -> Result<Option<String>> {
        let Reset { to, except } = *reset;
        let head = branch::tip(&self.repo)?;
        let home = self.branch_commit(&head)?;
        let now = self.scan()?.tree;
        let way = self.plan_reset(base, to, &head, now)?;
        let is_wanted = |change: &&TreeChange| !except.contains(&change.path);
        let changes: Vec<TreeChange> = way.changes.iter().filter(is_wanted).cloned().collect();
        let kept = self.kept_at(story, n)?;
        if kept.is_none() && changes.is_empty() && self.is_settled_at(base, &head) {
            return Ok(None);
        }
        self.require_writable(&changes)?;
        let reference = match kept {
            Some(kept) => self.require_same(kept, base, &changes)?,
            None => {
                let text = format!("ralph: shelved work on {story} ({n})");
                let (story_named, kind) = (Some(story), SnapshotKind::Shelved);
                let note = SnapshotNote { kind, text: &text, story: story_named, iteration: None };
                let parents = self.parents_of_work(story, base, &head)?;
                let name = |_| reference_name(story, n);
                self.keep_commit(&way.now, &parents, &note, name)?.reference
            }
        };
        self.reset(&way, changes)?;
        self.move_branch(home, commit_id(base)?, &format!("reset: ralph shelved {story}"))?;
        self.end_operation()?;
        Ok(Some(reference))
    }

    /// Resets branch, index and files to an earlier state, without a copy of what is there now.
    pub(super) fn reset_to(&self, before: &Base, log: &str) -> Result<()> {
        let head = branch::tip(&self.repo)?;
        let home = self.branch_commit(&head)?;
        let way = self.plan_reset(before, &before.tree, &head, self.scan()?.tree)?;
        let changes = way.changes.clone();
        self.require_writable(&changes)?;
        self.reset(&way, changes)?;
        self.move_branch(home, commit_id(before)?, log)?;
        self.end_operation()
    }

    fn reset(&self, way: &ResetPlan<'_>, changes: Vec<TreeChange>) -> Result<()> {
        self.update_index(&self.index_of_base(way)?)?;
        self.restore_files(&way.base_tree, changes)
    }

    fn end_operation(&self) -> Result<()> {
        self.repo.cleanup_state().doing("clear the merge or rebase in progress")
    }

    fn plan_reset(&self, base: &Base, to: &str, head: &Tip, now: Oid) -> Result<ResetPlan<'_>> {
        let base_tree = self.tree(to)?;
        let now = self.repo.find_tree(now).doing("read the snapshot")?;
        let (committed, tip) = (self.committed_at(base)?, self.tree_at(head.commit)?);
        Ok(ResetPlan {
            changes: between(&self.repo, Some(&now), Some(&base_tree))?,
            commits: between(&self.repo, committed.as_ref(), tip.as_ref())?,
            base_tree,
            committed,
            now,
        })
    }

    fn is_settled_at(&self, base: &Base, head: &Tip) -> bool {
        head.reference == self.run_branch
            && head.commit.map(|id| id.to_string()) == base.commit
            && self.repo.state() == RepositoryState::Clean
    }

    /// The ref of an earlier, interrupted call; fails if the ref has other work.
    fn kept_at(&self, story: &StoryId, n: u32) -> Result<Option<(String, Commit<'_>)>> {
        let name = reference_name(story, n);
        let found = if_found(self.repo.find_reference(&name)).doing("look for shelved work")?;
        let commit = found.map(|r| r.peel_to_commit()).transpose().doing("read shelved work")?;
        match commit {
            Some(commit) if kind_of(&commit) != Some(SnapshotKind::Shelved) => {
                Err(GitError::RefTaken(name))
            }
            commit => Ok(commit.map(|commit| (name, commit))),
        }
    }

    /// The ref exists because an earlier call was interrupted. That call can be completed if
    /// everything that would be overwritten is in the ref.
    fn require_same(
        &self,
        (name, commit): (String, Commit<'_>),
        base: &Base,
        changes: &[TreeChange],
    ) -> Result<String> {
        let kept = self.repo.find_tree(commit.tree_id()).doing("read shelved work")?;
        let mut same = base_of(&commit)?.tree_id().to_string() == base.tree;
        for change in changes.iter().filter(|change| change.old.is_some()) {
            same &= entry_at(Some(&kept), &change.path)? == change.old;
        }
        if same { Ok(name) } else { Err(GitError::RefTaken(name)) }
    }

    /// Stores a failed attempt's work, including its own commits, at the first free number from `n`
    /// on. The tree stays as it is. None if nothing changed since the base.
    pub fn keep_attempt(
        &self,
        story: &StoryId,
        n: u32,
        iteration: u32,
        base: &Base,
    ) -> Result<Option<(SnapshotRef, DiffStat)>> {
        let head = branch::tip(&self.repo)?;
        let now = self.scan()?.tree;
        if now.to_string() == base.tree && self.is_settled_at(base, &head) {
            return Ok(None);
        }
        let text = format!("ralph: a failed attempt at {story}, iteration {iteration}");
        let after = self.repo.find_tree(now).doing("read the snapshot")?;
        let parents = self.parents_of_work(story, base, &head)?;
        let (kind, iteration) = (SnapshotKind::Attempt, Some(iteration));
        let note = SnapshotNote { kind, text: &text, story: Some(story), iteration };
        let kept = self.keep_at_free_number((story, n), &after, &parents, &note)?;
        Ok(Some((kept, stat(&self.repo, Some(&self.tree(&base.tree)?), &after)?)))
    }

    pub(super) fn keep_at_free_number(
        &self,
        (story, mut n): (&StoryId, u32),
        tree: &Tree<'_>,
        parents: &[Commit<'_>],
        note: &SnapshotNote<'_>,
    ) -> Result<SnapshotRef> {
        loop {
            let name = reference_name(story, n);
            if self.is_free(&name)? {
                match self.keep_commit(tree, parents, note, |_| name.clone()) {
                    Err(GitError::RefTaken(_)) => {}
                    kept => return kept,
                }
            }
            n = n.saturating_add(1);
        }
    }

    /// The last parent is a commit of the base's tree, so that neither it nor what the agent
    /// committed, here or on the run's branch, can be collected as garbage.
    fn parents_of_work(&self, story: &StoryId, base: &Base, head: &Tip) -> Result<Vec<Commit<'_>>> {
        let before = self.commit_of_base(base, &format!("ralph: the work tree before {story}"))?;
        let home = self.branch_commit(head)?.filter(|id| Some(*id) != head.commit);
        let parents = head.commit.into_iter().chain(home).chain([before]);
        let parents: Result<_, _> = parents.map(|id| self.repo.find_commit(id)).collect();
        parents.doing("read HEAD's commit")
    }

    /// The base's entries for paths that the agent changed, staged or committed. The user's other
    /// staged changes stay.
    fn index_of_base(&self, way: &ResetPlan<'_>) -> Result<Vec<Staged>> {
        let index = self.fresh_index()?;
        let mut paths: BTreeSet<PathBuf> = way.commits.iter().map(|c| c.path.clone()).collect();
        let changed = way.changes.iter().filter(|change| {
            let staged = index.get_path(&change.path, 0);
            let staged = staged.map(|entry| TreeEntry::from(&entry));
            staged.is_none() || staged != change.new
        });
        paths.extend(changed.map(|change| change.path.clone()));
        paths.extend(unmerged_paths(&index)?);
        let held = self.index_before();
        let mut users = BTreeSet::new();
        if held.is_some() {
            let edits = between(&self.repo, way.committed.as_ref(), Some(&way.base_tree))?;
            users.extend(edits.into_iter().map(|edit| edit.path));
            paths.extend(users.iter().cloned());
        }
        let staged = |path: PathBuf| {
            let entry = match held.as_ref().filter(|_| users.contains(&path)) {
                Some(held) => held.get_path(&path, 0),
                None => {
                    let entry = entry_at(way.committed.as_ref(), &path)?;
                    entry.map(|entry| unstatted(&path, entry))
                }
            };
            Ok((path, entry))
        };
        paths.into_iter().map(staged).collect()
    }

    /// Files of shelved work that its base does not have.
    pub fn new_files_of(&self, reference: &str) -> Result<Vec<PathBuf>> {
        let kept = self.repo.find_reference(reference).and_then(|kept| kept.peel_to_commit());
        let kept = kept.doing("read shelved work")?;
        let before = base_of(&kept)?.tree().doing("read the base of shelved work")?;
        let after = kept.tree().doing("read shelved work")?;
        let changes = between(&self.repo, Some(&before), Some(&after))?.into_iter();
        Ok(changes.filter(|change| change.old.is_none()).map(|change| change.path).collect())
    }

    /// Merges shelved work into the files; index and HEAD stay as they are, and so do files in
    /// `except` and the ref.
    pub fn unshelve(&self, reference: &str, except: &[PathBuf]) -> Result<Unshelved> {
        let found = self.repo.find_reference(reference).and_then(|r| r.peel_to_commit()).ok();
        let kept = found.filter(|kept| kept.parent_count() > 0);
        let kept = kept.ok_or_else(|| GitError::NotShelved(reference.to_owned()))?;
        let base = base_of(&kept)?.tree().doing("read the base of shelved work")?;
        let now = self.tree_now()?;
        let theirs = kept.tree().doing("read shelved work")?;
        let sides = ThreeWay { base: &base, ours: &now, theirs: &theirs, prefers_theirs: false };
        match sides.merge(&self.repo, except)? {
            Err(paths) => Ok(Unshelved::Conflicts(paths)),
            Ok(changes) => self.write_merged(&now, &changes),
        }
    }

    fn write_merged(&self, now: &Tree<'_>, changes: &[TreeChange]) -> Result<Unshelved> {
        let in_the_way = self.files_in_the_way(changes);
        if !in_the_way.is_empty() {
            return Ok(Unshelved::Conflicts(in_the_way));
        }
        self.require_writable(changes)?;
        self.write_files(&with_changes(&self.repo, now, changes)?, changes)?;
        Ok(Unshelved::Clean)
    }
}

/// The commit of the work tree that shelved work is based on.
pub(super) fn base_of<'a>(kept: &Commit<'a>) -> Result<Commit<'a>> {
    let last = kept.parent_count().saturating_sub(1);
    kept.parent(last).doing("read the base of shelved work")
}

fn reference_name(story: &StoryId, n: u32) -> String {
    format!("refs/ralph/attempts/{story}/{n}")
}

fn unmerged_paths(index: &git2::Index) -> Result<Vec<PathBuf>> {
    let conflicts = index.conflicts().doing("read the unmerged files")?;
    let sides = conflicts.flatten().flat_map(|c| [c.our, c.their, c.ancestor]);
    Ok(sides.flatten().map(|entry| path_of(&entry.path)).collect())
}
