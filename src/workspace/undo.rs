//! Reverts a closed story.
//!
//! Its commit is made first. What follows can be repeated after a kill: files that still have their
//! old content are written, then the index, and the branch moves last.

use std::path::PathBuf;

use git2::{Oid, Tree};

use super::branch::tip;
use super::commit::ClosedStory;
use super::error::{GitContext, GitError};
use super::index::unstatted;
use super::integrate::{Advance, Replacement};
use super::staging::Contribution;
use super::tree::{ThreeWay, TreeChange, between, entry_at};
use super::{Result, WorkTree};

pub struct UndoRequest<'a> {
    pub closing: &'a ClosedStory,
    /// The backlog, relative to the root, with the bytes that it will have on disk.
    pub replaced: &'a [Replacement<'a>],
    pub message: &'a str,
}

/// A commit that reverts a story and is on no branch yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyUndo {
    /// Its full id.
    pub commit: String,
    /// The branch tip that it is made for.
    pub from: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The new commit's full id.
    pub commit: String,
    /// The number of reverted files, without the backlog.
    pub files: usize,
}

impl WorkTree {
    /// Reverts everything from the story's base to its closing commit, on top of HEAD. Changes
    /// nothing yet, and fails if there are conflicts or uncommitted changes in the way.
    pub fn prepare_undo(&self, request: &UndoRequest<'_>) -> Result<ReadyUndo> {
        let index = self.settled_index()?;
        let head = tip(&self.repo)?;
        let (Some(on), Some(ours)) = (head.commit, self.tree_at(head.commit)?) else {
            return Err(GitError::NothingToUndo);
        };
        let except: Vec<PathBuf> = request.replaced.iter().map(|one| one.path.to_owned()).collect();
        let changes = self.without_story(request.closing, &ours, &except)?;
        self.require_unedited(&changes)?;
        let advance = Advance {
            from: self.branch_commit(&head)?,
            ..Advance::of_changes(on, changes, "revert")
        };
        let replaced = self.replacements(&index, &Contribution::default(), request.replaced)?;
        let ready = self.ready(advance, replaced, request.message)?;
        let from = ready.from().ok_or(GitError::NothingToUndo)?;
        Ok(ReadyUndo { commit: ready.id(), from: from.to_string() })
    }

    /// Moves files, index and branch to the commit, also if a process before this one began with it.
    /// `except`: what is not written. None: the branch has moved elsewhere, so nothing is done.
    pub fn carry_out_undo(&self, ready: &ReadyUndo, except: &[PathBuf]) -> Result<Option<Undone>> {
        let id = |text: &str| Oid::from_str(text).doing("read a commit");
        let (from, commit) = (id(&ready.from)?, id(&ready.commit)?);
        // It may have been deleted meanwhile.
        let Ok(found) = self.repo.find_commit(commit) else { return Ok(None) };
        let head = tip(&self.repo)?.commit;
        let is_done = self.contains(head, Some(commit))?;
        if !is_done && head != Some(from) {
            return Ok(None);
        }
        let before = self.tree_at(Some(from))?;
        let after = found.tree().doing("read a commit's tree")?;
        let changes = between(&self.repo, before.as_ref(), Some(&after))?;
        let is_written = |change: &&TreeChange| !except.contains(&change.path);
        let written: Vec<_> = changes.iter().filter(is_written).cloned().collect();
        let undone = Some(Undone { commit: ready.commit.clone(), files: written.len() });
        if is_done {
            return Ok(undone);
        }
        self.replace_unchanged(&self.tree_now()?, &after, &written)?;
        let staged = changes.iter().map(|change| {
            let entry = change.new.map(|entry| unstatted(&change.path, entry));
            (change.path.clone(), entry)
        });
        self.update_index(&staged.collect::<Vec<_>>())?;
        let subject = found.summary_bytes().unwrap_or_default();
        let log = format!("revert: {}", String::from_utf8_lossy(subject));
        self.move_branch(Some(from), Some(commit), &log)?;
        Ok(undone)
    }

    /// Writes the new side of those changes whose old side is there `now`: others are done already, or
    /// were edited since.
    pub(super) fn replace_unchanged(
        &self,
        now: &Tree<'_>,
        tree: &Tree<'_>,
        changes: &[TreeChange],
    ) -> Result<()> {
        let mut due = Vec::new();
        for change in changes {
            let found = entry_at(Some(now), &change.path)?;
            // Of a file that is gone already, an empty folder may be left.
            if found == change.old || (found.is_none() && change.new.is_none()) {
                due.push(change.clone());
            }
        }
        self.replace_files(tree, &due)
    }

    fn without_story(
        &self,
        closing: &ClosedStory,
        ours: &Tree<'_>,
        except: &[PathBuf],
    ) -> Result<Vec<TreeChange>> {
        let (before, after) = self.sides_of(closing)?;
        let before = before.map_or_else(|| self.tree_or_empty(None), Ok)?;
        let sides = ThreeWay { base: &after, ours, theirs: &before, prefers_theirs: false };
        sides.merge(&self.repo, except)?.map_err(GitError::UndoConflicts)
    }
}
