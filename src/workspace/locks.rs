//! Lock files: waits for those of other git processes, and removes those that a killed ralph left.
//!
//! libgit2 locks with files, and a killed process leaves them. So before ralph takes a lock, it
//! writes a note with the lock's name and its own process, and removes the note afterwards. A lock
//! is removed only if a note names it, the writer of the note is dead, the lock was created right
//! after the note, and no git process runs in the repository.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use git2::ErrorCode;

use super::error::{GitError, file_error};
use super::holders::{Writer, somebody_works_in};
use super::tree::{bytes_of, path_of};
use super::{OWN_GIT_FOLDER, WorkTree};

/// Notes are in the work tree's own git folder. The writer's process follows the name, because two
/// processes may write at the same time.
const NOTE: &str = "writing-";
/// From the note to the lock; a later lock is of another process.
const LONGEST_WRITE: Duration = Duration::from_mins(1);

/// Removed after the write, whether it succeeded or not.
struct LockNote(PathBuf);

impl Drop for LockNote {
    fn drop(&mut self) {
        // A note that stays is harmless: it names a lock that no longer exists.
        let _ = fs::remove_file(&self.0);
    }
}

impl WorkTree {
    /// Waits until the lock is free, then notes it and calls `act`, which takes it.
    pub(super) fn locking<T>(
        &self,
        lock: &Path,
        mut act: impl FnMut() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        patiently(self.lock_patience, lock, || self.noting(&[lock], &mut act))
    }

    /// The same without waiting, and for several locks.
    pub(super) fn noting<T>(
        &self,
        locks: &[&Path],
        act: impl FnOnce() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        if let Some(held) = locks.iter().find(|lock| lock.symlink_metadata().is_ok()) {
            return Err(GitError::Locked((*held).to_owned()));
        }
        let note = self.note(locks)?;
        let done = act()?;
        for lock in locks {
            if let Err(error) = remove_second_name(lock) {
                // The next process tries again.
                std::mem::forget(note);
                return Err(file_error("delete", lock)(error));
            }
        }
        Ok(done)
    }

    /// Not synced: a kill loses no writes, and after a power cut no process holds a lock.
    fn note(&self, locks: &[&Path]) -> Result<LockNote, GitError> {
        let folder = self.git_dir.join(OWN_GIT_FOLDER);
        let note = LockNote(folder.join(format!("{NOTE}{}", Writer::this_process())));
        let names: Vec<&[u8]> = locks.iter().map(|lock| bytes_of(lock)).collect();
        let written = write_note(&note.0, &names.join(&0));
        written.map_err(file_error("write", &note.0))?;
        Ok(note)
    }

    /// Removes locks that are provably left by killed processes, and returns them. Fails after a
    /// while if a git process is running in the repository.
    ///
    /// Only for the holder of the lease: an attempt that is noted then was cut short.
    pub fn remove_own_locks(&self) -> Result<Vec<PathBuf>, GitError> {
        let mut removed = self.end_attempt(true)?;
        for note in self.notes_of_the_dead()? {
            let names = fs::read(&note).map_err(file_error("read", &note))?;
            for lock in names.split(|byte| *byte == 0).map(path_of) {
                if self.is_left_behind(&lock, &note)? {
                    fs::remove_file(&lock).map_err(file_error("delete", &lock))?;
                    removed.push(lock);
                }
            }
            fs::remove_file(&note).map_err(file_error("delete", &note))?;
        }
        Ok(removed)
    }

    fn notes_of_the_dead(&self) -> Result<Vec<PathBuf>, GitError> {
        let folder = self.git_dir.join(OWN_GIT_FOLDER);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(file_error("list", &folder))?,
        };
        let is_of_a_dead_one = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(NOTE));
            name.and_then(Writer::parse).is_some_and(|writer| !writer.is_alive())
        };
        Ok(entries.flatten().map(|entry| entry.path()).filter(is_of_a_dead_one).collect())
    }

    fn is_left_behind(&self, lock: &Path, note: &Path) -> Result<bool, GitError> {
        let is_a_lock = lock.extension().is_some_and(|ending| ending == "lock")
            && (lock.starts_with(&self.git_dir) || lock.starts_with(&self.common_dir));
        let (Ok(found), Ok(noted)) = (lock.symlink_metadata(), note.metadata()) else {
            return Ok(false);
        };
        let times = (found.modified().ok(), noted.modified().ok());
        if !is_a_lock || !found.is_file() || !came_with(times) {
            return Ok(false);
        }
        // Processes that the agent left may be ending right now.
        patiently(self.lock_patience, lock, || {
            let busy = somebody_works_in(&[&self.root, &self.git_dir, &self.common_dir], lock);
            if busy { Err(GitError::Locked(lock.to_owned())) } else { Ok(true) }
        })
    }
}

/// Readable only by its owner.
pub(super) fn write_note(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    let file = options.open(path).or_else(|error| match (error.kind(), path.parent()) {
        (ErrorKind::NotFound, Some(folder)) => {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            options.open(path)
        }
        _ => Err(error),
    });
    file?.write_all(bytes)
}

/// libgit2 links a new file to its name and ignores it if the first name, the lock, cannot be
/// removed. Removes the lock only if both names are the same file.
fn remove_second_name(lock: &Path) -> io::Result<()> {
    let (Ok(left), Ok(named)) =
        (lock.symlink_metadata(), lock.with_extension("").symlink_metadata())
    else {
        return Ok(());
    };
    let is_the_same = (left.dev(), left.ino()) == (named.dev(), named.ino());
    if is_the_same { fs::remove_file(lock) } else { Ok(()) }
}

fn came_with((lock, note): (Option<SystemTime>, Option<SystemTime>)) -> bool {
    let (Some(lock), Some(note)) = (lock, note) else { return false };
    lock.duration_since(note).is_ok_and(|after| after <= LONGEST_WRITE)
}

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Repeats `act` as long as it finds a lock taken, at most for `patience`.
///
/// `act` must read from disk: the previous holder of the lock may have changed it.
pub(super) fn patiently<T>(
    patience: Duration,
    lock: &Path,
    mut act: impl FnMut() -> Result<T, GitError>,
) -> Result<T, GitError> {
    let deadline = Instant::now() + patience;
    let mut pause = FIRST_PAUSE;
    loop {
        match act() {
            Err(error) if is_lock(&error) && Instant::now() < deadline => {
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) if is_lock(&error) => return Err(GitError::Locked(lock.to_owned())),
            result => return result,
        }
    }
}

pub(super) fn is_lock(error: &GitError) -> bool {
    match error {
        GitError::Git { source, .. } => source.code() == ErrorCode::Locked,
        error => matches!(error, GitError::Locked(_)),
    }
}
