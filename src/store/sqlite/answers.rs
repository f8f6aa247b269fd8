//! What a human answered once and is not asked again, for the whole repository.
//!
//! Outside the work tree: an agent that edits a command cannot make it trusted.

use std::rc::Rc;

use rusqlite::{OptionalExtension, params};

use crate::store::error::StoreError;

use super::Database;
use super::damage::{reading, writing};

pub struct Answers {
    database: Rc<Database>,
}

impl Answers {
    pub(in crate::store) fn new(database: Rc<Database>) -> Self {
        Self { database }
    }

    pub fn recall(&self, key: &str) -> Result<Option<String>, StoreError> {
        let select = "SELECT value FROM remembered WHERE key = ?1";
        let found = self.database.connection.query_row(select, [key], |row| row.get(0)).optional();
        Ok(found.map_err(reading)?)
    }

    pub fn remember(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let insert = "INSERT OR REPLACE INTO remembered VALUES (?1, ?2)";
        self.database.connection.execute(insert, [key, value]).map_err(writing)?;
        Ok(())
    }

    /// Was exactly this text accepted, under this name?
    pub fn is_trusted(&self, what: &str, text: &str) -> Result<bool, StoreError> {
        let select = "SELECT 1 FROM trust WHERE what = ?1 AND text = ?2";
        let query = self.database.connection.prepare_cached(select);
        Ok(query.and_then(|mut query| query.exists([what, text])).map_err(reading)?)
    }

    /// All of them or none.
    pub fn trust<'a>(
        &self,
        at: i64,
        texts: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), StoreError> {
        let write = || {
            let transaction = self.database.begin()?;
            for (what, text) in texts {
                transaction.execute(
                    "INSERT OR REPLACE INTO trust (what, text, at) VALUES (?1, ?2, ?3)",
                    params![what, text, at],
                )?;
            }
            transaction.commit()
        };
        Ok(write().map_err(writing)?)
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
}
