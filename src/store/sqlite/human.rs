//! The human's stored answers, and requests to a run.

use std::rc::Rc;

use rusqlite::params;

use crate::model::Request;
use crate::store::{Problem, Result};

use super::Database;
use super::damage::writing;

/// Answers that are not asked for again in this repository.
///
/// They are outside the work tree, so that an agent cannot approve a command.
pub struct Answers(pub(in crate::store) Rc<Database>);

impl Answers {
    pub fn recall(&self, key: &str) -> Result<Option<String>> {
        let select = "SELECT value FROM remembered WHERE key = ?1";
        Ok(self.0.rows(select, [key], |row| row.get(0))?.pop())
    }

    pub fn remember(&self, key: &str, value: &str) -> Result<()> {
        self.0.execute("INSERT OR REPLACE INTO remembered VALUES (?1, ?2)", [key, value])
    }

    /// Exactly this text was accepted under this name.
    pub fn is_trusted(&self, what: &str, text: &str) -> Result<bool> {
        let select = "SELECT 1 FROM trust WHERE what = ?1 AND text = ?2";
        Ok(!self.0.rows(select, [what, text], |_| Ok(()))?.is_empty())
    }

    /// All of them or none.
    pub fn trust<'a>(&self, at: i64, all: impl Iterator<Item = (&'a str, &'a str)>) -> Result<()> {
        let transaction = self.0.begin().map_err(writing)?;
        for (what, text) in all {
            let insert = "INSERT OR REPLACE INTO trust (what, text, at) VALUES (?1, ?2, ?3)";
            self.0.execute(insert, params![what, text, at])?;
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
}

impl Requests {
    /// Returns its number.
    pub fn make(&self, at: i64, request: &Request) -> Result<i64> {
        let text = serde_json::to_string(request).map_err(Problem::Payload)?;
        let insert = "INSERT INTO wishes (work_tree, at, wish) VALUES (?1, ?2, ?3) RETURNING id";
        let rows = self.database.rows(insert, params![self.work_tree, at, text], |row| row.get(0));
        Ok(rows?.pop().unwrap_or_default())
    }

    /// Oldest first.
    pub fn pending(&self) -> Result<Vec<PendingRequest>> {
        let select = "SELECT id, wish FROM wishes WHERE work_tree = ?1 ORDER BY id";
        self.database.rows(select, [&self.work_tree], |row| {
            let text: String = row.get(1)?;
            Ok(PendingRequest { number: row.get(0)?, request: serde_json::from_str(&text).ok() })
        })
    }

    /// It is fulfilled, or cannot be fulfilled any more.
    pub fn settle(&self, number: i64) -> Result<()> {
        self.database.execute("DELETE FROM wishes WHERE id = ?1", [number])
    }
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
        requests_in(&folder, "linked").make(1, &nudge("other")).unwrap();
        for text in ["first", "second"] {
            human.make(2, &nudge(text)).unwrap();
        }
        let pending = run.pending().unwrap();
        let requests: Vec<_> = pending.iter().map(|one| one.request.clone().unwrap()).collect();
        assert_eq!(requests, ["first", "second"].map(nudge));
        run.settle(pending[0].number).unwrap();
        assert_eq!(run.pending().unwrap(), pending[1..]);
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
