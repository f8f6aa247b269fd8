//! Wishes of other processes, on their way to the driver of a work tree.
//!
//! Only the driver appends events: whoever else wants something puts it here, and the driver takes
//! it up.

use std::path::Path;

use rusqlite::{Connection, params};

use super::journal::{JournalError, schema};
use crate::core::wish::Wish;

pub struct Wishes {
    connection: Connection,
    work_tree: String,
}

/// A wish with its number. None: a newer ralph made it, and this one does not know it.
pub type Numbered = (i64, Option<Wish>);

impl Wishes {
    pub fn open(path: &Path, work_tree: &str) -> Result<Self, JournalError> {
        Ok(Self { connection: schema::connect(path)?, work_tree: work_tree.to_owned() })
    }

    pub fn make(&self, at: i64, wish: &Wish) -> Result<(), JournalError> {
        let text = serde_json::to_string(wish).map_err(JournalError::Payload)?;
        let insert = "INSERT INTO wishes (work_tree, at, wish) VALUES (?1, ?2, ?3)";
        let made = self.connection.execute(insert, params![self.work_tree, at, text]);
        made.map(drop).map_err(JournalError::Write)
    }

    /// Those nobody has taken up yet, oldest first.
    pub fn pending(&self) -> Result<Vec<Numbered>, JournalError> {
        self.rows().map_err(JournalError::Read)
    }

    fn rows(&self) -> rusqlite::Result<Vec<Numbered>> {
        let select = "SELECT id, wish FROM wishes WHERE work_tree = ?1 ORDER BY id";
        let mut query = self.connection.prepare_cached(select)?;
        let wish = |row: &rusqlite::Row<'_>| {
            let text: String = row.get(1)?;
            Ok((row.get(0)?, serde_json::from_str(&text).ok()))
        };
        query.query_map([&self.work_tree], wish)?.collect()
    }

    /// It is fulfilled, or nobody can fulfil it any more.
    pub fn settle(&self, number: i64) -> Result<(), JournalError> {
        let delete = self.connection.execute("DELETE FROM wishes WHERE id = ?1", [number]);
        delete.map(drop).map_err(JournalError::Write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nudge(text: &str) -> Wish {
        Wish::Nudge { text: text.to_owned() }
    }

    #[test]
    fn wishes_wait_in_order_for_the_driver_of_their_work_tree() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let (driver, human) = (Wishes::open(&path, "").unwrap(), Wishes::open(&path, "").unwrap());
        assert_eq!(driver.pending().unwrap(), []);
        Wishes::open(&path, "linked").unwrap().make(1, &nudge("other")).unwrap();
        for text in ["first", "second"] {
            human.make(2, &nudge(text)).unwrap();
        }
        let pending = driver.pending().unwrap();
        let wishes: Vec<_> = pending.iter().map(|(_, wish)| wish.clone().unwrap()).collect();
        assert_eq!(wishes, ["first", "second"].map(nudge));
        driver.settle(pending[0].0).unwrap();
        assert_eq!(driver.pending().unwrap(), pending[1..]);
    }

    #[test]
    fn what_a_newer_ralph_wants_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let wishes = Wishes::open(&folder.path().join("journal.db"), "").unwrap();
        let insert = "INSERT INTO wishes (work_tree, at, wish) VALUES ('', 1, '{\"wish\":\"x\"}')";
        wishes.connection.execute(insert, []).unwrap();
        assert_eq!(wishes.pending().unwrap()[0].1, None);
    }
}
