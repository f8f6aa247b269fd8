//! What the attempts of this repository cost.

use std::rc::Rc;

use rusqlite::{Connection, Row, params};

use crate::model::{Usage, Usd};
use crate::store::error::{Problem, StoreError};

use super::Database;

/// The agent whose costs are made up.
const MADE_UP: &str = "mock";

/// The tables of the journal's database that are about money; only read here.
pub struct Costs {
    database: Rc<Database>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptCosts {
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

impl Costs {
    pub(in crate::store) fn new(database: Rc<Database>) -> Self {
        Self { database }
    }

    pub fn spent_since(&self, at: i64) -> Result<Usd, StoreError> {
        let sum = "SELECT COALESCE(SUM(counted), 0) FROM attempts WHERE ended_at >= ?1";
        let sum = self.database.connection.query_row(sum, [at], |row| row.get(0));
        Ok(sum.map(usd).map_err(Problem::Read)?)
    }

    /// Every attempt of a run, or of the repository, oldest first.
    pub fn attempts(&self, run: Option<&str>) -> Result<Vec<AttemptCosts>, StoreError> {
        self.entries(
            "COALESCE(SUM(u.input), 0), COALESCE(SUM(u.output), 0),
             COALESCE(SUM(u.cache_read), 0), COALESCE(SUM(u.cache_write), 0), a.counted, ''",
            "LEFT JOIN usage u USING (attempt) WHERE (?1 IS NULL OR a.run = ?1)
             GROUP BY a.attempt",
            run,
        )
    }

    /// The same, with a row for each model that an attempt used.
    pub fn by_model(&self, run: Option<&str>) -> Result<Vec<AttemptCosts>, StoreError> {
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
    ) -> Result<Vec<AttemptCosts>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS}, {figures} FROM attempts a {which} ORDER BY a.started_at, a.attempt"
        );
        let read = || {
            let mut query = self.database.connection.prepare(&sql)?;
            query.query_map([run], entry)?.collect::<rusqlite::Result<Vec<AttemptCosts>>>()
        };
        Ok(read().map_err(Problem::Read)?)
    }
}

/// What ended since then and cost real money: attempt, end, millionths of a dollar.
pub(super) fn paid_since(
    connection: &Connection,
    at: i64,
) -> rusqlite::Result<Vec<(String, i64, i64)>> {
    let mut query = connection.prepare_cached(
        "SELECT attempt, ended_at, counted FROM attempts WHERE ended_at >= ?1 AND agent <> ?2",
    )?;
    let paid = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    query.query_map(params![at, MADE_UP], paid)?.collect()
}

fn entry(row: &Row<'_>) -> rusqlite::Result<AttemptCosts> {
    let count = |index: usize| row.get(index).map(unsigned);
    Ok(AttemptCosts {
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

pub(super) fn usd(micros: i64) -> Usd {
    Usd::from_micros(unsigned(micros))
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests;
