//! Which paths differ between two trees.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{Diff, DiffFile, FileMode, Oid, Repository, Tree};

use super::error::{Doing, GitError, if_found};

/// A file, link or nested repository in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub id: Oid,
    pub mode: u32,
}

impl Entry {
    pub fn is_nested_repository(self) -> bool {
        self.mode == u32::from(FileMode::Commit)
    }

    /// The same kind of thing on disk: both files, or both links.
    pub fn is_like(self, other: Self) -> bool {
        self.mode & 0o170_000 == other.mode & 0o170_000
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub path: PathBuf,
    pub old: Option<Entry>,
    pub new: Option<Entry>,
}

/// Sorted by path, one per path. A missing tree is an empty one.
pub(super) fn between(
    repo: &Repository,
    old: Option<&Tree<'_>>,
    new: Option<&Tree<'_>>,
) -> Result<Vec<Change>, GitError> {
    if old.map(Tree::id) == new.map(Tree::id) {
        return Ok(Vec::new());
    }
    Ok(changes_in(&repo.diff_tree_to_tree(old, new, None).doing("compare trees")?))
}

/// Sorted by path, one per path.
pub(super) fn changes_in(diff: &Diff<'_>) -> Vec<Change> {
    // A file that became a link comes as two deltas, a deletion and an addition.
    let mut changes = BTreeMap::new();
    for delta in diff.deltas() {
        for (file, is_old) in [(delta.old_file(), true), (delta.new_file(), false)] {
            note(&mut changes, &file, is_old);
        }
    }
    changes.into_values().collect()
}

fn note(changes: &mut BTreeMap<PathBuf, Change>, file: &DiffFile<'_>, is_old: bool) {
    let (Some(path), false) = (file.path_bytes(), file.id().is_zero()) else {
        return;
    };
    let path = path_of(path);
    let change = changes.entry(path.clone()).or_insert(Change { path, old: None, new: None });
    let side = if is_old { &mut change.old } else { &mut change.new };
    *side = Some(Entry { id: file.id(), mode: u32::from(file.mode()) });
}

/// What a tree has at a path, unless that is a folder.
pub(super) fn entry_at(tree: Option<&Tree<'_>>, path: &Path) -> Result<Option<Entry>, GitError> {
    let Some(tree) = tree else { return Ok(None) };
    let found = if_found(tree.get_path(path)).doing("look into a tree")?;
    Ok(found
        .filter(|e| e.kind() != Some(git2::ObjectType::Tree))
        .map(|e| Entry { id: e.id(), mode: e.filemode().unsigned_abs() }))
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

pub(super) fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}
