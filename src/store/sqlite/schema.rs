//! The tables of the journal's database, and how an older one gets them.

use rusqlite::{Connection, TransactionBehavior};

use super::rows;

/// Each leads from one version to the next, beginning with an empty file. A released migration never
/// changes: a change is one more.
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
    QUESTION_TABLES,
    COST_TABLES,
];

/// For people who use SQL. A question is open while it has no `answered_at`.
const QUESTION_TABLES: &str = "CREATE TABLE snapshots (
         reference TEXT    NOT NULL,
         backlog   TEXT    NOT NULL,
         work_tree TEXT    NOT NULL,
         run       TEXT    NOT NULL,
         story     TEXT    NOT NULL,
         kind      TEXT    NOT NULL,
         at        INTEGER NOT NULL
     );
     CREATE TABLE questions (
         id          INTEGER PRIMARY KEY,
         backlog     TEXT    NOT NULL,
         work_tree   TEXT    NOT NULL,
         run         TEXT    NOT NULL,
         story       TEXT    NOT NULL,
         question    TEXT    NOT NULL,
         raised_at   INTEGER NOT NULL,
         parked      INTEGER NOT NULL DEFAULT 0,
         answer      TEXT,
         answered_at INTEGER
     );
     CREATE INDEX questions_by_story ON questions (backlog, work_tree, story, answered_at);";

/// Costs are in millionths of a dollar, times in milliseconds since the Unix epoch.
const COST_TABLES: &str = "CREATE TABLE runs (
         run        TEXT PRIMARY KEY,
         backlog    TEXT    NOT NULL,
         work_tree  TEXT    NOT NULL,
         project    TEXT    NOT NULL,
         agent      TEXT    NOT NULL,
         started_at INTEGER NOT NULL,
         ended_at   INTEGER
     ) WITHOUT ROWID;
     CREATE TABLE attempts (
         attempt    TEXT PRIMARY KEY,
         run        TEXT    NOT NULL,
         backlog    TEXT    NOT NULL,
         work_tree  TEXT    NOT NULL,
         story      TEXT    NOT NULL,
         title      TEXT    NOT NULL,
         iteration  INTEGER NOT NULL,
         agent      TEXT    NOT NULL,
         started_at INTEGER NOT NULL,
         ended_at   INTEGER,
         result     TEXT    NOT NULL,
         elapsed_ms INTEGER NOT NULL DEFAULT 0,
         turns      INTEGER NOT NULL DEFAULT 0,
         tool_calls INTEGER NOT NULL DEFAULT 0,
         stated     INTEGER,
         counted    INTEGER NOT NULL DEFAULT 0
     ) WITHOUT ROWID;
     CREATE INDEX attempts_by_end ON attempts (ended_at, counted);
     CREATE INDEX attempts_by_run ON attempts (run, started_at);
     CREATE TABLE usage (
         attempt     TEXT    NOT NULL,
         model       TEXT    NOT NULL,
         input       INTEGER NOT NULL,
         output      INTEGER NOT NULL,
         cache_read  INTEGER NOT NULL,
         cache_write INTEGER NOT NULL,
         counted     INTEGER NOT NULL,
         PRIMARY KEY (attempt, model)
     ) WITHOUT ROWID;";

/// The version of the tables that this program knows.
pub const KNOWN: i64 = MIGRATIONS.len() as i64;

pub fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// All missing steps, or none of them. The version is read under the lock: another process may have
/// been faster.
pub fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    migrate_by(connection, &MIGRATIONS)
}

fn migrate_by(connection: &mut Connection, migrations: &[&str]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for (number, step) in (1..).zip(migrations).filter(|(number, _)| *number > found) {
        transaction.execute_batch(step)?;
        if *step == COST_TABLES {
            rows::fill(&transaction)?;
        }
        transaction.pragma_update(None, "user_version", number)?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::Database;
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
            let database = Database::open(&path).unwrap();
            assert_eq!(tables(&database.connection), TABLES);
            assert_eq!(version(&database.connection).unwrap(), KNOWN);
        }
    }

    #[test]
    fn the_database_of_an_older_ralph_keeps_its_rows() {
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
        let connection = Database::open(&path).unwrap().connection;
        assert_eq!(tables(&connection), TABLES);
        let kept: String =
            connection.query_row("SELECT payload FROM events", [], |row| row.get(0)).unwrap();
        assert_eq!((kept.as_str(), version(&connection).unwrap()), ("kept", KNOWN));
    }

    #[test]
    fn a_newer_database_is_refused_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let newer = Connection::open(&path).unwrap();
        newer.execute_batch("CREATE TABLE later (x); PRAGMA user_version = 1000;").unwrap();
        drop(newer);
        let before = fs::read(&path).unwrap();
        let error = Database::open(&path).err().unwrap().to_string();
        assert!(error.contains("(format 1000; this version supports"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_failed_migration_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        let steps = ["CREATE TABLE one (x);", "CREATE TABLE two (x); CREATE NONSENSE;"];
        migrate_by(&mut connection, &steps).unwrap_err();
        assert_eq!(tables(&connection), [""; 0]);
        assert_eq!(version(&connection).unwrap(), 0);
    }
}
