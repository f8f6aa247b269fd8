//! The store in SQLite: one database per repository, one connection per process.

pub mod answers;
pub mod costs;
mod damage;
pub mod journal;
pub mod requests;
mod rows;
mod schema;
mod sync;
pub mod user_costs;

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction};

use crate::store::files::ensure_private;

use super::error::{Problem, StoreError};
use damage::{Newest, reading};
use sync::Syncer;

pub use damage::{set_aside, was_set_aside};

/// How long another process may keep the database to itself.
const PATIENCE: Duration = Duration::from_secs(10);
const SMALLEST_PAGE: u64 = 512;
/// More than there are different ones, so that none is prepared twice.
const STATEMENTS: usize = 64;

pub struct Database {
    /// Dropped first: it syncs what is left.
    syncer: OnceCell<Syncer>,
    connection: Connection,
    path: PathBuf,
}

/// The number of the newest event, as it is written beside the database; 0 where none is known.
pub fn newest(path: &Path) -> i64 {
    Newest::beside(path).read().unwrap_or_default()
}

impl Database {
    /// With the tables of this program. One of a newer program is not touched.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let shown = path.display().to_string();
        let failed = |source| match reading(source) {
            Problem::Read(source) => Problem::Open { path: shown.clone(), source },
            damaged => damaged,
        };
        // SQLite gives the files beside it the mode of the database.
        let _ = ensure_private(path);
        if is_cut_off(path) {
            return Err(Problem::Damaged("it is cut off".to_owned()).into());
        }
        if path.metadata().is_ok_and(|file| file.len() == 0) {
            create(path).map_err(failed)?;
            sync_new(path).map_err(Problem::Folder)?;
        }
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        let found = schema::version(&connection).map_err(failed)?;
        if found > schema::KNOWN {
            return Err(Problem::Newer { path: shown, found, known: schema::KNOWN }.into());
        }
        prepare(&connection).map_err(failed)?;
        if found < schema::KNOWN {
            schema::migrate(&mut connection).map_err(failed)?;
        }
        Ok(Self { syncer: OnceCell::new(), connection, path: path.to_owned() })
    }

    pub fn check(&self, newest: i64) -> Result<(), StoreError> {
        damage::check(&self.connection, newest)
    }

    /// From now on commits are synced by a thread, and who has to wait for it does so.
    fn syncer(&self) -> Result<&Syncer, StoreError> {
        if let Some(syncer) = self.syncer.get() {
            return Ok(syncer);
        }
        let syncer = Syncer::start(&self.path).map_err(Problem::Sync)?;
        self.connection.pragma_update(None, "synchronous", "NORMAL").map_err(Problem::Write)?;
        Ok(self.syncer.get_or_init(|| syncer))
    }

    /// Nothing here begins a transaction inside of another one.
    fn begin(&self) -> rusqlite::Result<Transaction<'_>> {
        self.connection.unchecked_transaction()
    }
}

/// Without syncs: a kill leaves what SQLite can roll back, and before the first event there is
/// nothing to lose.
fn create(path: &Path) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    schema::migrate(&mut connection)?;
    connection.close().map_err(|(_, error)| error)
}

/// While this process has no connection: closing the file would drop SQLite's locks.
fn sync_new(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// SQLite would take it for a new one. An empty one is: whoever made it was killed right then.
fn is_cut_off(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| (1..SMALLEST_PAGE).contains(&file.len()))
}

/// A fact that was reported must survive a power cut: full sync. The same statements run again and
/// again, and are not planned anew for each value.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")
}
