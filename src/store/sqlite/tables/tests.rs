use std::fs;

use crate::decide::samples::{escalation, id};
use crate::store::sqlite::Database;
use crate::store::{Journal, Store, StorePlace};

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

#[test]
fn questions_and_snapshots_have_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let store = Store::new(StorePlace::in_folder(folder.path()));
    let mut journal = store.journal("PRD.json").unwrap();
    let raised = |name| Event::QuestionRaised { story: id(name), question: escalation("s") };
    let answered = |answer| Event::QuestionAnswered { story: id("A"), answer };
    let aside = |reference: Option<&str>| Event::WorkSetAside {
        story: id("A"),
        reference: reference.map(str::to_owned),
        claimed: false,
    };
    journal.append("r", 1, &[raised("A"), raised("B"), answered(Answer::Abort)]).unwrap();
    journal.append("r", 2, &[Event::StoryParked { story: id("B") }]).unwrap();
    journal.append("r", 3, &[answered(Answer::Retry), aside(None), aside(Some("x"))]).unwrap();
    let rows = |sql: &str| -> Vec<String> {
        let connection = Connection::open(&path).unwrap();
        let mut query = connection.prepare(sql).unwrap();
        query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let states = "SELECT story || ' ' || parked || ' ' || COALESCE(answered_at, 'open')
                FROM questions ORDER BY id";
    assert_eq!(rows(states), ["A 0 3", "B 1 open"]);
    assert_eq!(rows("SELECT reference || ' ' || kind FROM snapshots"), ["x set_aside"]);
}
