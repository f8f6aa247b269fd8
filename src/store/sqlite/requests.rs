//! Requests from other processes to the run of a work tree.
//!
//! Only the run appends events: another process that wants something leaves a request here, and
//! the run takes it up.

use std::rc::Rc;

use rusqlite::params;

use crate::model::Request;
use crate::store::error::{Problem, StoreError};

use super::Database;

pub struct Requests {
    database: Rc<Database>,
    work_tree: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PendingRequest {
    pub number: i64,
    /// None: a newer ralph made it, and this one does not know it.
    pub request: Option<Request>,
}

impl Requests {
    pub(in crate::store) fn new(database: Rc<Database>, work_tree: &str) -> Self {
        Self { database, work_tree: work_tree.to_owned() }
    }

    pub fn make(&self, at: i64, request: &Request) -> Result<(), StoreError> {
        let text = serde_json::to_string(request).map_err(Problem::Payload)?;
        let insert = "INSERT INTO wishes (work_tree, at, wish) VALUES (?1, ?2, ?3)";
        let made = self.database.connection.execute(insert, params![self.work_tree, at, text]);
        made.map_err(Problem::Write)?;
        Ok(())
    }

    /// Those that were not taken up yet, oldest first.
    pub fn pending(&self) -> Result<Vec<PendingRequest>, StoreError> {
        Ok(self.rows().map_err(Problem::Read)?)
    }

    fn rows(&self) -> rusqlite::Result<Vec<PendingRequest>> {
        let select = "SELECT id, wish FROM wishes WHERE work_tree = ?1 ORDER BY id";
        let mut query = self.database.connection.prepare_cached(select)?;
        let request = |row: &rusqlite::Row<'_>| {
            let text: String = row.get(1)?;
            Ok(PendingRequest { number: row.get(0)?, request: serde_json::from_str(&text).ok() })
        };
        query.query_map([&self.work_tree], request)?.collect()
    }

    /// It is fulfilled, or cannot be fulfilled any more.
    pub fn settle(&self, number: i64) -> Result<(), StoreError> {
        let delete = "DELETE FROM wishes WHERE id = ?1";
        self.database.connection.execute(delete, [number]).map_err(Problem::Write)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, StorePlace};

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
    fn what_a_newer_ralph_wants_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let requests = requests_in(&folder, "");
        let insert = "INSERT INTO wishes (work_tree, at, wish) VALUES ('', 1, '{\"wish\":\"x\"}')";
        requests.database.connection.execute(insert, []).unwrap();
        assert_eq!(requests.pending().unwrap()[0].request, None);
    }
}
