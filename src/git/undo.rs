//! Taking a closed story back, as one new commit.

use std::path::{Path, PathBuf};

use git2::{Oid, Tree};

use super::WorkTree;
use super::changes::{Change, between, bytes_of, entry_at};
use super::closing::Closing;
use super::error::{Doing, GitError};
use super::head;
use super::index::{Staged, unstatted};
use super::tree_edit::{Edit, edited};

pub struct UndoRequest<'a> {
    pub closing: &'a Closing,
    /// The backlog, relative to the root, with the bytes that it will have on disk.
    pub replaced: &'a [(PathBuf, Vec<u8>)],
    pub message: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The new commit's full id.
    pub commit: String,
    /// Files that are as they were before the story, the backlog not counted.
    pub files: usize,
}

impl WorkTree {
    /// Reverts everything from the story's base to its closing commit on top of HEAD, in files
    /// and index too. With conflicts, or where uncommitted work is in the way, nothing is changed.
    pub fn undo(&self, request: &UndoRequest<'_>) -> Result<Undone, GitError> {
        let index = self.settled_index()?;
        let head = head::tip(&self.repo)?;
        let home = self.home_commit(&head)?;
        let Some(tip) = head.commit else { return Err(GitError::NothingToUndo) };
        let tip = self.repo.find_commit(tip).doing("read HEAD's commit")?;
        let ours = tip.tree().doing("read HEAD's tree")?;
        let except: Vec<PathBuf> = request.replaced.iter().map(|(path, _)| path.clone()).collect();
        let merged = self.without_story(request.closing, &ours, &except)?;
        let changes = self.changes_to(&ours, &merged, &except)?;
        let mut staged: Vec<Staged> = changes.iter().map(staged_as_changed).collect();
        for (path, bytes) in request.replaced {
            let entry = self.replacement(&index, path, bytes)?;
            staged.push((path.clone(), Some(unstatted(path, entry))));
        }
        let commit = self.commit_of(&ours, &staged, &tip, request.message)?;
        self.update_index(&staged)?;
        self.write_files(&merged, &changes)?;
        let subject = request.message.lines().next().unwrap_or_default();
        self.move_home(home, Some(commit), &format!("revert: {subject}"))?;
        Ok(Undone { commit: commit.to_string(), files: changes.len() })
    }

    fn without_story(
        &self,
        closing: &Closing,
        ours: &Tree<'_>,
        except: &[PathBuf],
    ) -> Result<Tree<'_>, GitError> {
        let (before, after) = self.sides_of(closing)?;
        let before = match before {
            Some(tree) => tree,
            None => self.tree(&edited(&self.repo, None, &[])?.to_string())?,
        };
        let merged =
            self.repo.merge_trees(&after, ours, &before, None).doing("revert the story")?;
        let merged = self.settle(merged, except)?.map_err(GitError::UndoConflicts)?;
        self.repo.find_tree(merged).doing("read the merged tree")
    }

    /// Only where the files on disk are as they are committed: nothing of the user's is overwritten.
    fn changes_to(
        &self,
        ours: &Tree<'_>,
        merged: &Tree<'_>,
        except: &[PathBuf],
    ) -> Result<Vec<Change>, GitError> {
        let now = self.repo.find_tree(self.scan()?).doing("read the snapshot")?;
        let mut changes = between(&self.repo, Some(ours), Some(merged))?;
        changes.retain(|change| !except.contains(&change.path));
        let mut in_the_way = Vec::new();
        for change in &changes {
            let edited = entry_at(Some(&now), &change.path)? != change.old;
            if edited || self.is_in_the_way(change) {
                in_the_way.push(shown(&change.path));
            }
        }
        if !in_the_way.is_empty() {
            return Err(GitError::UncommittedInTheWay(in_the_way));
        }
        self.require_writable(&changes)?;
        Ok(changes)
    }

    fn commit_of(
        &self,
        ours: &Tree<'_>,
        staged: &[Staged],
        tip: &git2::Commit<'_>,
        message: &str,
    ) -> Result<Oid, GitError> {
        let edit = |(path, entry): &'_ Staged| -> (Vec<u8>, Option<super::changes::Entry>) {
            let entry = entry.as_ref().map(super::commit::entry_of);
            (bytes_of(path).to_vec(), entry)
        };
        let edits: Vec<_> = staged.iter().map(edit).collect();
        let edits: Vec<Edit<'_>> = edits.iter().map(|(path, entry)| (&path[..], *entry)).collect();
        let tree = edited(&self.repo, Some(ours), &edits)?;
        let tree = self.repo.find_tree(tree).doing("read a tree")?;
        self.commit_for_branch(&tree, std::slice::from_ref(tip), message)
    }
}

fn staged_as_changed(change: &Change) -> Staged {
    (change.path.clone(), change.new.map(|entry| unstatted(&change.path, entry)))
}

pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}
