//! Requests to a run.

use std::rc::Rc;

use rusqlite::params;

use crate::model::{Request, Requester};
use crate::store::{Problem, Result};

use super::Database;
use super::damage::sum;

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
        self.pending_where("work_tree = ?1")
    }

    /// Those to the runs of the repository's other work trees.
    pub fn pending_elsewhere(&self) -> Result<Vec<PendingRequest>> {
        self.pending_where("work_tree <> ?1")
    }

    fn pending_where(&self, which: &str) -> Result<Vec<PendingRequest>> {
        let select = format!(
            "SELECT id, wish, pid, started, seal, work_tree FROM wishes WHERE {which} ORDER BY id"
        );
        self.database.rows(&select, [&self.work_tree], |row| {
            let (number, text): (i64, String) = (row.get(0)?, row.get(1)?);
            let by = Requester { pid: row.get(2)?, started: row.get::<_, i64>(3)?.cast_unsigned() };
            let work_tree: String = row.get(5)?;
            let is_sealed = row.get(4) == Ok(Some(seal_of_request(&work_tree, &text, by)));
            let request = serde_json::from_str(&text).ok();
            Ok(PendingRequest { number, request, by: is_sealed.then_some(by) })
        })
    }

    /// No run has taken it.
    pub fn is_pending(&self, number: i64) -> Result<bool> {
        Ok(self.pending()?.iter().any(|pending| pending.number == number))
    }

    /// It is fulfilled, or cannot be fulfilled any more.
    pub fn settle(&self, number: i64) -> Result<()> {
        self.database.execute("DELETE FROM wishes WHERE id = ?1", [number])
    }
}

/// A row without its checksum was written by another program. Like those of the events, it is no
/// secret.
fn seal_of_request(work_tree: &str, text: &str, by: Requester) -> i64 {
    sum(&["request", work_tree, text, &by.pid.to_string(), &by.started.to_string()])
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::store::{Store, StorePlace};

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
        let elsewhere = run.pending_elsewhere().unwrap();
        assert_eq!(elsewhere.iter().map(|one| one.by).collect::<Vec<_>>(), [Some(BY)]);
        run.settle(pending[0].number).unwrap();
        assert_eq!(run.pending().unwrap(), pending[1..]);
    }

    #[test]
    fn a_request_that_another_program_wrote_is_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        requests_in(&folder, "").make(2, &nudge("first"), BY).unwrap();
        let connection = Connection::open(folder.path().join("journal.db")).unwrap();
        for tampering in [
            "INSERT INTO wishes (work_tree, at, wish) SELECT work_tree, at, wish FROM wishes",
            "INSERT INTO wishes SELECT 9, work_tree, at, replace(wish, 'first', 'evil'), pid, started,
                 seal FROM wishes WHERE id = 1",
        ] {
            connection.execute(tampering, []).unwrap();
        }
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
