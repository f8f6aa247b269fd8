//! The work tree as a git tree, without touching index, HEAD or files.
//!
//! Git's index covers unchanged tracked files, as far as it is believed. What the driver has read is
//! known, so that scans do not read it again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use git2::{DiffDelta, DiffOptions, Index, IndexEntry, Oid, Repository, Tree};

use crate::files::nofollow;

use super::error::{GitContext, LibResult};
use super::index::unstatted;
use super::reading::Reading;
use super::tree::{TreeEntry, bytes_of, changes_in, edited, entry_at, path_of};
use super::{OWN_FOLDER, Result, WorkTree, branch};

/// Git's bit for files that a sparse checkout leaves out of the work tree.
const SKIP_WORKTREE: u16 = 1 << 14;
/// Older index formats cannot hold that bit.
const FIRST_VERSION_WITH_BITS: u32 = 3;
/// Above this many changes, reading the index again is faster than undoing them.
const FEW: usize = 1000;

impl WorkTree {
    pub(super) fn tree_now(&self) -> Result<Tree<'_>> {
        self.repo.find_tree(self.scan()?.tree).doing("read the snapshot")
    }

    /// The work tree as it is now; costs about as much as `git status`.
    pub(super) fn scan(&self) -> Result<Scan> {
        let _reading = Reading::begin();
        self.with_rights(|| self.without_pipes(|| self.scan_files()))
    }

    fn scan_files(&self) -> Result<Scan> {
        let mut files = self.known_files();
        let mut index = self.fresh_index()?;
        let is_doubted = self.doubt(&mut index, &mut files).doing("read the index")?;
        let differences = differences(&self.repo, &index).doing(READ_FILES)?;
        self.believe_same(&files, &index, &differences);
        let mut gone = differences.iter().filter(|(_, exists)| !exists);
        gone.try_for_each(|(path, _)| self.require_gone(path))?;
        let beside = self.beside();
        let (hidden, differences): (Differences, _) =
            differences.into_iter().partition(|(path, _)| beside.ignored(path).is_some());
        let staged = self.beside_in(&index);
        let paths = differences.iter().map(|(path, _)| path).chain(&staged);
        let before = self.entries(&index, paths.cloned());
        let is_simple = !is_doubted
            && differences.len() < FEW
            && !index.has_conflicts()
            && left_out_by_sparse_checkout(&index).is_empty()
            && index.find_prefix(format!("{OWN_FOLDER}/")).is_err();
        self.index_is_modified.set(true);
        let (differences, large) = self.without_large_files(differences);
        let nested = stage_all(&differences, &mut index, &mut |path| files.knows(path));
        let nested = nested.doing(READ_FILES)?;
        let odb = self.repo.odb().doing("open the repository's objects")?;
        files.verify(&odb, &mut index).doing(READ_FILES)?;
        let head = branch::tip(&self.repo)?.commit;
        self.unstage(&mut index, &staged, head)?;
        let tree = self.tree_of_index(head, &index, &files.unchanged)?;
        self.remember(&files, &index);
        let entry = |(path, _): (PathBuf, bool)| (path.clone(), index.get_path(&path, 0));
        let mut found: BTreeMap<_, _> = differences.into_iter().map(entry).collect();
        found.extend(files.unchanged.into_iter().map(|(path, entry)| (path, Some(entry))));
        if is_simple {
            before.restore(&mut index).doing("restore the index")?;
            self.index_is_modified.set(false);
        }
        let beside = hidden.into_iter().map(|(path, _)| path).chain(staged).collect();
        Ok(Scan { tree, head, nested, large, beside, found })
    }

    /// In memory, these are as in the commit.
    fn unstage(&self, index: &mut Index, paths: &[PathBuf], head: Option<Oid>) -> Result<()> {
        let head = self.tree_at(head)?;
        for path in paths {
            let committed = entry_at(head.as_ref(), path)?;
            let done = match committed.map(|entry| unstatted(path, entry)) {
                Some(entry) => index.add(&entry),
                None => index.remove_path(path),
            };
            done.doing(READ_FILES)?;
        }
        Ok(())
    }

    /// Without files that are too large to be read, which are returned.
    fn without_large_files(&self, found: Differences) -> (Differences, Vec<PathBuf>) {
        let (large, found): (Differences, _) =
            found.into_iter().partition(|(path, exists)| *exists && self.is_too_large(path));
        (found, large.into_iter().map(|(path, _)| path).collect())
    }

    pub(super) fn is_too_large(&self, path: &Path) -> bool {
        let found = nofollow::look(&self.root.join(path));
        found.is_ok_and(|found| found.is_file() && found.len() > LARGEST)
    }

    /// Built from the differences to HEAD: libgit2's own method looks up every object.
    fn tree_of_index(
        &self,
        head: Option<Oid>,
        index: &Index,
        known: &BTreeMap<PathBuf, IndexEntry>,
    ) -> Result<Oid> {
        let head = self.tree_at(head)?;
        let diff = self.repo.diff_tree_to_index(head.as_ref(), Some(index), None);
        let changes = changes_in(&diff.doing("compare the index with HEAD")?);
        let changes = changes.iter().map(|change| (&change.path, change.new));
        let known = known.iter().map(|(path, entry)| (path, Some(TreeEntry::from(entry))));
        let edits: BTreeMap<&PathBuf, Option<TreeEntry>> = changes.chain(known).collect();
        let edits: Vec<_> = edits.into_iter().map(|(path, new)| (bytes_of(path), new)).collect();
        edited(&self.repo, head.as_ref(), &edits)
    }
}

/// What a scan of the work tree found.
pub(super) struct Scan {
    pub tree: Oid,
    /// The commit that HEAD names.
    pub head: Option<Oid>,
    /// Repositories inside the work tree, which cannot be a part of it.
    pub nested: Vec<PathBuf>,
    /// Files that are too large to be read: they are as in the index.
    pub large: Vec<PathBuf>,
    /// Files that were ignored when the story began, and that git would look at now.
    pub beside: BTreeSet<PathBuf>,
    /// Files that differ from the index, with the entries that they would have in it.
    pub found: BTreeMap<PathBuf, Option<IndexEntry>>,
}

/// Larger files are in no snapshot and no commit: reading one takes longer than all else.
pub(super) const LARGEST: u64 = 1 << 30;

/// Paths, and whether the work tree has them.
type Differences = Vec<(PathBuf, bool)>;

const READ_FILES: &str = "read the work tree (is every file readable?)";

/// Stages the work tree in the in-memory index, except files for which `is_known` is true; returns
/// the nested repositories that were left out.
pub(super) fn stage_all(
    differences: &[(PathBuf, bool)],
    index: &mut Index,
    is_known: &mut dyn FnMut(&Path) -> bool,
) -> LibResult<Vec<PathBuf>> {
    index.remove_dir(Path::new(OWN_FOLDER), 0)?;
    let sparse = left_out_by_sparse_checkout(index);
    let mut left_out = Vec::new();
    for (path, exists) in differences {
        // libgit2 marks nested repositories with a slash, and cannot add them.
        if bytes_of(path).ends_with(b"/") {
            left_out.push(path.clone());
            continue;
        }
        let is_ours = !path.starts_with(OWN_FOLDER) && !sparse.contains(path);
        if is_ours && !exists {
            index.remove_path(path)?;
        } else if is_ours && !is_known(path) {
            index.add_path(path)?;
        }
    }
    Ok(left_out)
}

/// Paths where index and work tree differ, and whether the work tree has them. Like libgit2's
/// `add_all`, but without reading the attributes of each path.
pub(super) fn differences(repo: &Repository, index: &Index) -> LibResult<Differences> {
    let mut options = DiffOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).include_typechange(true);
    let diff = repo.diff_index_to_workdir(Some(index), Some(&mut options))?;
    let path = |delta: DiffDelta<'_>| {
        let path = delta.old_file().path_bytes().map(path_of);
        path.map(|path| (path, delta.new_file().exists()))
    };
    Ok(diff.deltas().filter_map(path).collect())
}

pub(super) fn left_out_by_sparse_checkout(index: &Index) -> HashSet<PathBuf> {
    if index.version() < FIRST_VERSION_WITH_BITS {
        return HashSet::new();
    }
    let left_out = index.iter().filter(|entry| entry.flags_extended & SKIP_WORKTREE != 0);
    left_out.map(|entry| path_of(&entry.path)).collect()
}
