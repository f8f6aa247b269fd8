//! What was spent: this repository's attempts, and the user's days over all repositories.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row, TransactionBehavior, params};

use super::journal::{JournalError, schema};
use super::room::{append_private, private_folder};
use crate::core::event::Usage;
use crate::core::money::Usd;

/// How long another run may keep the user's file to itself.
const PATIENCE: Duration = Duration::from_secs(10);
const FILE: &str = "spending.db";
/// The agent whose costs are made up.
const MADE_UP: &str = "mock";

/// The tables of the journal's database that are about money; only read here.
pub struct Books {
    connection: Connection,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub attempt: String,
    pub run: String,
    pub backlog: String,
    pub story: String,
    pub title: String,
    pub agent: String,
    /// When it ended; of one that has not, when it began.
    pub at: i64,
    pub result: String,
    pub elapsed_ms: u64,
    /// What its agent said.
    pub stated: Option<Usd>,
    /// What it counts as.
    pub counted: Usd,
    pub usage: Usage,
    /// One model's part of it, where it is asked for by model.
    pub model: String,
}

const COLUMNS: &str = "a.attempt, a.run, a.backlog, a.story, a.title, a.agent,
     COALESCE(a.ended_at, a.started_at), a.result, a.elapsed_ms, a.stated, a.turns, a.tool_calls";

impl Books {
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Ok(Self { connection: schema::connect(path)? })
    }

    pub fn spent_since(&self, at: i64) -> Result<Usd, JournalError> {
        let sum = "SELECT COALESCE(SUM(counted), 0) FROM attempts WHERE ended_at >= ?1";
        let sum = self.connection.query_row(sum, [at], |row| row.get(0));
        sum.map(usd).map_err(JournalError::Read)
    }

    /// Every attempt of a run, or of the repository, oldest first.
    pub fn attempts(&self, run: Option<&str>) -> Result<Vec<Entry>, JournalError> {
        self.entries(
            "COALESCE(SUM(u.input), 0), COALESCE(SUM(u.output), 0),
             COALESCE(SUM(u.cache_read), 0), COALESCE(SUM(u.cache_write), 0), a.counted, ''",
            "LEFT JOIN usage u USING (attempt) WHERE (?1 IS NULL OR a.run = ?1)
             GROUP BY a.attempt",
            run,
        )
    }

    /// The same, with a row for each model that an attempt used.
    pub fn by_model(&self, run: Option<&str>) -> Result<Vec<Entry>, JournalError> {
        self.entries(
            "u.input, u.output, u.cache_read, u.cache_write, u.counted, u.model",
            "JOIN usage u USING (attempt) WHERE (?1 IS NULL OR a.run = ?1)",
            run,
        )
    }

    fn entries(
        &self,
        figures: &str,
        which: &str,
        run: Option<&str>,
    ) -> Result<Vec<Entry>, JournalError> {
        let sql = format!(
            "SELECT {COLUMNS}, {figures} FROM attempts a {which} ORDER BY a.started_at, a.attempt"
        );
        let read = || {
            let mut query = self.connection.prepare(&sql)?;
            query.query_map([run], entry)?.collect::<rusqlite::Result<Vec<Entry>>>()
        };
        read().map_err(JournalError::Read)
    }

    /// What ended since then and cost real money.
    fn paid_since(&self, at: i64) -> Result<Vec<(String, i64, i64)>, JournalError> {
        let read = || {
            let mut query = self.connection.prepare_cached(
                "SELECT attempt, ended_at, counted FROM attempts
                 WHERE ended_at >= ?1 AND agent <> ?2",
            )?;
            let rows = query.query_map(params![at, MADE_UP], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(JournalError::Read)
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let count = |index: usize| row.get(index).map(unsigned);
    Ok(Entry {
        attempt: row.get(0)?,
        run: row.get(1)?,
        backlog: row.get(2)?,
        story: row.get(3)?,
        title: row.get(4)?,
        agent: row.get(5)?,
        at: row.get(6)?,
        result: row.get(7)?,
        elapsed_ms: count(8)?,
        stated: row.get::<_, Option<i64>>(9)?.map(usd),
        usage: Usage {
            cost_usd: None,
            turns: count(10)?,
            tool_calls: count(11)?,
            input_tokens: count(12)?,
            output_tokens: count(13)?,
            cache_read_tokens: count(14)?,
            cache_write_tokens: count(15)?,
        },
        counted: row.get(16).map(usd)?,
        model: row.get(17)?,
    })
}

/// `$XDG_STATE_HOME/ralph`, else `~/.local/state/ralph`, on every system.
pub fn state_folder(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |text: String| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let state = env("XDG_STATE_HOME").and_then(absolute);
    let home = || env("HOME").and_then(absolute).map(|home| home.join(".local/state"));
    state.or_else(home).map(|folder| folder.join("ralph"))
}

/// What the user's runs cost, one row per attempt, whatever the repository.
pub struct UserBooks {
    connection: Connection,
}

#[derive(Debug, thiserror::Error)]
#[error("`{path}`: {problem}")]
pub struct UserBooksError {
    pub path: String,
    pub problem: String,
}

impl UserBooks {
    /// Not in WAL mode: home folders can be on a network.
    pub fn open(folder: &Path) -> Result<Self, UserBooksError> {
        let path = folder.join(FILE);
        let failed = |problem: String| UserBooksError { path: path.display().to_string(), problem };
        private_folder(folder).map_err(|error| failed(error.to_string()))?;
        append_private(&path).map_err(|error| failed(error.to_string()))?;
        let open = || {
            let connection = Connection::open(&path)?;
            connection.busy_timeout(PATIENCE)?;
            connection.execute_batch(
                "CREATE TABLE IF NOT EXISTS spent (
                     attempt    TEXT PRIMARY KEY,
                     at         INTEGER NOT NULL,
                     repository TEXT    NOT NULL,
                     counted    INTEGER NOT NULL
                 ) WITHOUT ROWID;
                 CREATE INDEX IF NOT EXISTS spent_by_time ON spent (at, counted);",
            )?;
            Ok(connection)
        };
        let connection = open().map_err(|error: rusqlite::Error| failed(error.to_string()))?;
        Ok(Self { connection })
    }

    /// To read only, where there are any.
    pub fn look(folder: &Path) -> Option<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(folder.join(FILE), flags).ok()?;
        connection.busy_timeout(PATIENCE).ok()?;
        Some(Self { connection })
    }

    /// Everything that ended since then; what is there already stays as it is.
    pub fn take_over(
        &mut self,
        books: &Books,
        repository: &str,
        since: i64,
    ) -> Result<(), UserBooksError> {
        let paid = books.paid_since(since).map_err(|error| self.failed(error.to_string()))?;
        let write = |connection: &mut Connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for (attempt, at, counted) in &paid {
                transaction.execute(
                    "INSERT OR IGNORE INTO spent VALUES (?1, ?2, ?3, ?4)",
                    params![attempt, at, repository, counted],
                )?;
            }
            transaction.commit()
        };
        write(&mut self.connection).map_err(|error| self.failed(error.to_string()))
    }

    pub fn spent_since(&self, at: i64) -> Result<Usd, UserBooksError> {
        let sum = "SELECT COALESCE(SUM(counted), 0) FROM spent WHERE at >= ?1";
        let sum = self.connection.query_row(sum, [at], |row| row.get(0));
        sum.map(usd).map_err(|error| self.failed(error.to_string()))
    }

    fn failed(&self, problem: String) -> UserBooksError {
        let path = self.connection.path().unwrap_or(FILE).to_owned();
        UserBooksError { path, problem }
    }
}

fn usd(micros: i64) -> Usd {
    Usd::from_micros(unsigned(micros))
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests;
