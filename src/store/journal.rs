//! The journal: every fact of every run, in SQLite, out of the reach of `git clean`.

mod asked;
mod damage;
pub(super) mod ledger;
mod newest;
pub(super) mod schema;

use std::path::Path;

use rusqlite::{Connection, params};

use crate::core::event::{Event, Recorded, VERSION};

use newest::Newest;

pub use damage::{require_whole, set_aside, was_set_aside};

/// Which events belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The PRD's path in the repository.
    pub backlog: String,
    /// Which of the repository's work trees; empty for the main one.
    pub work_tree: String,
}

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("the journal `{path}` cannot be used: {source}")]
    Open { path: String, source: rusqlite::Error },
    #[error(
        "the journal `{path}` was written by a newer ralph (version {found}, this one knows \
         {known}); use that one, nothing was changed",
        known = schema::KNOWN
    )]
    Newer { path: String, found: i64 },
    #[error(
        "the journal is damaged ({0}): `ralph run` sets it aside and goes on with a new one, \
         rebuilt from the backlog, the refs and the commits' trailers"
    )]
    Damaged(String),
    #[error("the journal could not be written, is the disk full? {0}")]
    Write(rusqlite::Error),
    #[error("the journal could not be read: {0}")]
    Read(rusqlite::Error),
    #[error("the journal holds an event that this ralph does not understand: {0}")]
    Payload(serde_json::Error),
}

/// Append, and read from a cursor: what a remote database could do too.
pub trait Journal {
    /// All of them or none, on the disk when it returns.
    fn append(&mut self, run: &str, at: i64, events: &[Event]) -> Result<(), JournalError>;
    /// The scope's events after `cursor`, oldest first, and the new cursor.
    fn read(&self, cursor: i64) -> Result<(Vec<Recorded>, i64), JournalError>;
}

pub struct SqliteJournal {
    connection: Connection,
    scope: Scope,
    newest: Newest,
}

/// A run without an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRun {
    pub run: String,
    /// Milliseconds since the Unix epoch.
    pub began: i64,
}

impl SqliteJournal {
    pub fn open(path: &Path, scope: Scope) -> Result<Self, JournalError> {
        Ok(Self { connection: schema::connect(path)?, scope, newest: Newest::beside(path) })
    }

    /// The runs of a work tree that have no end, whatever their backlog.
    pub fn open_runs(path: &Path, work_tree: &str) -> Result<Vec<OpenRun>, JournalError> {
        if !path.exists() {
            return Ok(Vec::new());
        }
        let rows = last_events(&schema::connect(path)?, work_tree);
        let mut open = Vec::new();
        for (began, last) in rows.map_err(JournalError::reading)? {
            if !matches!(last.event()?, Event::RunEnded { .. }) {
                open.push(OpenRun { run: last.run, began });
            }
        }
        Ok(open)
    }
}

/// Each run with the time of its first event, and its last event.
fn last_events(connection: &Connection, work_tree: &str) -> rusqlite::Result<Vec<(i64, Row)>> {
    let mut query = connection.prepare(
        "SELECT seq, run, at, payload, sum, began FROM events JOIN (
             SELECT MAX(seq) AS last, MIN(at) AS began FROM events WHERE work_tree = ?1 GROUP BY run
         ) ON seq = last ORDER BY seq",
    )?;
    query.query_map([work_tree], |row| Ok((row.get(5)?, Row::of(row)?)))?.collect()
}

/// An event as it lies in the database.
struct Row {
    seq: i64,
    run: String,
    at: i64,
    payload: String,
    /// None: written by a ralph that did not know of it.
    sum: Option<i64>,
}

impl Row {
    fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            run: row.get(1)?,
            at: row.get(2)?,
            payload: row.get(3)?,
            sum: row.get(4)?,
        })
    }

    fn event(&self) -> Result<Event, JournalError> {
        let sum = sum_of(&self.run, self.at, &self.payload);
        if self.sum.is_some_and(|written| written != sum) {
            return Err(JournalError::Damaged(format!("event {} was changed", self.seq)));
        }
        serde_json::from_str(&self.payload).map_err(JournalError::Payload)
    }
}

fn sum_of(run: &str, at: i64, payload: &str) -> i64 {
    damage::sum(&[run, &at.to_string(), payload])
}

impl Journal for SqliteJournal {
    fn append(&mut self, run: &str, at: i64, events: &[Event]) -> Result<(), JournalError> {
        let payloads: Result<Vec<String>, _> = events.iter().map(serde_json::to_string).collect();
        let payloads = payloads.map_err(JournalError::Payload)?;
        let scope = &self.scope;
        let write = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            let mut insert = transaction.prepare_cached(
                "INSERT INTO events (backlog, work_tree, run, at, version, payload, sum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            for payload in &payloads {
                let (backlog, tree) = (&scope.backlog, &scope.work_tree);
                let sum = sum_of(run, at, payload);
                insert.execute(params![backlog, tree, run, at, VERSION, payload, sum])?;
            }
            drop(insert);
            // Before other tables get rows with numbers of their own.
            let newest = transaction.last_insert_rowid();
            for event in events {
                ledger::note(&transaction, scope, run, at, event)?;
            }
            transaction.commit()?;
            Ok(newest)
        };
        let newest = write(&mut self.connection).map_err(JournalError::writing)?;
        self.newest.note(newest);
        Ok(())
    }

    fn read(&self, cursor: i64) -> Result<(Vec<Recorded>, i64), JournalError> {
        let rows = self.rows(cursor).map_err(JournalError::reading)?;
        let last = rows.last().map_or(cursor, |row| row.seq);
        let parse = |row: &Row| Ok(Recorded { at: row.at, event: row.event()? });
        Ok((rows.iter().map(parse).collect::<Result<_, _>>()?, last))
    }
}

impl SqliteJournal {
    fn rows(&self, cursor: i64) -> rusqlite::Result<Vec<Row>> {
        let mut query = self.connection.prepare_cached(
            "SELECT seq, run, at, payload, sum FROM events
             WHERE backlog = ?1 AND work_tree = ?2 AND seq > ?3 ORDER BY seq",
        )?;
        let scope = params![self.scope.backlog, self.scope.work_tree, cursor];
        query.query_map(scope, Row::of)?.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(backlog: &str) -> Scope {
        Scope { backlog: backlog.to_owned(), work_tree: String::new() }
    }

    fn interrupted(signal: i32) -> Event {
        Event::RunInterrupted { signal }
    }

    #[test]
    fn what_was_appended_is_read_back_in_order_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let mut journal = SqliteJournal::open(&path, scope("PRD.json")).unwrap();
        journal.append("r", 7, &[interrupted(1), interrupted(2)]).unwrap();
        drop(journal);
        let journal = SqliteJournal::open(&path, scope("PRD.json")).unwrap();
        let (events, cursor) = journal.read(0).unwrap();
        assert_eq!(events, [1, 2].map(|signal| Recorded { at: 7, event: interrupted(signal) }));
        assert_eq!(journal.read(cursor).unwrap(), (vec![], cursor));
    }

    #[test]
    fn backlogs_do_not_see_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let mut one = SqliteJournal::open(&path, scope("a.json")).unwrap();
        one.append("r", 1, &[interrupted(1)]).unwrap();
        let other = SqliteJournal::open(&path, scope("b.json")).unwrap();
        assert_eq!(other.read(0).unwrap().0, []);
    }

    #[test]
    fn runs_without_an_end_are_told_whatever_their_backlog() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        assert_eq!(SqliteJournal::open_runs(&path, "").unwrap(), []);
        let ended = Event::RunEnded { reason: crate::core::policy::StopReason::AllDone };
        let mut one = SqliteJournal::open(&path, scope("one.json")).unwrap();
        one.append("done", 1, &[Event::RunContinued, ended]).unwrap();
        one.append("open", 2, &[Event::RunContinued]).unwrap();
        one.append("open", 3, &[interrupted(2)]).unwrap();
        let mut two = SqliteJournal::open(&path, scope("two.json")).unwrap();
        two.append("other", 4, &[Event::RunContinued]).unwrap();
        let elsewhere = Scope { work_tree: "linked".to_owned(), ..scope("one.json") };
        let mut three = SqliteJournal::open(&path, elsewhere).unwrap();
        three.append("linked", 5, &[Event::RunContinued]).unwrap();
        let open = |run: &str, began| OpenRun { run: run.to_owned(), began };
        let runs = |tree| SqliteJournal::open_runs(&path, tree).unwrap();
        assert_eq!(runs(""), [open("open", 2), open("other", 4)]);
        assert_eq!(runs("linked"), [open("linked", 5)]);
    }
}
