//! The tables of the journal's database, and how an older one gets them.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::{JournalError, asked, ledger};
use crate::store::room::append_private;

/// Each leads from one version to the next, beginning at an empty file. Those that were released
/// stay as they are: what changes comes as one more.
const MIGRATIONS: [&str; 7] = [
    "CREATE TABLE events (
         seq       INTEGER PRIMARY KEY,
         backlog   TEXT    NOT NULL,
         work_tree TEXT    NOT NULL,
         run       TEXT    NOT NULL,
         at        INTEGER NOT NULL,
         version   INTEGER NOT NULL,
         payload   TEXT    NOT NULL
     );
     CREATE INDEX events_by_scope ON events (backlog, work_tree, seq);",
    "CREATE TABLE remembered (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;",
    "CREATE TABLE trust (
         what TEXT    NOT NULL,
         text TEXT    NOT NULL,
         at   INTEGER NOT NULL,
         PRIMARY KEY (what, text)
     ) WITHOUT ROWID;",
    "ALTER TABLE events ADD COLUMN sum INTEGER;",
    "CREATE TABLE wishes (
         id        INTEGER PRIMARY KEY,
         work_tree TEXT    NOT NULL,
         at        INTEGER NOT NULL,
         wish      TEXT    NOT NULL
     );",
    asked::TABLES,
    ledger::TABLES,
];

/// The version of the tables that this program knows.
pub const KNOWN: i64 = MIGRATIONS.len() as i64;

const SMALLEST_PAGE: u64 = 512;

/// How long another process may keep the database to itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// A database with the tables of this program. One of a newer program is not touched.
pub fn connect(path: &Path) -> Result<Connection, JournalError> {
    let shown = path.display().to_string();
    let failed = |source| match JournalError::reading(source) {
        JournalError::Read(source) => JournalError::Open { path: shown.clone(), source },
        damaged => damaged,
    };
    // SQLite gives the files beside it the mode of the database.
    let _ = append_private(path);
    if is_cut_off(path) {
        return Err(JournalError::Damaged("it is cut off".to_owned()));
    }
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    let found = version(&connection).map_err(failed)?;
    if found > KNOWN {
        return Err(JournalError::Newer { path: shown, found });
    }
    prepare(&connection).map_err(failed)?;
    if found < KNOWN {
        migrate(&mut connection, &MIGRATIONS).map_err(failed)?;
    }
    Ok(connection)
}

/// SQLite would take it for a new one. An empty one is: whoever made it was killed right then.
fn is_cut_off(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| (1..SMALLEST_PAGE).contains(&file.len()))
}

/// A fact that was reported must survive a power cut: full sync.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Step by step, each whole or not at all. Looked at under the lock: another process may have
/// been faster.
fn migrate(connection: &mut Connection, migrations: &[&str]) -> rusqlite::Result<()> {
    for (number, step) in (1..).zip(migrations) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if version(&transaction)? < number {
            transaction.execute_batch(step)?;
            if *step == ledger::TABLES {
                ledger::fill(&transaction)?;
            }
            transaction.pragma_update(None, "user_version", number)?;
        }
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TABLES: [&str; 9] = [
        "attempts",
        "events",
        "questions",
        "remembered",
        "runs",
        "snapshots",
        "trust",
        "usage",
        "wishes",
    ];

    fn tables(connection: &Connection) -> Vec<String> {
        let mut query = connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            .unwrap();
        query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_new_database_gets_every_table_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        for _ in 0..2 {
            let connection = connect(&path).unwrap();
            assert_eq!(tables(&connection), TABLES);
            assert_eq!(version(&connection).unwrap(), KNOWN);
        }
    }

    #[test]
    fn the_database_of_an_older_ralph_keeps_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let old = Connection::open(&path).unwrap();
        old.execute_batch(
            "CREATE TABLE events (seq INTEGER PRIMARY KEY, backlog TEXT NOT NULL,
                 work_tree TEXT NOT NULL, run TEXT NOT NULL, at INTEGER NOT NULL,
                 version INTEGER NOT NULL, payload TEXT NOT NULL);
             CREATE INDEX events_by_scope ON events (backlog, work_tree, seq);
             INSERT INTO events VALUES (1, 'PRD.json', '', 'r', 7, 1, 'kept');
             PRAGMA user_version = 1;",
        )
        .unwrap();
        drop(old);
        let connection = connect(&path).unwrap();
        assert_eq!(tables(&connection), TABLES);
        let kept: String =
            connection.query_row("SELECT payload FROM events", [], |row| row.get(0)).unwrap();
        assert_eq!((kept.as_str(), version(&connection).unwrap()), ("kept", KNOWN));
    }

    #[test]
    fn a_newer_database_is_refused_and_not_a_byte_of_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let newer = Connection::open(&path).unwrap();
        newer.execute_batch("CREATE TABLE later (x); PRAGMA user_version = 1000;").unwrap();
        drop(newer);
        let before = fs::read(&path).unwrap();
        let error = connect(&path).err().unwrap();
        assert!(matches!(error, JournalError::Newer { found: 1000, .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_before_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        let steps = ["CREATE TABLE one (x);", "CREATE TABLE two (x); CREATE NONSENSE;"];
        migrate(&mut connection, &steps).unwrap_err();
        assert_eq!(tables(&connection), ["one"]);
        assert_eq!(version(&connection).unwrap(), 1);
    }
}
