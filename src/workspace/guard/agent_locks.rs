//! Lock files of an agent's git that was killed with its attempt.
//!
//! If an attempt is cut short by a timeout, a signal or its driver's death, its git may leave lock
//! files. A lock is the agent's if it appeared after the attempt began and no git process runs in
//! the repository. After an agent that ended by itself, locks are left alone.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::workspace::error::{GitError, file_error};
use crate::workspace::holders::somebody_works_in;
use crate::workspace::locks::write_note;
use crate::workspace::{OWN_GIT_FOLDER, WorkTree};

/// A file in the work tree's own git folder, present during an attempt.
const NOTE: &str = "attempt";

impl WorkTree {
    /// From now on a lock may be the agent's.
    pub fn begin_attempt(&self) -> Result<(), GitError> {
        let note = self.attempt_note();
        write_note(&note, &[]).map_err(file_error("write", &note))
    }

    /// Call after all processes of the attempt have ended; returns the removed locks.
    pub fn end_attempt(&self, cut_short: bool) -> Result<Vec<PathBuf>, GitError> {
        let removed = if cut_short { self.locks_of_attempt()? } else { Vec::new() };
        remove(&removed)?;
        let note = self.attempt_note();
        match fs::remove_file(&note) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(removed),
            gone => gone.map(|()| removed).map_err(file_error("delete", &note)),
        }
    }

    /// Locks that came since the attempt began and that no git process holds.
    pub(super) fn locks_of_attempt(&self) -> Result<Vec<PathBuf>, GitError> {
        let note = self.attempt_note();
        match note.metadata().and_then(|note| note.modified()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            began => Ok(self.locks_since(began.map_err(file_error("read", &note))?)),
        }
    }

    pub(super) fn remove_locks_of_attempt(&self) -> Result<(), GitError> {
        remove(&self.locks_of_attempt()?)
    }

    fn attempt_note(&self) -> PathBuf {
        self.git_dir.join(OWN_GIT_FOLDER).join(NOTE)
    }

    fn locks_since(&self, began: SystemTime) -> Vec<PathBuf> {
        let mut locks = BTreeSet::new();
        for folder in [&self.git_dir, &self.common_dir] {
            find_locks(folder, false, &mut locks);
            find_locks(&folder.join("refs"), true, &mut locks);
        }
        let came_since = |lock: &PathBuf| {
            let found = lock.symlink_metadata().ok().filter(fs::Metadata::is_file);
            found.and_then(|found| found.modified().ok()).is_some_and(|time| time >= began)
        };
        let folders: [&Path; 3] = [&self.root, &self.git_dir, &self.common_dir];
        let is_left = |lock: &PathBuf| came_since(lock) && !somebody_works_in(&folders, lock);
        locks.into_iter().filter(is_left).collect()
    }
}

fn remove(locks: &[PathBuf]) -> Result<(), GitError> {
    locks.iter().try_for_each(|lock| fs::remove_file(lock).map_err(file_error("delete", lock)))
}

fn find_locks(folder: &Path, deep: bool, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if deep {
                find_locks(&path, deep, found);
            }
        } else if path.extension().is_some_and(|ending| ending == "lock") {
            found.insert(path);
        }
    }
}
