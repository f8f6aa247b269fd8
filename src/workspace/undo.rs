//! Reverts a closed story with one new commit.

use std::path::PathBuf;

use git2::Tree;

use super::WorkTree;
use super::branch::tip;
use super::closing::ClosedStory;
use super::error::GitError;
use super::integrate::{Landing, Replacement};
use super::merge::ThreeWay;
use super::staging::Contribution;
use super::tree::TreeChange;

pub struct UndoRequest<'a> {
    pub closing: &'a ClosedStory,
    /// The backlog, relative to the root, with the bytes that it will have on disk.
    pub replaced: &'a [Replacement<'a>],
    pub message: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The new commit's full id.
    pub commit: String,
    /// The number of reverted files, without the backlog.
    pub files: usize,
}

impl WorkTree {
    /// Reverts everything from the story's base to its closing commit, on top of HEAD, in index and
    /// files too. Changes nothing if there are conflicts or uncommitted changes in the way.
    pub fn undo(&self, request: &UndoRequest<'_>) -> Result<Undone, GitError> {
        let index = self.settled_index()?;
        let head = tip(&self.repo)?;
        let (Some(on), Some(ours)) = (head.commit, self.tree_at(head.commit)?) else {
            return Err(GitError::NothingToUndo);
        };
        let except: Vec<PathBuf> = request.replaced.iter().map(|one| one.path.to_owned()).collect();
        let changes = self.without_story(request.closing, &ours, &except)?;
        self.require_unedited(&changes)?;
        let files = changes.len();
        let landing = Landing {
            from: self.branch_commit(&head)?,
            ..Landing::of_changes(on, changes, "revert")
        };
        let replaced = self.replacements(&index, &Contribution::default(), request.replaced)?;
        let commit = self.land(self.ready(landing, replaced, request.message)?, None)?.commit;
        Ok(Undone { commit, files })
    }

    fn without_story(
        &self,
        closing: &ClosedStory,
        ours: &Tree<'_>,
        except: &[PathBuf],
    ) -> Result<Vec<TreeChange>, GitError> {
        let (before, after) = self.sides_of(closing)?;
        let before = before.map_or_else(|| self.tree_or_empty(None), Ok)?;
        let sides = ThreeWay { base: &after, ours, theirs: &before, prefers_theirs: false };
        sides.merge(&self.repo, except)?.map_err(GitError::UndoConflicts)
    }
}
