//! Changes the index for some paths only.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git2::{Index, IndexEntry, IndexTime};

use crate::files::nofollow;

use super::{Result, WorkTree};

use super::error::{GitContext, LibResult, if_found};
use super::tree::{TreeEntry, bytes_of};

/// A path and its new index entry; None removes it.
pub(super) type Staged = (PathBuf, Option<IndexEntry>);

/// An index entry without stat data, so that git reads the file before it trusts the entry.
pub(super) fn unstatted(path: &Path, entry: TreeEntry) -> IndexEntry {
    let never = IndexTime::new(0, 0);
    IndexEntry {
        ctime: never,
        mtime: never,
        dev: 0,
        ino: 0,
        mode: entry.mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: entry.id,
        flags: 0,
        flags_extended: 0,
        path: bytes_of(path).to_owned(),
    }
}

/// The same with the file's stat data, so that its content need not be read.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the index keeps 32 bits of each"
)]
pub(super) fn statted(entry: IndexEntry, found: &Metadata) -> IndexEntry {
    IndexEntry {
        mtime: IndexTime::new(found.mtime() as i32, found.mtime_nsec() as u32),
        ctime: IndexTime::new(found.ctime() as i32, found.ctime_nsec() as u32),
        ino: found.ino() as u32,
        uid: found.uid(),
        gid: found.gid(),
        file_size: found.len() as u32,
        ..entry
    }
}

/// Git's bits for the side of a conflict.
const STAGE: u16 = 0x3000;
/// Git does not look at the files of such entries.
const ASSUME_UNCHANGED: u16 = 0x8000;
const SKIP_WORKTREE: u16 = 0x4000;

pub(super) fn stage_of(entry: &IndexEntry) -> u16 {
    entry.flags & STAGE
}

pub(super) fn is_hidden(entry: &IndexEntry) -> bool {
    entry.flags & ASSUME_UNCHANGED != 0 || entry.flags_extended & SKIP_WORKTREE != 0
}

/// So that git looks at its file.
pub(super) fn shown(entry: IndexEntry) -> IndexEntry {
    IndexEntry {
        flags: entry.flags & !ASSUME_UNCHANGED,
        flags_extended: entry.flags_extended & !SKIP_WORKTREE,
        ..entry
    }
}

impl WorkTree {
    /// The index as it is on disk. The repository shares one handle: a scan undoes its changes in
    /// memory, or this reads the file again. Without `force`, libgit2 compares checksums first.
    pub(super) fn fresh_index(&self) -> Result<Index> {
        let mut index = self.repo.index().doing("open the index")?;
        let is_missing = || !nofollow::exists(&self.git_dir.join("index"));
        index.read(self.index_is_modified.get() || is_missing()).doing("read the index")?;
        self.index_is_modified.set(false);
        Ok(index)
    }

    pub(super) fn update_index(&self, staged: &[Staged]) -> Result<()> {
        if staged.is_empty() {
            return Ok(());
        }
        self.with_lock(&self.git_dir.join("index.lock"), || {
            let mut index = self.fresh_index()?;
            self.index_is_modified.set(true);
            stage(&mut index, staged).doing("change the index")?;
            index.write().doing("write the index")?;
            self.index_is_modified.set(false);
            Ok(())
        })
    }
}

/// Removals first: a file can replace a folder, and vice versa.
fn stage(index: &mut Index, staged: &[Staged]) -> LibResult<()> {
    let unmerged = index.has_conflicts();
    for (path, entry) in staged {
        if unmerged {
            if_found(index.conflict_remove(path))?;
        }
        if entry.is_none() {
            index.remove_path(path)?;
        }
    }
    staged.iter().filter_map(|(_, entry)| entry.as_ref()).try_for_each(|entry| index.add(entry))
}

/// Entries of the index in memory before a scan changes them.
pub(super) struct Entries {
    before: Vec<Staged>,
    /// The second in which the index was written.
    written: i64,
}

impl WorkTree {
    pub(super) fn entries(&self, index: &Index, paths: impl Iterator<Item = PathBuf>) -> Entries {
        let before = paths.map(|path| (path.clone(), index.get_path(&path, 0))).collect();
        let found = nofollow::look(&self.git_dir.join("index"));
        Entries { before, written: found.map_or(0, |found| found.mtime()) }
    }
}

impl Entries {
    /// All of these paths differ from the work tree. If an entry is as new as the index, only the
    /// content shows that, but libgit2 would trust the entry; so its size is cleared.
    pub fn restore(mut self, index: &mut Index) -> LibResult<()> {
        for entry in self.before.iter_mut().filter_map(|(_, entry)| entry.as_mut()) {
            if i64::from(entry.mtime.seconds()) >= self.written {
                entry.file_size = 0;
            }
        }
        stage(index, &self.before)
    }
}
