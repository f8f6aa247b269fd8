//! Lock files: waits for those of other git processes, and removes those that a killed ralph or a
//! killed agent left.
//!
//! libgit2 locks with files, and a killed process leaves them. So before ralph takes a lock, it
//! writes a note with the lock's name and its own process, and removes the note afterwards. A lock
//! is removed only if a note names it, the writer of the note is dead, the lock was created right
//! after the note, and no git process runs in the repository.
//!
//! An agent whose git died, however the attempt ended, leaves locks too. A lock is the agent's if it
//! appeared after the attempt began, no process has it open, no git process runs in the repository,
//! and it is the same a moment later: another program may be writing.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use git2::ErrorCode;

use crate::files::{FileKind, nofollow};

use super::checkout::remove_if_there;
use super::error::{GitError, file_error};
use super::tree::{bytes_of, path_of};
use super::{OWN_GIT_FOLDER, Result, WorkTree};
use system::git_is_running_in;

mod system;

/// Notes are in the work tree's own git folder. The writer's process follows the name, because two
/// processes may write at the same time.
const NOTE: &str = "writing-";
const LONGEST_NOTE: u64 = 1 << 20;
const PRIVATE: u32 = 0o600;
/// From the note to the lock; a later lock is of another process.
const LONGEST_WRITE: Duration = Duration::from_mins(1);

/// Removed after the write, whether it succeeded or not.
struct LockNote(PathBuf);

impl Drop for LockNote {
    fn drop(&mut self) {
        // A note that stays is harmless: it names a lock that no longer exists.
        let _ = nofollow::remove(&self.0);
    }
}

impl WorkTree {
    /// Waits until the lock is free, then notes it and calls `act`, which takes it.
    pub(super) fn with_lock<T>(
        &self,
        lock: &Path,
        mut act: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        self.retry(lock, || self.with_lock_note(&[lock], &mut act))
    }

    /// The same without waiting, and for several locks.
    pub(super) fn with_lock_note<T>(
        &self,
        locks: &[&Path],
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        locks.iter().try_for_each(|lock| self.require_own_place(lock))?;
        if let Some(held) = locks.iter().find(|lock| nofollow::exists(lock)) {
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

    /// Repeats `act` as long as it finds a lock taken, at most for `lock_patience`.
    ///
    /// `act` must read from disk: the previous holder of the lock may have changed it.
    pub(super) fn retry<T>(&self, lock: &Path, mut act: impl FnMut() -> Result<T>) -> Result<T> {
        let deadline = Instant::now() + self.lock_patience;
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

    /// Not synced: a kill loses no writes, and after a power cut no process holds a lock.
    fn note(&self, locks: &[&Path]) -> Result<LockNote> {
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
    /// Only for the holder of the lease: an attempt that is noted then was cut short. Its note stays
    /// until what it did is repaired.
    pub fn remove_own_locks(&self) -> Result<Vec<PathBuf>> {
        let mut removed = self.locks_of_attempt()?;
        remove(&removed)?;
        removed.extend(self.remove_noted_locks()?);
        Ok(removed)
    }

    /// The same without those of an attempt that was cut short, which `ralph run` looks at.
    pub fn remove_noted_locks(&self) -> Result<Vec<PathBuf>> {
        let mut removed = Vec::new();
        for note in self.notes_of_the_dead()? {
            let names = nofollow::read(&note, LONGEST_NOTE).map_err(io::Error::from);
            let names = names.map_err(file_error("read", &note))?;
            for lock in names.split(|byte| *byte == 0).map(path_of) {
                if self.is_left_behind(&lock, &note)? {
                    nofollow::remove(&lock).map_err(file_error("delete", &lock))?;
                    removed.push(lock);
                }
            }
            nofollow::remove(&note).map_err(file_error("delete", &note))?;
        }
        Ok(removed)
    }

    fn notes_of_the_dead(&self) -> Result<Vec<PathBuf>> {
        let folder = self.git_dir.join(OWN_GIT_FOLDER);
        let entries = match nofollow::list(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(file_error("list", &folder))?,
        };
        let is_of_a_dead_one = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(NOTE));
            name.and_then(Writer::parse).is_some_and(|writer| !writer.is_alive())
        };
        let notes = entries.into_iter().map(|entry| folder.join(entry.name));
        Ok(notes.filter(is_of_a_dead_one).collect())
    }

    fn is_left_behind(&self, lock: &Path, note: &Path) -> Result<bool> {
        let is_a_lock = lock.extension().is_some_and(|ending| ending == "lock")
            && (lock.starts_with(&self.git_dir) || lock.starts_with(&self.common_dir));
        let (Ok(found), Ok(noted)) = (nofollow::look(lock), nofollow::look(note)) else {
            return Ok(false);
        };
        let times = found.modified().ok().zip(noted.modified().ok());
        let after = times.and_then(|(lock, note)| lock.duration_since(note).ok());
        let came_with_note = after.is_some_and(|after| after <= LONGEST_WRITE);
        if !is_a_lock || !found.is_file() || !came_with_note {
            return Ok(false);
        }
        // Processes that the agent left may be ending right now.
        self.retry(lock, || {
            let busy = git_is_running_in(&[&self.root, &self.git_dir, &self.common_dir], lock);
            if busy { Err(GitError::Locked(lock.to_owned())) } else { Ok(true) }
        })
    }
}

/// A new file, readable only by its owner.
pub(super) fn write_note(path: &Path, bytes: &[u8]) -> io::Result<()> {
    remove_if_there(path)?;
    let new = || nofollow::create_new(path, PRIVATE);
    let file = new().or_else(|error| match error.kind() {
        ErrorKind::NotFound => private_parent(path).and_then(|()| new()),
        _ => Err(error),
    });
    file?.write_all(bytes)
}

/// Creates the folder of a file.
pub(super) fn private_parent(file: &Path) -> io::Result<()> {
    let Some(folder) = file.parent() else { return Ok(()) };
    nofollow::make_private_folders(folder)
}

/// libgit2 links a new file to its name and ignores it if the first name, the lock, cannot be
/// removed. Removes the lock only if both names are the same file.
fn remove_second_name(lock: &Path) -> io::Result<()> {
    let (Ok(left), Ok(named)) = (nofollow::look(lock), nofollow::look(&lock.with_extension("")))
    else {
        return Ok(());
    };
    let is_the_same = (left.dev(), left.ino()) == (named.dev(), named.ino());
    if is_the_same { nofollow::remove(lock) } else { Ok(()) }
}

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// A program that writes the index is done by then.
const A_MOMENT: Duration = Duration::from_millis(300);

pub(super) fn is_lock(error: &GitError) -> bool {
    match error {
        GitError::Git { source, .. } => source.code() == ErrorCode::Locked,
        error => matches!(error, GitError::Locked(_)),
    }
}

/// A file in the work tree's own git folder, present during an attempt.
const ATTEMPT_NOTE: &str = "attempt";

impl WorkTree {
    /// From now on a lock may be the agent's.
    pub fn begin_attempt(&self) -> Result<()> {
        let note = self.attempt_note();
        let head = self.head_commit()?.unwrap_or_default();
        let length = nofollow::look(&self.head_log()).map_or(0, |log| log.len());
        let text = format!("{head}\n{length}\n");
        write_note(&note, text.as_bytes()).map_err(file_error("write", &note))
    }

    /// HEAD's commit when the attempt began; empty without one.
    pub(super) fn head_at_attempt(&self) -> Option<String> {
        self.attempt_note_line(0)
    }

    /// How long HEAD's reflog was then.
    pub(super) fn log_length_at_attempt(&self) -> Option<u64> {
        self.attempt_note_line(1)?.parse().ok()
    }

    fn attempt_note_line(&self, n: usize) -> Option<String> {
        let text = nofollow::read_text(&self.attempt_note(), 100).ok()?;
        text.lines().nth(n).map(str::to_owned)
    }

    pub(super) fn head_log(&self) -> PathBuf {
        self.git_dir.join("logs/HEAD")
    }

    /// Call when all processes of the attempt have ended and what it did is repaired.
    pub fn end_attempt(&self) -> Result<()> {
        if self.was_interrupted() {
            // While something untrusted runs, no command of the human's restores anything.
            self.forget_restore()?;
        }
        let note = self.attempt_note();
        remove_if_there(&note).map_err(file_error("delete", &note))
    }

    /// Locks that came since the attempt began and that no git process holds.
    pub(super) fn locks_of_attempt(&self) -> Result<Vec<PathBuf>> {
        let note = self.attempt_note();
        match nofollow::look(&note).and_then(|note| note.modified()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            began => Ok(self.locks_since(began.map_err(file_error("read", &note))?)),
        }
    }

    pub(super) fn remove_locks_of_attempt(&self) -> Result<()> {
        remove(&self.locks_of_attempt()?)
    }

    /// Something untrusted was under way when its driver died.
    pub(super) fn was_interrupted(&self) -> bool {
        nofollow::exists(&self.attempt_note())
    }

    fn attempt_note(&self) -> PathBuf {
        self.git_dir.join(OWN_GIT_FOLDER).join(ATTEMPT_NOTE)
    }

    fn locks_since(&self, began: SystemTime) -> Vec<PathBuf> {
        let mut locks = BTreeSet::new();
        for folder in [&self.git_dir, &self.common_dir] {
            find_locks(folder, false, &mut locks);
            find_locks(&folder.join("refs"), true, &mut locks);
        }
        let came_since = |lock: &PathBuf| {
            let found = nofollow::look(lock).ok();
            found.and_then(|found| found.modified().ok()).is_some_and(|time| time >= began)
        };
        let folders: [&Path; 3] = [&self.root, &self.git_dir, &self.common_dir];
        let is_left = |lock: &PathBuf| came_since(lock) && !git_is_running_in(&folders, lock);
        let found = locks.into_iter().filter(is_left).map(|lock| (identity(&lock), lock));
        let found: Vec<_> = found.collect();
        if !found.is_empty() {
            thread::sleep(A_MOMENT);
        }
        let is_the_same =
            |(then, lock): &(Option<LockFile>, PathBuf)| then.is_some() && *then == identity(lock);
        let left = found.into_iter().filter(is_the_same).map(|(_, lock)| lock);
        left.filter(|lock| !git_is_running_in(&folders, lock)).collect()
    }
}

/// Device, number and time of a file.
type LockFile = (u64, u64, SystemTime);

fn identity(lock: &Path) -> Option<LockFile> {
    let found = nofollow::look(lock).ok()?;
    Some((found.dev(), found.ino(), found.modified().ok()?))
}

fn remove(locks: &[PathBuf]) -> Result<()> {
    locks.iter().try_for_each(|lock| {
        let is_folder = nofollow::is_folder(lock);
        let removed =
            if is_folder { nofollow::remove_folder(lock) } else { nofollow::remove(lock) };
        removed.map_err(file_error("delete", lock))
    })
}

fn find_locks(folder: &Path, deep: bool, found: &mut BTreeSet<PathBuf>) {
    for entry in nofollow::list(folder).unwrap_or_default() {
        let (path, is_folder) = (folder.join(entry.name), entry.kind == FileKind::Folder);
        if path.extension().is_some_and(|ending| ending == "lock") {
            found.insert(path);
        } else if is_folder && deep {
            find_locks(&path, deep, found);
        }
    }
}

/// Identifies a process for good: pids are reused, and start times repeat after a reboot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    pub pid: u32,
    pub started: u64,
    pub boot: String,
}

impl Writer {
    pub fn this_process() -> &'static Self {
        static THIS: OnceLock<Writer> = OnceLock::new();
        THIS.get_or_init(|| {
            let pid = std::process::id();
            let started = system::started(pid).unwrap_or_default();
            Self { pid, started, boot: system::boot() }
        })
    }

    pub fn is_alive(&self) -> bool {
        self.boot == system::boot() && system::started(self.pid) == Some(self.started)
    }

    /// Parses the result of `to_string`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { pid, started, boot: parts.next()?.to_owned() })
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}-{}", self.pid, self.started, self.boot)
    }
}
