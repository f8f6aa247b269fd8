//! Trees: comparing them by path, changing some paths of one, and merging three in memory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{
    Diff, DiffFile, FileFavor, FileMode, Index, IndexConflict, IndexEntry, MergeOptions,
    ObjectType, Oid, Repository, Tree,
};

use super::Result;
use super::error::{GitContext, LibResult, if_found};

/// A file, link or nested repository in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeEntry {
    pub id: Oid,
    pub mode: u32,
}

impl From<&IndexEntry> for TreeEntry {
    fn from(entry: &IndexEntry) -> Self {
        Self { id: entry.id, mode: entry.mode }
    }
}

impl TreeEntry {
    pub fn is_nested_repository(self) -> bool {
        self.mode == u32::from(FileMode::Commit)
    }

    /// The same kind of thing on disk: both files, or both links.
    pub fn is_like(self, other: Self) -> bool {
        self.mode & 0o170_000 == other.mode & 0o170_000
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeChange {
    pub path: PathBuf,
    pub old: Option<TreeEntry>,
    pub new: Option<TreeEntry>,
}

/// Sorted by path, one per path. A missing tree is an empty one.
pub(super) fn between(
    repo: &Repository,
    old: Option<&Tree<'_>>,
    new: Option<&Tree<'_>>,
) -> Result<Vec<TreeChange>> {
    if old.map(Tree::id) == new.map(Tree::id) {
        return Ok(Vec::new());
    }
    Ok(changes_in(&repo.diff_tree_to_tree(old, new, None).doing("compare trees")?))
}

/// Sorted by path, one per path.
pub(super) fn changes_in(diff: &Diff<'_>) -> Vec<TreeChange> {
    // A file that became a link comes as two deltas, a deletion and an addition.
    let mut changes = BTreeMap::new();
    for delta in diff.deltas() {
        for (file, is_old) in [(delta.old_file(), true), (delta.new_file(), false)] {
            note(&mut changes, &file, is_old);
        }
    }
    changes.into_values().collect()
}

fn note(changes: &mut BTreeMap<PathBuf, TreeChange>, file: &DiffFile<'_>, is_old: bool) {
    let (Some(path), false) = (file.path_bytes(), file.id().is_zero()) else { return };
    let path = path_of(path);
    let change = changes.entry(path.clone()).or_insert(TreeChange { path, old: None, new: None });
    let side = if is_old { &mut change.old } else { &mut change.new };
    *side = Some(TreeEntry { id: file.id(), mode: u32::from(file.mode()) });
}

/// The entry of a tree at a path; None for a folder.
pub(super) fn entry_at(tree: Option<&Tree<'_>>, path: &Path) -> Result<Option<TreeEntry>> {
    let Some(tree) = tree else { return Ok(None) };
    let found = if_found(tree.get_path(path)).doing("read a tree")?;
    Ok(found
        .filter(|e| e.kind() != Some(ObjectType::Tree))
        .map(|e| TreeEntry { id: e.id(), mode: e.filemode().unsigned_abs() }))
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

pub(super) fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// A path and its new entry; None removes it.
pub(super) type Edit<'a> = (&'a [u8], Option<TreeEntry>);

/// What happens to one name in a folder.
#[derive(Default)]
struct Edits<'a> {
    itself: Option<Option<TreeEntry>>,
    below: Vec<Edit<'a>>,
}

/// The tree with the edits applied; a missing tree is an empty one.
pub(super) fn edited(
    repo: &Repository,
    tree: Option<&Tree<'_>>,
    edits: &[Edit<'_>],
) -> Result<Oid> {
    match folder(repo, tree, edits).doing("write a tree")? {
        Some(id) => Ok(id),
        None => repo.treebuilder(None).and_then(|empty| empty.write()).doing("write a tree"),
    }
}

/// None: nothing is left in the folder, so it must not be in its parent.
fn folder(
    repo: &Repository,
    tree: Option<&Tree<'_>>,
    edits: &[Edit<'_>],
) -> LibResult<Option<Oid>> {
    let mut builder = repo.treebuilder(tree)?;
    for (name, edits) in by_name(edits) {
        match outcome(repo, tree, name, &edits)? {
            Some(entry) => drop(builder.insert(name, entry.id, entry.mode.cast_signed())?),
            None if builder.get(name)?.is_some() => builder.remove(name)?,
            None => {}
        }
    }
    if builder.is_empty() { Ok(None) } else { builder.write().map(Some) }
}

fn by_name<'a>(edits: &[Edit<'a>]) -> BTreeMap<&'a [u8], Edits<'a>> {
    let mut names: BTreeMap<&[u8], Edits<'_>> = BTreeMap::new();
    for &(path, entry) in edits {
        let mut parts = path.splitn(2, |byte| *byte == b'/');
        let name = parts.next().unwrap_or_default();
        let edits = names.entry(name).or_default();
        match parts.next() {
            Some(rest) => edits.below.push((rest, entry)),
            None => edits.itself = Some(entry),
        }
    }
    names
}

/// The entry of a name after the edits. A new file replaces a folder with its name; a removed file
/// makes room for a folder.
fn outcome(
    repo: &Repository,
    tree: Option<&Tree<'_>>,
    name: &[u8],
    edits: &Edits<'_>,
) -> LibResult<Option<TreeEntry>> {
    if let Some(Some(entry)) = edits.itself {
        return Ok(Some(entry));
    }
    let before = tree.and_then(|tree| tree.get_name_bytes(name));
    let subtree = match &before {
        Some(entry) if entry.kind() == Some(ObjectType::Tree) => Some(repo.find_tree(entry.id())?),
        _ => None,
    };
    let kept = before.filter(|_| edits.itself.is_none() && subtree.is_none());
    let as_folder = |id| TreeEntry { id, mode: 0o040_000 };
    Ok(match folder(repo, subtree.as_ref(), &edits.below)? {
        Some(id) => Some(as_folder(id)),
        None => kept.map(|e| TreeEntry { id: e.id(), mode: e.filemode().unsigned_abs() }),
    })
}

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
    ) -> Result<Result<Vec<TreeChange>, Vec<String>>> {
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
    ) -> Result<Result<Vec<TreeChange>, Vec<String>>> {
        let conflicts = conflicts(&merged)?;
        let is_excepted = |entry: &IndexEntry| except.contains(&path_of(&entry.path));
        let (harmless, real): (Vec<_>, Vec<_>) =
            conflicts.into_iter().partition(|one| sides(one).all(is_excepted));
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
) -> Result<Tree<'a>> {
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

fn conflicts(index: &Index) -> Result<Vec<IndexConflict>> {
    let conflicts = index.conflicts().doing("read the conflicts")?;
    conflicts.collect::<Result<_, _>>().doing("read the conflicts")
}

/// The paths of all conflicts, for people.
pub(super) fn conflicting_paths(index: &Index) -> Result<Vec<String>> {
    if !index.has_conflicts() {
        return Ok(Vec::new());
    }
    Ok(conflicts(index)?.iter().filter_map(conflict_path).collect())
}

fn conflict_path(conflict: &IndexConflict) -> Option<String> {
    sides(conflict).next().map(|entry| String::from_utf8_lossy(&entry.path).into_owned())
}

fn sides(conflict: &IndexConflict) -> impl Iterator<Item = &IndexEntry> {
    [&conflict.our, &conflict.their, &conflict.ancestor].into_iter().flatten()
}

fn keep_ours(merged: &mut Index, conflict: IndexConflict) -> LibResult<()> {
    for entry in sides(&conflict) {
        // The second and third side of the same path find it resolved.
        let _resolved = merged.conflict_remove(&path_of(&entry.path));
    }
    let Some(mut ours) = conflict.our else { return Ok(()) };
    ours.flags &= !0x3000;
    merged.add(&ours)
}
