//! The store in SQLite: one database per repository, one connection per process.

pub mod approvals;
pub mod costs;
mod damage;
pub mod human;
pub mod journal;
pub mod sync;
mod tables;

use std::cell::OnceCell;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Params, Row, Transaction, TransactionBehavior};

use crate::files::atomic::{ensure_private, sync_folder_of};
use crate::files::nofollow;

use super::{Problem, Result};
use damage::{reading, with_suffix, writing};
use sync::Syncer;

/// What SQLite reports.
pub type Failure = rusqlite::Error;

pub use damage::{Newest, rename_damaged, was_damaged};

/// How long another process may lock the database.
const PATIENCE: Duration = Duration::from_secs(10);
const SMALLEST_PAGE: u64 = 512;
/// More than there are different ones, so that none is prepared twice.
const STATEMENTS: usize = 64;

pub struct Database {
    /// Dropped first: it syncs the rest.
    syncer: OnceCell<Syncer>,
    connection: Connection,
    path: PathBuf,
    /// Device and number of the file that was opened.
    file: Option<(u64, u64)>,
}

impl Database {
    /// With the tables of this program. A newer program's database is not touched.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let failed = |source| match reading(source) {
            Problem::Read(source) => Problem::Open { path: shown.clone(), source },
            damaged => damaged,
        };
        // SQLite gives the files next to it the mode of the database.
        let _ = ensure_private(path);
        let size = nofollow::look(path).map_or(SMALLEST_PAGE, |file| file.len());
        // SQLite would take a file that is cut off for a new one. An empty file is new: its maker
        // was killed.
        if (1..SMALLEST_PAGE).contains(&size) {
            return Err(Problem::Damaged("the file is truncated".to_owned()).into());
        }
        if size == 0 {
            create(path).map_err(failed)?;
            sync_new(path).map_err(Problem::Folder)?;
        }
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        let found = tables::version(&connection).map_err(failed)?;
        if found > tables::KNOWN {
            return Err(Problem::Newer { path: shown, found, known: tables::KNOWN }.into());
        }
        configure(&connection).map_err(failed)?;
        if found < tables::KNOWN {
            tables::migrate(&mut connection).map_err(failed)?;
        }
        if let Some(name) = damage::foreign(&connection).map_err(failed)? {
            return Err(Problem::Damaged(format!("`{name}` is not ralph's")).into());
        }
        let file = identity(path);
        Ok(Self { syncer: OnceCell::new(), connection, path: path.to_owned(), file })
    }

    /// A deleted file can still be written, but nobody else would ever read that.
    fn check_place(&self) -> Result<()> {
        let has_log =
            self.syncer.get().is_none() || nofollow::exists(&with_suffix(&self.path, "-wal"));
        match has_log && identity(&self.path) == self.file {
            true => Ok(()),
            false => Err(Problem::Lost("its files were deleted or replaced").into()),
        }
    }

    /// From now on a thread syncs commits, and callers wait for it if they must.
    fn syncer(&self) -> Result<&Syncer> {
        if let Some(syncer) = self.syncer.get() {
            return Ok(syncer);
        }
        let syncer = Syncer::start(&self.path).map_err(Problem::Sync)?;
        self.connection.pragma_update(None, "synchronous", "NORMAL").map_err(Problem::Write)?;
        Ok(self.syncer.get_or_init(|| syncer))
    }

    /// To read and then write: nothing changes in between. Transactions are never nested.
    fn begin(&self) -> rusqlite::Result<Transaction<'_>> {
        Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
    }

    fn rows<T>(
        &self,
        select: &str,
        values: impl Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let read = || -> rusqlite::Result<Vec<T>> {
            self.connection.prepare_cached(select)?.query_map(values, row)?.collect()
        };
        Ok(read().map_err(reading)?)
    }

    fn execute(&self, sql: &str, values: impl Params) -> Result<()> {
        let write = || self.connection.prepare_cached(sql)?.execute(values);
        Ok(write().map(drop).map_err(writing)?)
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    nofollow::look(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Without syncs: a kill leaves what SQLite can roll back, and before the first event there is
/// nothing to lose.
fn create(path: &Path) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    tables::migrate(&mut connection)?;
    connection.close().map_err(|(_, error)| error)
}

/// While this process has no connection: closing the file would drop SQLite's locks.
fn sync_new(path: &Path) -> io::Result<()> {
    nofollow::open(path)?.sync_all()?;
    sync_folder_of(path)
}

/// Nothing that another program left in the database runs with our statements.
fn harden(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map(drop)
}

/// Full sync: a reported fact must survive a power cut. Statements are planned once and not for
/// each value, because the same ones run again and again.
fn configure(connection: &Connection) -> rusqlite::Result<()> {
    harden(connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")
}
