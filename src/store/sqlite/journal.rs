//! The journal: every fact of every run.

use std::collections::HashMap;
use std::rc::Rc;

use rusqlite::{Connection, Error, OptionalExtension, Row, params};

use crate::model::{BootMoment, EVENT_VERSION, Event, Recorded};
use crate::store::{Problem, Result};

use super::Database;
use super::damage::{reading, sum, writing};
use super::sync::SyncPoint;
use super::tables::Rows;

/// Append, sync, and read from a cursor: a remote database could do that too.
pub trait Journal {
    /// All of them or none. Every reader sees them when it returns, and a kill does not lose them.
    fn append(&mut self, run: &str, at: i64, events: &[Event]) -> Result<()>;

    /// It is still where other processes look for it.
    fn check_place(&self) -> Result<()>;

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
    newest: Option<Last>,
}

/// The last event of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    seq: i64,
    seal: i64,
}

pub fn open(database: Rc<Database>, backlog: &str, work_tree: &str) -> impl Journal + use<> {
    let (backlog, work_tree) = (backlog.to_owned(), work_tree.to_owned());
    SqliteJournal { database, backlog, work_tree, newest: None }
}

/// A run without an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRun {
    pub run: String,
    /// When its first process began.
    pub began: Option<BootMoment>,
    /// The key of its backlog.
    pub backlog: String,
}

/// An event as it is in the database.
struct StoredEvent {
    seq: i64,
    run: String,
    at: i64,
    payload: String,
    /// None: it was not written by `append`.
    seal: Option<i64>,
}

impl StoredEvent {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            run: row.get(1)?,
            at: row.get(2)?,
            payload: row.get(3)?,
            seal: row.get(4)?,
        })
    }

    /// `before`: the seal of the event before it. Returns its own, too.
    fn event(&self, before: i64) -> Result<(Event, i64)> {
        let seal = seal(before, &self.run, self.at, &self.payload);
        if self.seal != Some(seal) {
            let what = format!("event {} or the one before it was changed", self.seq);
            return Err(Problem::Damaged(what).into());
        }
        Ok((Event::from_json(&self.payload).map_err(Problem::Payload)?, seal))
    }
}

/// The checksum of an event and of all events before it: one that is changed, removed or inserted
/// breaks those of all later ones.
fn seal(before: i64, run: &str, at: i64, payload: &str) -> i64 {
    sum(&[&before.to_string(), run, &at.to_string(), payload])
}

/// What the first event of a journal follows.
fn first_seal(backlog: &str, work_tree: &str) -> i64 {
    sum(&[backlog, work_tree])
}

/// Seals the events of a ralph whose checksums were of one event each, or that had none. A changed
/// event stays without a seal.
pub fn seal_all(connection: &Connection) -> rusqlite::Result<()> {
    let mut last: HashMap<(String, String), i64> = HashMap::new();
    let mut select = connection.prepare(
        "SELECT seq, run, at, payload, seal, backlog, work_tree, sum FROM events ORDER BY seq",
    )?;
    let mut update = connection.prepare("UPDATE events SET seal = ?2 WHERE seq = ?1")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (event, scope) = (StoredEvent::of(row)?, (row.get(5)?, row.get(6)?));
        let StoredEvent { seq, run, at, payload, .. } = &event;
        let own: Option<i64> = row.get(7)?;
        if own.is_some_and(|own| own != sum(&[run, &at.to_string(), payload])) {
            continue;
        }
        let before = last.get(&scope).copied();
        let seal =
            seal(before.unwrap_or_else(|| first_seal(&scope.0, &scope.1)), run, *at, payload);
        update.execute([*seq, seal])?;
        last.insert(scope, seal);
    }
    Ok(())
}

impl Journal for SqliteJournal {
    fn append(&mut self, run: &str, at: i64, events: &[Event]) -> Result<()> {
        self.check_place()?;
        // Before the first event that it is responsible for.
        let syncer = self.database.syncer()?;
        let newest = self.commit(run, at, events)?;
        syncer.request(newest.seq);
        self.newest = Some(newest);
        Ok(())
    }

    fn check_place(&self) -> Result<()> {
        self.database.check_place()
    }

    fn sync_point(&self) -> SyncPoint {
        let syncer = self.database.syncer.get();
        let newest = self.newest.map_or(0, |newest| newest.seq);
        syncer.map(|syncer| syncer.point(newest)).unwrap_or_default()
    }

    fn read(&self, cursor: i64) -> Result<(Vec<Recorded>, i64)> {
        let rows = self.database.rows(
            "SELECT seq, run, at, payload, seal FROM events
             WHERE backlog = ?1 AND work_tree = ?2 AND seq > ?3 ORDER BY seq",
            params![self.backlog, self.work_tree, cursor],
            StoredEvent::of,
        )?;
        let last = rows.last().map_or(cursor, |row| row.seq);
        let mut before = self.last(cursor).map_err(reading)?.seal;
        let mut events = Vec::with_capacity(rows.len());
        for row in rows {
            let (event, seal) = row.event(before)?;
            before = seal;
            events.push(Recorded { at: row.at, event });
        }
        Ok((events, last))
    }
}

impl SqliteJournal {
    fn commit(&self, run: &str, at: i64, events: &[Event]) -> Result<Last> {
        let transaction = self.database.begin().map_err(writing)?;
        let mut last = self.last(i64::MAX).map_err(writing)?;
        if self.newest.is_some_and(|newest| newest != last) {
            return Err(Problem::Lost("another process changed it").into());
        }
        self.insert(&mut last, run, at, events).map_err(writing)?;
        transaction.commit().map_err(writing)?;
        Ok(last)
    }

    fn insert(
        &self,
        last: &mut Last,
        run: &str,
        at: i64,
        events: &[Event],
    ) -> rusqlite::Result<()> {
        let (backlog, work_tree) = (&self.backlog, &self.work_tree);
        let connection = &self.database.connection;
        let mut insert = connection.prepare_cached(
            "INSERT INTO events (backlog, work_tree, run, at, version, payload, seal)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        for event in events {
            let payload = serde_json::to_string(event);
            let payload = payload.map_err(|error| Error::ToSqlConversionFailure(error.into()))?;
            let seal = seal(last.seal, run, at, &payload);
            insert.execute(params![backlog, work_tree, run, at, EVENT_VERSION, payload, seal])?;
            *last = Last { seq: connection.last_insert_rowid(), seal };
        }
        let rows = Rows { connection, backlog, work_tree, run, at };
        events.iter().try_for_each(|event| rows.apply(event))
    }

    /// The last event up to this number.
    fn last(&self, seq: i64) -> rusqlite::Result<Last> {
        let (backlog, work_tree) = (&self.backlog, &self.work_tree);
        let mut select = self.database.connection.prepare_cached(
            "SELECT seq, seal FROM events WHERE backlog = ?1 AND work_tree = ?2 AND seq <= ?3
             ORDER BY seq DESC LIMIT 1",
        )?;
        let last = select.query_row(params![backlog, work_tree, seq], |row| {
            Ok(Last { seq: row.get(0)?, seal: row.get(1)? })
        });
        let none = || Last { seq: 0, seal: first_seal(backlog, work_tree) };
        Ok(last.optional()?.unwrap_or_else(none))
    }
}

impl Database {
    /// The runs of a work tree that have no end, whatever their backlog.
    pub fn open_runs(&self, work_tree: &str) -> Result<Vec<OpenRun>> {
        // The last event of each run, with its start and the seal before the event.
        let last_events = self.rows(
            "SELECT seq, run, at, payload, seal, (
                 SELECT first.payload FROM events first
                 WHERE first.run = events.run AND first.work_tree = ?1
                     AND first.payload LIKE '{\"kind\":\"run_started\"%' ORDER BY first.seq LIMIT 1
             ), backlog, (
                 SELECT earlier.seal FROM events earlier
                 WHERE earlier.backlog = events.backlog AND earlier.work_tree = ?1
                     AND earlier.seq < events.seq ORDER BY earlier.seq DESC LIMIT 1
             ) FROM events JOIN (
                 SELECT MAX(seq) AS last FROM events WHERE work_tree = ?1
                 GROUP BY run
             ) ON seq = last ORDER BY seq",
            [work_tree],
            |row| {
                let (backlog, before): (String, Option<i64>) = (row.get(6)?, row.get(7)?);
                let before = before.unwrap_or_else(|| first_seal(&backlog, work_tree));
                Ok((StoredEvent::of(row)?, row.get(5)?, before, backlog))
            },
        )?;
        let mut open = Vec::new();
        for (last, start, before, backlog) in last_events {
            if !matches!(last.event(before)?.0, Event::RunEnded { .. }) {
                let start: Option<String> = start;
                let start = start.and_then(|payload| Event::from_json(&payload).ok());
                let began = match start {
                    Some(Event::RunStarted(start)) => start.boot.map(|boot| *boot),
                    _ => None,
                };
                open.push(OpenRun { run: last.run, began, backlog });
            }
        }
        Ok(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::damage::Newest;
    use crate::store::sqlite::tables::NO_HUMAN_SEALS;
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
        let open = |run: &str, backlog: &str| {
            let (run, backlog) = (run.to_owned(), backlog.to_owned());
            OpenRun { run, began: None, backlog }
        };
        let runs = store_in(&folder).open_runs().unwrap();
        assert_eq!(runs, [open("open", "one.json"), open("other", "two.json")]);
        assert_eq!(linked.open_runs().unwrap(), [open("linked", "one.json")]);
    }

    fn sql(folder: &tempfile::TempDir, text: &str) {
        Connection::open(folder.path().join("journal.db")).unwrap().execute_batch(text).unwrap();
    }

    /// Three events of one backlog, between those of another.
    fn three() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let store = store_in(&folder);
        let mut other = store.journal("other.json").unwrap();
        let mut journal = store.journal("PRD.json").unwrap();
        for signal in 1..=3 {
            other.append("o", 1, &[interrupted(signal)]).unwrap();
            journal.append("r", 1, &[interrupted(signal)]).unwrap();
        }
        folder
    }

    fn is_damaged(folder: &tempfile::TempDir) -> bool {
        let read = store_in(folder).journal("PRD.json").and_then(|journal| journal.read(0));
        read.map_or_else(
            |error| error.is_damage(),
            |(events, _)| {
                assert_eq!(events.len(), 3);
                false
            },
        )
    }

    #[test]
    fn an_event_that_was_not_appended_is_damage() {
        assert!(!is_damaged(&three()));
        for tampering in [
            "INSERT INTO events SELECT 7, backlog, work_tree, run, at, version, payload, NULL
                 FROM events WHERE seq = 2",
            "INSERT INTO events SELECT 7, backlog, work_tree, run, at, version, payload, seal
                 FROM events WHERE seq = 2",
            "UPDATE events SET seal = NULL WHERE seq = 4",
            "UPDATE events SET backlog = 'PRD.json' WHERE seq = 3",
            "UPDATE events SET seq = 9 WHERE seq = 4",
            "DELETE FROM events WHERE seq = 2",
            "DELETE FROM events WHERE seq = 4",
            "PRAGMA user_version = 7",
            "PRAGMA user_version = 8",
        ] {
            let folder = three();
            sql(&folder, tampering);
            assert!(is_damaged(&folder), "{tampering}");
        }
    }

    #[test]
    fn a_journal_that_another_process_writes_into_is_lost() {
        let folder = three();
        let mut journal = store_in(&folder).journal("PRD.json").unwrap();
        journal.append("r", 2, &[interrupted(4)]).unwrap();
        let mut other = store_in(&folder).journal("PRD.json").unwrap();
        other.append("r", 2, &[interrupted(5)]).unwrap();
        assert!(journal.append("r", 3, &[interrupted(6)]).unwrap_err().is_lost());
        assert_eq!(store_in(&folder).journal("PRD.json").unwrap().read(0).unwrap().0.len(), 5);
    }

    /// As a ralph left it whose checksums were of one event each, after one that had none.
    fn unsealed(folder: &tempfile::TempDir) {
        store_in(folder).journal("PRD.json").unwrap();
        sql(folder, NO_HUMAN_SEALS);
        sql(
            folder,
            "ALTER TABLE events DROP COLUMN seal; ALTER TABLE events ADD COLUMN sum INTEGER;
             PRAGMA user_version = 7",
        );
        let connection = Connection::open(folder.path().join("journal.db")).unwrap();
        for signal in 1..=3 {
            let payload = serde_json::to_string(&interrupted(signal)).unwrap();
            let own = (signal > 1).then(|| sum(&["r", "1", &payload]));
            let insert = "INSERT INTO events (backlog, work_tree, run, at, version, payload, sum)
                          VALUES ('PRD.json', '', 'r', 1, 1, ?1, ?2)";
            connection.execute(insert, params![payload, own]).unwrap();
        }
    }

    #[test]
    fn events_of_an_older_ralph_are_sealed_unless_they_were_changed() {
        let folder = tempfile::tempdir().unwrap();
        unsealed(&folder);
        assert!(!is_damaged(&folder));
        let folder = tempfile::tempdir().unwrap();
        unsealed(&folder);
        sql(&folder, "UPDATE events SET payload = replace(payload, '2', '9') WHERE seq = 2");
        assert!(is_damaged(&folder));
    }
}
