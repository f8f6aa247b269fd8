//! What gates write: it is put back, unless it may stay.

use std::path::{Path, PathBuf};

use crate::model::Base;
use crate::workspace::authors::GATES;
use crate::workspace::diff::Patterns;
use crate::workspace::error::{GitContext, file_error, if_found};
use crate::workspace::tree::{TreeChange, between, entry_at, with_changes};
use crate::workspace::{Result, WorkTree};

/// Keeps the tree before the gates from a gate's `git gc`; each work tree has its own.
const HELD_BEFORE_GATES: &str = "refs/worktree/ralph/before-gates";
/// The same while one runs on the story's base.
const HELD_DURING_GATES: &str = "refs/worktree/ralph/during-gates";

const RELEASE: &str = "let go of the work tree before the gates";

/// What was written to the work tree since a recorded state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writes(Vec<TreeChange>);

/// Decides which of them may stay.
pub struct MayStay {
    patterns: Patterns,
    is_lock_file: fn(&Path) -> bool,
    users: Vec<PathBuf>,
}

impl MayStay {
    /// Files that match the patterns, and lock files that appear, but none of the user's.
    pub fn new(
        patterns: &[String],
        is_lock_file: fn(&Path) -> bool,
        users: Vec<PathBuf>,
    ) -> Result<Self> {
        let patterns = Patterns::new("read the patterns of `keep`", patterns)?;
        Ok(Self { patterns, is_lock_file, users })
    }

    fn allows(&self, change: &TreeChange) -> bool {
        let appears = change.old.is_none() && (self.is_lock_file)(&change.path);
        let is_users = self.users.contains(&change.path);
        !is_users && (appears || self.patterns.matches(&change.path))
    }
}

impl Writes {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.0.iter().map(|change| change.path.clone()).collect()
    }

    pub fn without(mut self, is_out: impl Fn(&Path) -> bool) -> Self {
        self.0.retain(|change| !is_out(&change.path));
        self
    }

    pub fn without_allowed(mut self, may_stay: &MayStay) -> Self {
        self.0.retain(|change| !may_stay.allows(change));
        self
    }
}

impl WorkTree {
    pub fn hold_before_gates(&self, before: &Base) -> Result<()> {
        self.hold_at(HELD_BEFORE_GATES, before, "ralph: the work tree before the gates")
    }

    /// They are over.
    pub(in crate::workspace) fn release_before_gates(&self) -> Result<()> {
        let held = if_found(self.repo.find_reference(HELD_BEFORE_GATES)).doing(RELEASE)?;
        held.map_or(Ok(()), |mut held| held.delete().doing(RELEASE))
    }

    pub fn hold_during_gates(&self, now: &Base) -> Result<()> {
        self.hold_at(HELD_DURING_GATES, now, "ralph: the work tree during the gates")
    }

    /// Without what commits of the human's since then brought, but with all that no tree can have.
    pub fn writes_since(&self, before: &Base) -> Result<Writes> {
        let (now, unread) = self.base_and_unread()?;
        let (old, new) = (self.tree(&before.tree)?, self.tree(&now.tree)?);
        let mut changes = between(&self.repo, Some(&old), Some(&new))?;
        if now.commit != before.commit && !changes.is_empty() {
            let brought = self.brought_by_human(before)?;
            let is_brought = |change: &TreeChange| {
                brought.iter().any(|one| one.path == change.path && one.new == change.new)
            };
            changes.retain(|change| !is_brought(change));
        }
        // The new tree has them as they are in the index.
        for path in unread {
            let old = entry_at(Some(&old), &path)?;
            changes.retain(|change| change.path != path);
            changes.push(TreeChange { path, old, new: None });
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Writes(changes))
    }

    fn brought_by_human(&self, before: &Base) -> Result<Vec<TreeChange>> {
        let found = self.human_commits(before.commit.as_deref(), GATES)?;
        let mut brought = Vec::new();
        for one in found.filter(|found| found.is_on_branch).iter().flat_map(|found| &found.humans) {
            let commit = self.commit_named(&one.commit)?;
            let (from, to) = (self.tree_at(commit.parent_id(0).ok())?, commit.tree());
            let to = to.doing("read a commit's tree")?;
            brought.extend(between(&self.repo, from.as_ref(), Some(&to))?);
        }
        Ok(brought)
    }

    /// Files of the story that have their version from before the story again, or are gone. It may
    /// have deleted a file that is there again.
    pub fn undone(&self, base: &Base, writes: &Writes) -> Result<Vec<PathBuf>> {
        let base = self.tree(&base.tree)?;
        let mut undone = Vec::new();
        for change in &writes.0 {
            let before_story = entry_at(Some(&base), &change.path)?;
            let is_storys = change.old != before_story;
            let is_gone = change.old.is_some() && change.new.is_none();
            if is_storys && (is_gone || change.new == before_story) {
                undone.push(change.path.clone());
            }
        }
        Ok(undone)
    }

    /// The files are again as they were. Returns those that cannot be written safely.
    pub fn put_writes_back(&self, before: &Base, writes: &Writes) -> Result<Vec<PathBuf>> {
        let is_unread = |change: &&TreeChange| {
            (change.old.is_none() && change.new.is_none()) || self.is_too_large(&change.path)
        };
        for TreeChange { path, .. } in writes.0.iter().filter(is_unread) {
            // It is in no snapshot.
            let place = self.root.join(path);
            self.moved_away.take(&place, path).map_err(file_error("move", &place))?;
        }
        let changes = writes.0.iter().map(|TreeChange { path, old, new }| TreeChange {
            path: path.clone(),
            old: *new,
            new: *old,
        });
        let is_plain =
            |change: &TreeChange| change.new.is_none() || self.require_plain(&change.path).is_ok();
        let (changes, blocked): (Vec<_>, Vec<_>) = changes.partition(is_plain);
        self.restore_files(&self.tree(&before.tree)?, changes)?;
        Ok(blocked.into_iter().map(|change| change.path).collect())
    }

    /// Branch, index and files are as before the gates, which moved the branch.
    pub fn return_to(&self, before: &Base) -> Result<()> {
        self.reset_to(before, "reset: ralph undid what gates did to the branch")
    }

    /// The branch has moved by commits that only gates made.
    pub fn gates_committed(&self, before: &Base) -> Result<bool> {
        let has_moved = self.head_commit()? != before.commit;
        Ok(has_moved && self.human_commits(before.commit.as_deref(), GATES)?.is_none())
    }

    /// Uncommitted files of the user's when the story began.
    pub fn users_files(&self, base: &Base) -> Result<Vec<PathBuf>> {
        let changes = self.uncommitted_at(base)?;
        Ok(changes.into_iter().map(|change| change.path).collect())
    }

    /// Whether what was written is what these refs have.
    pub fn are_kept<'a>(
        &self,
        writes: &Writes,
        kept_at: impl Fn(&Path) -> Option<&'a String>,
    ) -> Result<bool> {
        for change in &writes.0 {
            let reference = kept_at(&change.path).map(|name| self.repo.find_reference(name));
            let kept = reference.and_then(|found| found.and_then(|one| one.peel_to_tree()).ok());
            if kept.is_none() || entry_at(kept.as_ref(), &change.path)? != change.new {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A state with what gates wrote besides: not to files that differ from it before them.
    pub fn with_writes(&self, state: &Base, before: &Base, after: &Base) -> Result<Base> {
        let known = self.tree(&state.tree)?;
        let (old, new) = (self.tree(&before.tree)?, self.tree(&after.tree)?);
        let mut written = Vec::new();
        for change in between(&self.repo, Some(&old), Some(&new))? {
            if entry_at(Some(&known), &change.path)? == change.old {
                written.push(change);
            }
        }
        let tree = with_changes(&self.repo, &known, &written)?.id().to_string();
        Ok(Base { tree, ..state.clone() })
    }

    /// Stores the work tree as it is.
    pub fn keep_written(&self) -> Result<String> {
        Ok(self.checkpoint("ralph: what gates wrote")?.reference)
    }
}
