//! Syncs SQLite's log from a thread, while the run prepares its next step.
//!
//! SQLite itself then commits without a sync (`synchronous = NORMAL`): commits of a killed process
//! are not lost, and only a power cut needs the sync. A caller that must not continue
//! before an event is on the disk waits for it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::files::atomic::sync_folder_of;
use crate::files::nofollow;
use crate::store::{Problem, Result};

use super::damage::{Newest, with_suffix};

pub struct Syncer {
    state: Arc<SyncState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct SyncState {
    synced: Mutex<Synced>,
    changed: Condvar,
}

#[derive(Default)]
struct Synced {
    /// Numbers of events.
    wanted: i64,
    durable: i64,
    /// Kept for every waiter.
    failed: Option<(io::ErrorKind, String)>,
    closing: bool,
}

impl Syncer {
    pub fn start(database: &Path) -> io::Result<Self> {
        let state = Arc::<SyncState>::default();
        let log = WriteAheadLog { path: with_suffix(database, "-wal"), file: None };
        let (own, newest) = (Arc::clone(&state), Newest::of(database));
        let thread = std::thread::Builder::new().name("journal sync".to_owned());
        let thread = thread.spawn(move || own.serve(log, &newest))?;
        Ok(Self { state, thread: Some(thread) })
    }

    /// The events up to this number are committed and must be synced.
    pub fn request(&self, event: i64) {
        self.state.update(|synced| synced.wanted = synced.wanted.max(event));
    }

    pub fn point(&self, event: i64) -> SyncPoint {
        SyncPoint { of: Some((Arc::clone(&self.state), event)) }
    }
}

/// Everything that a journal had at one moment. Any thread can wait until it is on the disk.
#[derive(Clone, Default)]
pub struct SyncPoint {
    /// None: there is nothing to wait for.
    of: Option<(Arc<SyncState>, i64)>,
}

impl SyncPoint {
    pub fn wait(&self) -> Result<()> {
        let Some((state, event)) = &self.of else { return Ok(()) };
        let synced = state.wait_while(|synced| synced.durable < *event && synced.failed.is_none());
        synced.require(*event)
    }

    /// An error if it can no longer be reached; does not wait.
    pub fn check(&self) -> Result<()> {
        self.of.as_ref().map_or(Ok(()), |(state, event)| state.lock().require(*event))
    }
}

impl Synced {
    fn require(&self, event: i64) -> Result<()> {
        match &self.failed {
            Some((kind, text)) if self.durable < event => {
                Err(Problem::Sync(io::Error::new(*kind, text.clone())).into())
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Syncer {
    /// Syncs the rest first.
    fn drop(&mut self) {
        self.state.update(|synced| synced.closing = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl SyncState {
    fn lock(&self) -> MutexGuard<'_, Synced> {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Synced)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn wait_while(&self, is_early: impl FnMut(&mut Synced) -> bool) -> MutexGuard<'_, Synced> {
        self.changed.wait_while(self.lock(), is_early).unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut log: WriteAheadLog, newest: &Newest) {
        let is_idle = |synced: &mut Synced| synced.wanted == synced.durable && !synced.closing;
        loop {
            let synced = self.wait_while(is_idle);
            let event = synced.wanted;
            if event == synced.durable {
                return;
            }
            drop(synced);
            if let Err(error) = log.sync() {
                let failed = (error.kind(), error.to_string());
                return self.update(|synced| synced.failed = Some(failed));
            }
            // Only now: a number that a power cut keeps without its event would be damage.
            newest.note(event);
            self.update(|synced| synced.durable = event);
        }
    }
}

/// SQLite takes no locks on it, so this process may open and close it.
struct WriteAheadLog {
    path: PathBuf,
    file: Option<File>,
}

impl WriteAheadLog {
    fn sync(&mut self) -> io::Result<()> {
        if let Some(file) = &self.file {
            return file.sync_data();
        }
        let file = nofollow::open(&self.path)?;
        file.sync_data()?;
        // Its name, too.
        sync_folder_of(&self.path)?;
        self.file = Some(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_awaited_event_is_synced_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("journal.db");
        std::fs::write(folder.path().join("journal.db-wal"), "log").unwrap();
        let syncer = Syncer::start(&database).unwrap();
        for event in [1, 5, 6] {
            syncer.request(event);
            syncer.point(event).wait().unwrap();
            assert_eq!(Newest::of(&database).read(), Some(event));
        }
        syncer.point(2).wait().unwrap();
        syncer.request(9);
        drop(syncer);
        assert_eq!(Newest::of(&database).read(), Some(9));
    }

    #[test]
    fn a_failed_sync_is_reported_to_every_waiter() {
        let folder = tempfile::tempdir().unwrap();
        let syncer = Syncer::start(&folder.path().join("journal.db")).unwrap();
        syncer.point(1).check().unwrap();
        syncer.request(1);
        for _ in 0..2 {
            assert!(syncer.point(1).wait().unwrap_err().to_string().contains("No such file"));
        }
        assert!(syncer.point(1).check().is_err());
        assert_eq!(Newest::of(&folder.path().join("journal.db")).read(), None);
    }
}
