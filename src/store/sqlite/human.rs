//! The human's stored answers, and requests to a run.

use std::rc::Rc;

use rusqlite::{Connection, params};

use crate::model::{Request, Requester};
use crate::store::{Problem, Result};

use super::Database;
use super::damage::{sum, writing};

/// Answers that are not asked for again in this repository.
///
/// They are outside the work tree, so that an agent cannot approve a command.
pub struct Answers(pub(in crate::store) Rc<Database>);

impl Answers {
    pub fn recall(&self, key: &str) -> Result<Option<String>> {
        let select = "SELECT value, seal FROM remembered WHERE key = ?1";
        let found = self.0.rows(select, [key], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let sealed = |(value, seal): (String, Option<i64>)| {
            (seal == Some(seal_of_answer(key, &value))).then_some(value)
        };
        Ok(found.into_iter().find_map(sealed))
    }

    pub fn remember(&self, key: &str, value: &str) -> Result<()> {
        let insert = "INSERT OR REPLACE INTO remembered (key, value, seal) VALUES (?1, ?2, ?3)";
        self.0.execute(insert, params![key, value, seal_of_answer(key, value)])
    }

    /// Exactly this text was accepted under this name.
    pub fn is_trusted(&self, what: &str, text: &str) -> Result<bool> {
        let select = "SELECT 1 FROM trust WHERE what = ?1 AND text = ?2 AND seal = ?3";
        let sealed = params![what, text, seal_of_trust(what, text)];
        Ok(!self.0.rows(select, sealed, |_| Ok(()))?.is_empty())
    }

    /// All of them or none.
    pub fn trust<'a>(&self, at: i64, all: impl Iterator<Item = (&'a str, &'a str)>) -> Result<()> {
        let transaction = self.0.begin().map_err(writing)?;
        for (what, text) in all {
            let insert =
                "INSERT OR REPLACE INTO trust (what, text, at, seal) VALUES (?1, ?2, ?3, ?4)";
            self.0.execute(insert, params![what, text, at, seal_of_trust(what, text)])?;
        }
        Ok(transaction.commit().map_err(writing)?)
    }
}

/// Requests from other processes to the run of a work tree. Only the run appends events.
pub struct Requests {
    pub(in crate::store) database: Rc<Database>,
    pub(in crate::store) work_tree: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PendingRequest {
    pub number: i64,
    /// None: a newer ralph made it, and this one does not know it.
    pub request: Option<Request>,
    /// None: no ralph wrote it.
    pub by: Option<Requester>,
}

impl Requests {
    /// Returns its number.
    pub fn make(&self, at: i64, request: &Request, by: Requester) -> Result<i64> {
        let text = serde_json::to_string(request).map_err(Problem::Payload)?;
        let started = by.started.cast_signed();
        let seal = seal_of_request(&self.work_tree, &text, by);
        let insert = "INSERT INTO wishes (work_tree, at, wish, pid, started, seal)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id";
        let row = params![self.work_tree, at, text, by.pid, started, seal];
        let rows = self.database.rows(insert, row, |row| row.get(0));
        Ok(rows?.pop().unwrap_or_default())
    }

    /// Oldest first.
    pub fn pending(&self) -> Result<Vec<PendingRequest>> {
        let select =
            "SELECT id, wish, pid, started, seal FROM wishes WHERE work_tree = ?1 ORDER BY id";
        self.database.rows(select, [&self.work_tree], |row| {
            let (number, text): (i64, String) = (row.get(0)?, row.get(1)?);
            let by = Requester { pid: row.get(2)?, started: row.get::<_, i64>(3)?.cast_unsigned() };
            let is_sealed = row.get(4) == Ok(Some(seal_of_request(&self.work_tree, &text, by)));
            let request = serde_json::from_str(&text).ok();
            Ok(PendingRequest { number, request, by: is_sealed.then_some(by) })
        })
    }

    /// It is fulfilled, or cannot be fulfilled any more.
    pub fn settle(&self, number: i64) -> Result<()> {
        self.database.execute("DELETE FROM wishes WHERE id = ?1", [number])
    }
}

/// A row without its checksum was written by another program. Like those of the events, it is no
/// secret.
fn seal_of_answer(key: &str, value: &str) -> i64 {
    sum(&["remembered", key, value])
}

fn seal_of_trust(what: &str, text: &str) -> i64 {
    sum(&["trust", what, text])
}

fn seal_of_request(work_tree: &str, text: &str, by: Requester) -> i64 {
    sum(&["request", work_tree, text, &by.pid.to_string(), &by.started.to_string()])
}

/// The rows of a ralph that had no checksums of them.
pub fn seal_answers(connection: &Connection) -> rusqlite::Result<()> {
    for (table, [first, second], seal) in [
        ("remembered", ["key", "value"], seal_of_answer as fn(&str, &str) -> i64),
        ("trust", ["what", "text"], seal_of_trust),
    ] {
        let mut select = connection.prepare(&format!("SELECT {first}, {second} FROM {table}"))?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
        let update = format!("UPDATE {table} SET seal = ?3 WHERE {first} = ?1 AND {second} = ?2");
        for (first, second) in rows {
            let seal = seal(&first, &second);
            connection.execute(&update, params![first, second, seal])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, StorePlace};

    fn answers_in(folder: &tempfile::TempDir) -> Answers {
        Store::new(StorePlace::in_folder(folder.path())).answers().unwrap()
    }

    #[test]
    fn the_last_answer_is_remembered_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let answers = answers_in(&folder);
        assert_eq!(answers.recall("a").unwrap(), None);
        for value in ["first", "last"] {
            answers.remember("a", value).unwrap();
        }
        drop(answers);
        let answers = answers_in(&folder);
        assert_eq!(answers.recall("a").unwrap().as_deref(), Some("last"));
        assert_eq!(answers.recall("b").unwrap(), None);
    }

    #[test]
    fn only_the_exact_text_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        answers_in(&folder).trust(7, [("a gate", "cargo test")].into_iter()).unwrap();
        let answers = answers_in(&folder);
        assert!(answers.is_trusted("a gate", "cargo test").unwrap());
        assert!(!answers.is_trusted("a gate", "cargo test ").unwrap());
        assert!(!answers.is_trusted("another", "cargo test").unwrap());
    }

    const BY: Requester = Requester { pid: 7, started: 70 };

    fn nudge(text: &str) -> Request {
        Request::Nudge { text: text.to_owned() }
    }

    fn requests_in(folder: &tempfile::TempDir, work_tree: &str) -> Requests {
        let place = StorePlace::in_folder(folder.path());
        let place = StorePlace { work_tree: work_tree.to_owned(), ..place };
        Store::new(place).requests().unwrap()
    }

    #[test]
    fn requests_wait_in_order_for_the_run_of_their_work_tree() {
        let folder = tempfile::tempdir().unwrap();
        let (run, human) = (requests_in(&folder, ""), requests_in(&folder, ""));
        assert_eq!(run.pending().unwrap(), []);
        requests_in(&folder, "linked").make(1, &nudge("other"), BY).unwrap();
        for text in ["first", "second"] {
            human.make(2, &nudge(text), BY).unwrap();
        }
        let pending = run.pending().unwrap();
        let requests: Vec<_> = pending.iter().map(|one| one.request.clone().unwrap()).collect();
        assert_eq!(requests, ["first", "second"].map(nudge));
        run.settle(pending[0].number).unwrap();
        assert_eq!(run.pending().unwrap(), pending[1..]);
    }

    #[test]
    fn what_another_program_wrote_into_the_tables_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let answers = answers_in(&folder);
        answers.trust(7, [("a gate", "cargo test")].into_iter()).unwrap();
        answers.remember("mode", "careful").unwrap();
        requests_in(&folder, "").make(2, &nudge("first"), BY).unwrap();
        let connection = Connection::open(folder.path().join("journal.db")).unwrap();
        for tampering in [
            "INSERT INTO trust (what, text, at) VALUES ('a gate', 'evil', 7)",
            "INSERT INTO trust SELECT 'a gate', 'evil 2', at, seal FROM trust WHERE text = 'cargo test'",
            "UPDATE remembered SET value = 'daring'",
            "INSERT INTO wishes (work_tree, at, wish) SELECT work_tree, at, wish FROM wishes",
            "INSERT INTO wishes SELECT 9, work_tree, at, replace(wish, 'first', 'evil'), pid, started,
                 seal FROM wishes WHERE id = 1",
        ] {
            connection.execute(tampering, []).unwrap();
        }
        assert!(answers.is_trusted("a gate", "cargo test").unwrap());
        assert!(!answers.is_trusted("a gate", "evil").unwrap());
        assert!(!answers.is_trusted("a gate", "evil 2").unwrap());
        assert_eq!(answers.recall("mode").unwrap(), None);
        let pending = requests_in(&folder, "").pending().unwrap();
        let by: Vec<_> = pending.iter().map(|one| one.by).collect();
        assert_eq!(by, [Some(BY), None, None]);
    }

    #[test]
    fn a_request_that_is_not_text_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let requests = requests_in(&folder, "");
        let insert = "INSERT INTO wishes (work_tree, at, wish) VALUES ('', 1, x'ff')";
        requests.database.execute(insert, []).unwrap();
        assert!(requests.pending().unwrap_err().is_damage());
    }

    #[test]
    fn an_unknown_request_of_a_newer_ralph_is_pending_too() {
        let folder = tempfile::tempdir().unwrap();
        let requests = requests_in(&folder, "");
        let insert = "INSERT INTO wishes (work_tree, at, wish) VALUES ('', 1, '{\"wish\":\"x\"}')";
        requests.database.execute(insert, []).unwrap();
        assert_eq!(requests.pending().unwrap()[0].request, None);
    }
}
