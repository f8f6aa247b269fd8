//! Texts of the repository that a human saw and accepted.
//!
//! In the journal's database, outside the work tree: an agent that edits a
//! command cannot make it trusted.

use std::path::Path;

use rusqlite::Connection;

use super::journal::{JournalError, schema};

pub struct TrustStore {
    connection: Connection,
}

impl TrustStore {
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Ok(Self { connection: schema::connect(path)? })
    }

    /// Exactly this text, under this name.
    pub fn is_trusted(&self, what: &str, text: &str) -> Result<bool, JournalError> {
        self.connection
            .prepare_cached("SELECT 1 FROM trust WHERE what = ?1 AND text = ?2")
            .and_then(|mut query| query.exists([what, text]))
            .map_err(JournalError::reading)
    }

    /// All of them or none.
    pub fn trust<'a>(
        &mut self,
        at: i64,
        texts: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), JournalError> {
        let write = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            for (what, text) in texts {
                transaction.execute(
                    "INSERT OR REPLACE INTO trust (what, text, at) VALUES (?1, ?2, ?3)",
                    rusqlite::params![what, text, at],
                )?;
            }
            transaction.commit()
        };
        write(&mut self.connection).map_err(JournalError::writing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_text_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let mut store = TrustStore::open(&path).unwrap();
        store.trust(7, [("a gate", "cargo test")].into_iter()).unwrap();
        drop(store);
        let store = TrustStore::open(&path).unwrap();
        assert!(store.is_trusted("a gate", "cargo test").unwrap());
        assert!(!store.is_trusted("a gate", "cargo test ").unwrap());
        assert!(!store.is_trusted("another", "cargo test").unwrap());
    }
}
