//! What the human approved, and answers that are not asked for again in this repository.
//!
//! They are outside the work tree, so that an agent cannot approve a command. One that writes into the
//! database does not help itself: a run knows what was there when it began, and puts it back.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rusqlite::{Connection, params};

use crate::model::Approval;
use crate::store::Result;

use super::Database;
use super::damage::{sum, writing};

/// The tables' contents at one moment, without rows that another program wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approvals {
    trusted: BTreeSet<(String, String)>,
    remembered: BTreeMap<String, String>,
}

impl Approvals {
    /// Exactly this text was accepted under this name.
    pub fn is_trusted(&self, what: &str, text: &str) -> bool {
        self.trusted.contains(&(what.to_owned(), text.to_owned()))
    }

    pub fn add(&mut self, all: Vec<Approval>) {
        for one in all {
            match one {
                Approval::Trusted { what, text } => drop(self.trusted.insert((what, text))),
                Approval::Answer { key, value } => drop(self.remembered.insert(key, value)),
            }
        }
    }

    /// What stands for each in the journal.
    pub fn sums(&self) -> BTreeSet<String> {
        let trusted = self.trusted.iter().map(|(what, text)| seal_of_trust(what, text));
        let remembered = self.remembered.iter().map(|(key, value)| seal_of_answer(key, value));
        trusted.chain(remembered).map(shown).collect()
    }

    /// Only those that were there when the journal was told of these.
    pub fn retain(&mut self, sums: &BTreeSet<String>) {
        self.trusted.retain(|(what, text)| sums.contains(&shown(seal_of_trust(what, text))));
        self.remembered.retain(|key, value| sums.contains(&shown(seal_of_answer(key, value))));
    }
}

fn shown(sum: i64) -> String {
    format!("{:016x}", sum.cast_unsigned())
}

pub struct Answers(pub(in crate::store) Rc<Database>);

impl Answers {
    pub fn recall(&self, key: &str) -> Result<Option<String>> {
        Ok(self.all()?.remembered.remove(key))
    }

    pub fn remember(&self, key: &str, value: &str) -> Result<()> {
        let insert = "INSERT OR REPLACE INTO remembered (key, value, seal) VALUES (?1, ?2, ?3)";
        self.0.execute(insert, params![key, value, seal_of_answer(key, value)])
    }

    /// All of them or none.
    pub fn trust<'a>(&self, at: i64, all: impl Iterator<Item = (&'a str, &'a str)>) -> Result<()> {
        let transaction = self.0.begin().map_err(writing)?;
        all.into_iter().try_for_each(|(what, text)| self.insert(at, what, text))?;
        Ok(transaction.commit().map_err(writing)?)
    }

    fn insert(&self, at: i64, what: &str, text: &str) -> Result<()> {
        let insert = "INSERT OR REPLACE INTO trust (what, text, at, seal) VALUES (?1, ?2, ?3, ?4)";
        self.0.execute(insert, params![what, text, at, seal_of_trust(what, text)])
    }

    pub fn all(&self) -> Result<Approvals> {
        let mut all = Approvals::default();
        for (what, text, seal) in self.trust_rows()? {
            if seal == Some(seal_of_trust(&what, &text)) {
                all.trusted.insert((what, text));
            }
        }
        for (key, value, seal) in self.answer_rows()? {
            if seal == Some(seal_of_answer(&key, &value)) {
                all.remembered.insert(key, value);
            }
        }
        Ok(all)
    }

    fn trust_rows(&self) -> Result<Vec<SealedRow>> {
        self.rows("SELECT what, text, seal FROM trust")
    }

    fn answer_rows(&self) -> Result<Vec<SealedRow>> {
        self.rows("SELECT key, value, seal FROM remembered")
    }

    fn rows(&self, select: &str) -> Result<Vec<SealedRow>> {
        self.0.rows(select, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
    }

    /// Makes the tables what they were. Returns the names of what had changed.
    pub fn put_back(&self, known: &Approvals, at: i64) -> Result<Vec<String>> {
        let (trusted, answers) = (self.trust_rows()?, self.answer_rows()?);
        let is_known = |(what, text, seal): &&SealedRow| {
            known.is_trusted(what, text) && *seal == Some(seal_of_trust(what, text))
        };
        let is_answer = |(key, value, seal): &&SealedRow| {
            known.remembered.get(key) == Some(value) && *seal == Some(seal_of_answer(key, value))
        };
        let (kept, added): (Vec<_>, Vec<_>) = trusted.iter().partition(is_known);
        let (same, other): (Vec<_>, Vec<_>) = answers.iter().partition(is_answer);
        let is_there =
            |what: &str, text: &str| kept.iter().any(|row| row.0 == what && row.1 == text);
        let gone = known.trusted.iter().filter(|(what, text)| !is_there(what, text));
        let gone: Vec<_> = gone.collect();
        let missing =
            known.remembered.iter().filter(|(key, _)| same.iter().all(|row| row.0 != **key));
        let missing: Vec<_> = missing.collect();
        let names = added.iter().chain(&other).map(|row| &row.0);
        let names = names.chain(gone.iter().map(|(what, _)| what));
        let names: BTreeSet<&String> = names.chain(missing.iter().map(|(key, _)| *key)).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let transaction = self.0.begin().map_err(writing)?;
        for (what, text, _) in &added {
            self.0.execute("DELETE FROM trust WHERE what = ?1 AND text = ?2", [what, text])?;
        }
        for (key, ..) in &other {
            self.0.execute("DELETE FROM remembered WHERE key = ?1", [key])?;
        }
        gone.iter().try_for_each(|(what, text)| self.insert(at, what, text))?;
        missing.iter().try_for_each(|(key, value)| self.remember(key, value))?;
        transaction.commit().map_err(writing)?;
        Ok(names.into_iter().cloned().collect())
    }
}

/// Two texts, and their checksum.
type SealedRow = (String, String, Option<i64>);

/// A row without its checksum was written by another program. Like those of the events, it is no
/// secret.
fn seal_of_answer(key: &str, value: &str) -> i64 {
    sum(&["remembered", key, value])
}

fn seal_of_trust(what: &str, text: &str) -> i64 {
    sum(&["trust", what, text])
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
        let all = answers_in(&folder).all().unwrap();
        assert!(all.is_trusted("a gate", "cargo test"));
        assert!(!all.is_trusted("a gate", "cargo test "));
        assert!(!all.is_trusted("another", "cargo test"));
    }

    const TAMPERINGS: [&str; 6] = [
        "INSERT INTO trust (what, text, at) VALUES ('a gate', 'evil', 7)",
        "INSERT INTO trust SELECT 'a gate', 'evil', at, seal FROM trust",
        "UPDATE remembered SET value = 'daring'",
        "INSERT INTO remembered SELECT 'agent', value, seal FROM remembered",
        "DELETE FROM trust",
        "DELETE FROM remembered",
    ];

    #[test]
    fn what_another_program_writes_does_not_count_and_is_put_back() {
        for tampering in TAMPERINGS {
            let folder = tempfile::tempdir().unwrap();
            let answers = answers_in(&folder);
            answers.trust(7, [("a gate", "cargo test")].into_iter()).unwrap();
            answers.remember("mode", "careful").unwrap();
            let known = answers.all().unwrap();
            assert_eq!(answers.put_back(&known, 8).unwrap(), [""; 0]);
            let connection = Connection::open(folder.path().join("journal.db")).unwrap();
            connection.execute(tampering, []).unwrap();
            assert!(!answers.all().unwrap().is_trusted("a gate", "evil"), "{tampering}");
            assert_ne!(answers.recall("mode").unwrap().as_deref(), Some("daring"), "{tampering}");
            assert_eq!(answers.put_back(&known, 8).unwrap().len(), 1, "{tampering}");
            assert_eq!(answers.all().unwrap(), known, "{tampering}");
            assert_eq!(answers.put_back(&known, 8).unwrap(), [""; 0], "{tampering}");
        }
    }

    /// With a valid checksum.
    #[test]
    fn what_appeared_since_a_run_looked_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let answers = answers_in(&folder);
        answers.trust(7, [("a gate", "cargo test")].into_iter()).unwrap();
        let seen = answers.all().unwrap();
        answers.trust(8, [("a gate", "later")].into_iter()).unwrap();
        let mut known = answers.all().unwrap();
        known.retain(&seen.sums());
        assert_eq!(known, seen);
        assert_eq!(answers.put_back(&known, 9).unwrap(), ["a gate"]);
        assert_eq!(answers.all().unwrap(), seen);
        let (what, text) = ("a gate".to_owned(), "later".to_owned());
        known.add(vec![Approval::Trusted { what, text }]);
        assert!(known.is_trusted("a gate", "later"));
    }
}
