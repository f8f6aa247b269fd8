//! Changing the index for some paths and leaving all others alone.

use std::path::{Path, PathBuf};

use git2::{Index, IndexEntry, IndexTime};

use super::WorkTree;
use super::changes::{Entry, bytes_of};
use super::error::{Doing, GitError, if_found};

/// What the index is to say about one path; None: nothing.
pub(super) type Staged = (PathBuf, Option<IndexEntry>);

/// An index entry that makes git look at the file again before it trusts it.
pub(super) fn unstatted(path: &Path, entry: Entry) -> IndexEntry {
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

impl WorkTree {
    /// The index as it is on disk. The handle is shared in the repository, and
    /// a snapshot changes it in memory: no operation may start from another.
    pub(super) fn fresh_index(&self) -> Result<Index, GitError> {
        let mut index = self.repo.index().doing("open the index")?;
        index.read(true).doing("read the index")?;
        Ok(index)
    }

    pub(super) fn update_index(&self, staged: &[Staged]) -> Result<(), GitError> {
        if staged.is_empty() {
            return Ok(());
        }
        self.locking(&self.git_dir.join("index.lock"), || {
            let mut index = self.fresh_index()?;
            stage(&mut index, staged).doing("change the index")?;
            index.write().doing("write the index")
        })
    }
}

/// Removals first: a file can take the place of a folder, and the reverse.
fn stage(index: &mut Index, staged: &[Staged]) -> Result<(), git2::Error> {
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
