//! The journal: every fact of every run.

use std::rc::Rc;

use rusqlite::{Error, Row, params};

use crate::model::{EVENT_VERSION, Event, Recorded};
use crate::store::{Problem, Result};

use super::Database;
use super::damage::{sum, writing};
use super::sync::SyncPoint;
use super::tables::Rows;

/// Append, sync, and read from a cursor: a remote database could do that too.
pub trait Journal {
    /// All of them or none. Every reader sees them when it returns, and a kill does not lose them.
    fn append(&mut self, run: &str, at: i64, events: &[Event]) -> Result<()>;

    /// When everything appended until now is safe from a power cut, too.
    fn sync_point(&self) -> SyncPoint;

    /// The events after `cursor`, oldest first, and the new cursor.
    fn read(&self, cursor: i64) -> Result<(Vec<Recorded>, i64)>;
}

/// The events of one backlog in one work tree.
struct SqliteJournal {
    database: Rc<Database>,
    /// The PRD's path in the repository.
    backlog: String,
    /// Which of the repository's work trees; empty for the main one.
    work_tree: String,
    /// The last event that was appended.
    newest: i64,
}

pub fn open(database: Rc<Database>, backlog: &str, work_tree: &str) -> impl Journal + use<> {
    let (backlog, work_tree) = (backlog.to_owned(), work_tree.to_owned());
    SqliteJournal { database, backlog, work_tree, newest: 0 }
}

/// A run without an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRun {
    pub run: String,
    /// Milliseconds since the Unix epoch.
    pub began: i64,
}

/// An event as it is in the database.
struct StoredEvent {
    seq: i64,
    run: String,
    at: i64,
    payload: String,
    /// None: written by a ralph that had no checksums.
    sum: Option<i64>,
}

impl StoredEvent {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (seq, run, at, payload, sum) = row.try_into()?;
        Ok(Self { seq, run, at, payload, sum })
    }

    fn event(&self) -> Result<Event> {
        let changed = |written| written != sum_of(&self.run, self.at, &self.payload);
        if self.sum.is_some_and(changed) {
            return Err(Problem::Damaged(format!("event {} was changed", self.seq)).into());
        }
        Ok(Event::from_json(&self.payload).map_err(Problem::Payload)?)
    }
}

fn sum_of(run: &str, at: i64, payload: &str) -> i64 {
    sum(&[run, &at.to_string(), payload])
}

impl Journal for SqliteJournal {
    fn append(&mut self, run: &str, at: i64, events: &[Event]) -> Result<()> {
        // Before the first event that it is responsible for.
        let syncer = self.database.syncer()?;
        self.newest = self.commit(run, at, events).map_err(writing)?;
        syncer.request(self.newest);
        Ok(())
    }

    fn sync_point(&self) -> SyncPoint {
        let syncer = self.database.syncer.get();
        syncer.map(|syncer| syncer.point(self.newest)).unwrap_or_default()
    }

    fn read(&self, cursor: i64) -> Result<(Vec<Recorded>, i64)> {
        let rows = self.database.rows(
            "SELECT seq, run, at, payload, sum FROM events
             WHERE backlog = ?1 AND work_tree = ?2 AND seq > ?3 ORDER BY seq",
            params![self.backlog, self.work_tree, cursor],
            StoredEvent::of,
        )?;
        let last = rows.last().map_or(cursor, |row| row.seq);
        let parse = |row: &StoredEvent| Ok(Recorded { at: row.at, event: row.event()? });
        Ok((rows.iter().map(parse).collect::<Result<_>>()?, last))
    }
}

impl SqliteJournal {
    /// Returns the number of the newest event.
    fn commit(&self, run: &str, at: i64, events: &[Event]) -> rusqlite::Result<i64> {
        let (backlog, work_tree) = (&self.backlog, &self.work_tree);
        let transaction = self.database.begin()?;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO events (backlog, work_tree, run, at, version, payload, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        for event in events {
            let payload = serde_json::to_string(event);
            let payload = payload.map_err(|error| Error::ToSqlConversionFailure(error.into()))?;
            let sum = sum_of(run, at, &payload);
            insert.execute(params![backlog, work_tree, run, at, EVENT_VERSION, payload, sum])?;
        }
        drop(insert);
        // Before other tables get rows with their own numbers.
        let newest = transaction.last_insert_rowid();
        let rows = Rows { connection: &transaction, backlog, work_tree, run, at };
        events.iter().try_for_each(|event| rows.apply(event))?;
        transaction.commit()?;
        Ok(newest)
    }
}

impl Database {
    /// The runs of a work tree that have no end, whatever their backlog.
    pub fn open_runs(&self, work_tree: &str) -> Result<Vec<OpenRun>> {
        // The last event of each run, with the time of its first.
        let last_events = self.rows(
            "SELECT seq, run, at, payload, sum, began FROM events JOIN (
                 SELECT MAX(seq) AS last, MIN(at) AS began FROM events WHERE work_tree = ?1
                 GROUP BY run
             ) ON seq = last ORDER BY seq",
            [work_tree],
            |row| Ok((StoredEvent::of(row)?, row.get(5)?)),
        )?;
        let mut open = Vec::new();
        for (last, began) in last_events {
            if !matches!(last.event()?, Event::RunEnded { .. }) {
                open.push(OpenRun { run: last.run, began });
            }
        }
        Ok(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::damage::Newest;
    use crate::store::{Store, StorePlace};

    fn store_in(folder: &tempfile::TempDir) -> Store {
        Store::new(StorePlace::in_folder(folder.path()))
    }

    fn interrupted(signal: i32) -> Event {
        Event::RunInterrupted { signal }
    }

    #[test]
    fn events_are_read_in_order_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = store_in(&folder).journal("PRD.json").unwrap();
        journal.append("r", 7, &[interrupted(1), interrupted(2)]).unwrap();
        drop(journal);
        let journal = store_in(&folder).journal("PRD.json").unwrap();
        let (events, cursor) = journal.read(0).unwrap();
        assert_eq!(events, [1, 2].map(|signal| Recorded { at: 7, event: interrupted(signal) }));
        assert_eq!(journal.read(cursor).unwrap(), (vec![], cursor));
    }

    #[test]
    fn backlogs_do_not_see_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let mut one = store_in(&folder).journal("a.json").unwrap();
        one.append("r", 1, &[interrupted(1)]).unwrap();
        let other = store_in(&folder).journal("b.json").unwrap();
        assert_eq!(other.read(0).unwrap().0, []);
    }

    #[test]
    fn appended_events_are_read_at_once_and_counted_when_synced() {
        let folder = tempfile::tempdir().unwrap();
        let newest = || Newest::of(&folder.path().join("journal.db")).read().unwrap_or_default();
        let store = store_in(&folder);
        let mut journal = store.journal("PRD.json").unwrap();
        journal.sync_point().wait().unwrap();
        journal.append("r", 2, &[interrupted(1), interrupted(2)]).unwrap();
        journal.append("r", 3, &[interrupted(3)]).unwrap();
        assert_eq!(store_in(&folder).journal("PRD.json").unwrap().read(0).unwrap().0.len(), 3);
        journal.sync_point().wait().unwrap();
        assert_eq!(newest(), 3);
        journal.append("r", 5, &[interrupted(4)]).unwrap();
        drop((journal, store));
        assert_eq!(newest(), 4);
        store_in(&folder).start_check().unwrap().finish().unwrap();
    }

    #[test]
    fn runs_without_an_end_are_found_whatever_their_backlog() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(store_in(&folder).open_runs().unwrap(), []);
        assert!(!store_in(&folder).exists());
        let ended = Event::RunEnded { reason: crate::model::StopReason::AllDone };
        let mut one = store_in(&folder).journal("one.json").unwrap();
        one.append("done", 1, &[Event::RunContinued, ended]).unwrap();
        one.append("open", 2, &[Event::RunContinued]).unwrap();
        one.append("open", 3, &[interrupted(2)]).unwrap();
        let mut two = store_in(&folder).journal("two.json").unwrap();
        two.append("other", 4, &[Event::RunContinued]).unwrap();
        let place = StorePlace::in_folder(folder.path());
        let linked = Store::new(StorePlace { work_tree: "linked".to_owned(), ..place });
        let mut three = linked.journal("one.json").unwrap();
        three.append("linked", 5, &[Event::RunContinued]).unwrap();
        let open = |run: &str, began| OpenRun { run: run.to_owned(), began };
        let runs = store_in(&folder).open_runs().unwrap();
        assert_eq!(runs, [open("open", 2), open("other", 4)]);
        assert_eq!(linked.open_runs().unwrap(), [open("linked", 5)]);
    }
}
