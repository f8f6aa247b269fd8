//! Three-way merges of trees, in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::{FileFavor, Index, IndexConflict, MergeOptions, Repository, Tree};

use super::error::{GitContext, GitError};
use super::tree::{TreeChange, between, bytes_of, changes_in, edited, path_of};

pub(super) struct ThreeWay<'a> {
    pub base: &'a Tree<'a>,
    pub ours: &'a Tree<'a>,
    pub theirs: &'a Tree<'a>,
    /// If both changed a line, use theirs instead of a conflict.
    pub prefers_theirs: bool,
}

impl ThreeWay<'_> {
    /// The changes to `ours` that add the other side's, or the conflicting paths. Paths in `except`
    /// stay as in `ours`.
    ///
    /// Reads no files unless both sides changed the same path.
    pub fn merge(
        &self,
        repo: &Repository,
        except: &[PathBuf],
    ) -> Result<Result<Vec<TreeChange>, Vec<String>>, GitError> {
        let ours = between(repo, Some(self.base), Some(self.ours))?;
        let mut theirs = between(repo, Some(self.base), Some(self.theirs))?;
        let ours: BTreeMap<&Path, &TreeChange> =
            ours.iter().map(|change| (change.path.as_path(), change)).collect();
        let is_new = |change: &TreeChange| ours.get(change.path.as_path()) != Some(&change);
        theirs.retain(|change| !except.contains(&change.path) && is_new(change));
        if !overlap(&ours, &theirs) {
            return Ok(Ok(theirs));
        }
        let mut options = MergeOptions::new();
        if self.prefers_theirs {
            options.file_favor(FileFavor::Theirs);
        }
        let merged = repo.merge_trees(self.base, self.ours, self.theirs, Some(&options));
        self.changes_to(repo, merged.doing("merge two trees")?, except)
    }

    fn changes_to(
        &self,
        repo: &Repository,
        mut merged: Index,
        except: &[PathBuf],
    ) -> Result<Result<Vec<TreeChange>, Vec<String>>, GitError> {
        let conflicts = conflicts(&merged)?;
        let (harmless, real): (Vec<_>, Vec<_>) =
            conflicts.into_iter().partition(|conflict| concerns_only(conflict, except));
        if !real.is_empty() {
            return Ok(Err(real.iter().filter_map(conflict_path).collect()));
        }
        for conflict in harmless {
            keep_ours(&mut merged, conflict).doing("resolve a conflict")?;
        }
        let diff = repo.diff_tree_to_index(Some(self.ours), Some(&merged), None);
        let mut changes = changes_in(&diff.doing("compare the merged tree")?);
        changes.retain(|change| !except.contains(&change.path));
        Ok(Ok(changes))
    }
}

/// The tree with the changes applied.
pub(super) fn with_changes<'a>(
    repo: &'a Repository,
    tree: &Tree<'_>,
    changes: &[TreeChange],
) -> Result<Tree<'a>, GitError> {
    let edits: Vec<_> = changes.iter().map(|c| (bytes_of(&c.path), c.new)).collect();
    repo.find_tree(edited(repo, Some(tree), &edits)?).doing("read a tree")
}

/// The same path, or a file on one side where the other has a folder.
fn overlap(ours: &BTreeMap<&Path, &TreeChange>, theirs: &[TreeChange]) -> bool {
    theirs.iter().any(|change| {
        let path = change.path.as_path();
        let below = ours.range(path..).next().is_some_and(|(next, _)| next.starts_with(path));
        below || path.ancestors().any(|folder| ours.contains_key(folder))
    })
}

fn conflicts(index: &Index) -> Result<Vec<IndexConflict>, GitError> {
    let conflicts = index.conflicts().doing("read the conflicts")?;
    conflicts.collect::<Result<_, _>>().doing("read the conflicts")
}

/// The paths of all conflicts, for people.
pub(super) fn unmerged(index: &Index) -> Result<Vec<String>, GitError> {
    if !index.has_conflicts() {
        return Ok(Vec::new());
    }
    Ok(conflicts(index)?.iter().filter_map(conflict_path).collect())
}

fn conflict_path(conflict: &IndexConflict) -> Option<String> {
    let sides = [&conflict.our, &conflict.their, &conflict.ancestor];
    let entry = sides.into_iter().flatten().next()?;
    Some(String::from_utf8_lossy(&entry.path).into_owned())
}

fn concerns_only(conflict: &IndexConflict, except: &[PathBuf]) -> bool {
    let sides = [&conflict.our, &conflict.their, &conflict.ancestor];
    sides.into_iter().flatten().all(|entry| except.contains(&path_of(&entry.path)))
}

fn keep_ours(merged: &mut Index, conflict: IndexConflict) -> Result<(), git2::Error> {
    let sides = [&conflict.our, &conflict.their, &conflict.ancestor];
    for entry in sides.into_iter().flatten() {
        // The second and third side of the same path find it resolved.
        let _resolved = merged.conflict_remove(&path_of(&entry.path));
    }
    let Some(mut ours) = conflict.our else {
        return Ok(());
    };
    ours.flags &= !0x3000;
    merged.add(&ours)
}
