//! Locks: waiting for those of other git processes, and removing our own that a killed process left.
//!
//! libgit2 locks with files, and a process that is killed leaves them: the next one would wait for
//! a dead one. So before a lock is taken its name is noted, with who takes it, and the note goes
//! when the work is done. Nobody's lock goes without these proofs: a note names it; whoever wrote
//! the note is dead; the lock came with the note; and no git process is at work in the repository.

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

/// In the work tree's own git folder, followed by who it is of: two processes may write at the same
/// time.
const NOTE: &str = "writing-";
/// From the note to the lock; what comes later is somebody else's.
const LONGEST_WRITE: Duration = Duration::from_mins(1);

/// Gone with the write that it is about, whether that went well or not.
struct LockNote(PathBuf);

impl Drop for LockNote {
    fn drop(&mut self) {
        // One that stays names a lock that is not there.
        let _ = fs::remove_file(&self.0);
    }
}

impl WorkTree {
    /// Does what takes the lock: waits for others that hold it, and notes that it is ours then.
    pub(super) fn locking<T>(
        &self,
        lock: &Path,
        mut act: impl FnMut() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        patiently(self.lock_patience, lock, || self.noting(&[lock], &mut act))
    }

    /// The same at once or not at all, and for more than one.
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

    /// Not synced: a kill leaves what was written, and after a power cut nobody holds a lock.
    fn note(&self, locks: &[&Path]) -> Result<LockNote, GitError> {
        let folder = self.git_dir.join(OWN_GIT_FOLDER);
        let note = LockNote(folder.join(format!("{NOTE}{}", Writer::this_process())));
        let names: Vec<&[u8]> = locks.iter().map(|lock| bytes_of(lock)).collect();
        let written = write_note(&note.0, &names.join(&0));
        written.map_err(file_error("note what is locked in", &note.0))?;
        Ok(note)
    }

    /// Removes the locks that killed processes left, as far as that can be proven, and says which.
    /// With a git process at work here nothing can be: an error, after a while.
    ///
    /// Only for whoever holds the run's lock: an attempt that is under way then was cut short.
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
            entries => entries.map_err(file_error("look into", &folder))?,
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
        // What the agent left behind is being ended at this very moment.
        patiently(self.lock_patience, lock, || {
            let busy = somebody_works_in(&[&self.root, &self.git_dir, &self.common_dir], lock);
            if busy { Err(GitError::Locked(lock.to_owned())) } else { Ok(true) }
        })
    }
}

/// For its owner only, as everything beside it.
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

/// libgit2 gives a new file its name by a second link and does not notice when the first one, the
/// lock, cannot be removed. Only a file with both names is such a one.
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
/// `act` must start from what is on disk: whoever held the lock has changed it.
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
