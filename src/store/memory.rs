//! What a human answered once and is not asked again, for the whole repository.
//!
//! In the journal's database: out of the reach of `git clean`, and never committed.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::journal::{JournalError, schema};

pub struct Memory {
    connection: Connection,
}

impl Memory {
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Ok(Self { connection: schema::connect(path)? })
    }

    pub fn recall(&self, key: &str) -> Result<Option<String>, JournalError> {
        self.connection
            .query_row("SELECT value FROM remembered WHERE key = ?1", [key], |row| row.get(0))
            .optional()
            .map_err(JournalError::reading)
    }

    pub fn remember(&self, key: &str, value: &str) -> Result<(), JournalError> {
        self.connection
            .execute("INSERT OR REPLACE INTO remembered VALUES (?1, ?2)", [key, value])
            .map(|_| ())
            .map_err(JournalError::writing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_is_remembered_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let memory = Memory::open(&path).unwrap();
        assert_eq!(memory.recall("a").unwrap(), None);
        for value in ["first", "last"] {
            memory.remember("a", value).unwrap();
        }
        drop(memory);
        let memory = Memory::open(&path).unwrap();
        assert_eq!(memory.recall("a").unwrap().as_deref(), Some("last"));
        assert_eq!(memory.recall("b").unwrap(), None);
    }
}
