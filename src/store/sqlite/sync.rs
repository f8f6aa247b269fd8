//! Brings SQLite's log to the disk from a thread, while the run prepares what comes next.
//!
//! SQLite itself then commits without a sync (`synchronous = NORMAL`): whatever a killed process
//! committed is there all the same, and only a power cut needs the sync. Who must not go on before
//! a fact is on the disk waits for it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::damage::Newest;

pub struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    /// Numbers of events.
    wanted: i64,
    durable: i64,
    /// Kept for everybody who waits.
    failed: Option<(io::ErrorKind, String)>,
    closing: bool,
}

impl Syncer {
    pub fn start(database: &Path) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let mut wal = database.as_os_str().to_owned();
        wal.push("-wal");
        let newest = Newest::beside(database);
        let own = Arc::clone(&shared);
        let log = WriteAheadLog { path: wal.into(), file: None };
        let thread = std::thread::Builder::new().name("journal sync".to_owned());
        let thread = thread.spawn(move || own.serve(log, &newest))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The events up to this number are committed and have to get to the disk.
    pub fn request(&self, event: i64) {
        let mut progress = self.shared.lock();
        progress.wanted = progress.wanted.max(event);
        self.shared.changed.notify_all();
    }

    pub fn wait(&self, event: i64) -> io::Result<()> {
        let is_open =
            |progress: &mut Progress| progress.durable < event && progress.failed.is_none();
        let waited = self.shared.changed.wait_while(self.shared.lock(), is_open);
        let progress = waited.unwrap_or_else(PoisonError::into_inner);
        match &progress.failed {
            Some((kind, text)) if progress.durable < event => {
                Err(io::Error::new(*kind, text.clone()))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut log: WriteAheadLog, newest: &Newest) {
        let mut progress = self.lock();
        loop {
            let idle = |p: &mut Progress| p.wanted == p.durable && !p.closing;
            let waited = self.changed.wait_while(progress, idle);
            progress = waited.unwrap_or_else(PoisonError::into_inner);
            let event = progress.wanted;
            if event == progress.durable {
                return;
            }
            drop(progress);
            let synced = log.sync();
            if synced.is_ok() {
                // Only now: a number that a power cut keeps without its event would be damage.
                newest.note(event);
            }
            progress = self.lock();
            match synced {
                Ok(()) => progress.durable = event,
                Err(error) => {
                    progress.failed = Some((error.kind(), error.to_string()));
                    self.changed.notify_all();
                    return;
                }
            }
            self.changed.notify_all();
        }
    }
}

/// SQLite takes no locks on it, so it may be opened and closed beside SQLite.
struct WriteAheadLog {
    path: PathBuf,
    file: Option<File>,
}

impl WriteAheadLog {
    fn sync(&mut self) -> io::Result<()> {
        if let Some(file) = &self.file {
            return file.sync_data();
        }
        let file = File::open(&self.path)?;
        file.sync_data()?;
        // Its name, too.
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        self.file = Some(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_was_synced_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("journal.db");
        std::fs::write(folder.path().join("journal.db-wal"), "log").unwrap();
        let syncer = Syncer::start(&database).unwrap();
        for event in [1, 5, 6] {
            syncer.request(event);
            syncer.wait(event).unwrap();
            assert_eq!(Newest::beside(&database).read(), Some(event));
        }
        syncer.wait(2).unwrap();
        syncer.request(9);
        drop(syncer);
        assert_eq!(Newest::beside(&database).read(), Some(9));
    }

    #[test]
    fn a_sync_that_fails_is_told_to_everybody_who_waits() {
        let folder = tempfile::tempdir().unwrap();
        let syncer = Syncer::start(&folder.path().join("journal.db")).unwrap();
        syncer.request(1);
        for _ in 0..2 {
            assert_eq!(syncer.wait(1).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
        assert_eq!(Newest::beside(&folder.path().join("journal.db")).read(), None);
    }
}
