//! What the attempts of this repository cost.

use std::rc::Rc;

use rusqlite::Row;

use crate::model::{Usage, Usd};
use crate::store::StoreError;

use super::Database;

/// Reads the tables that are about money.
pub struct Costs(pub(in crate::store) Rc<Database>);

/// One attempt, or one model's part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptCosts {
    pub backlog: String,
    pub story: String,
    pub title: String,
    /// When it ended; while it runs, when it began.
    pub at: i64,
    pub result: String,
    pub elapsed_ms: u64,
    /// As its agent reported.
    pub stated: Option<Usd>,
    /// What it counts as.
    pub counted: Usd,
    pub usage: Usage,
    /// Empty for a whole attempt.
    pub model: String,
}

impl Costs {
    pub fn spent_since(&self, at: i64) -> Result<Usd, StoreError> {
        let sum = "SELECT COALESCE(SUM(counted), 0) FROM attempts WHERE ended_at >= ?1";
        Ok(self.0.rows(sum, [at], |row| row.get(0).map(usd))?.pop().unwrap_or_default())
    }

    /// Every attempt of a run, or of the repository, oldest first.
    pub fn attempts(&self, run: Option<&str>) -> Result<Vec<AttemptCosts>, StoreError> {
        let select = select(
            "COALESCE(SUM(u.input), 0), COALESCE(SUM(u.output), 0),
             COALESCE(SUM(u.cache_read), 0), COALESCE(SUM(u.cache_write), 0), a.counted, ''",
            "LEFT JOIN usage u USING (attempt) WHERE (?1 IS NULL OR a.run = ?1)
             GROUP BY a.attempt",
        );
        self.0.rows(&select, [run], AttemptCosts::of)
    }

    /// The same, with a row for each model that an attempt used.
    pub fn by_model(&self, run: Option<&str>) -> Result<Vec<AttemptCosts>, StoreError> {
        let select = select(
            "u.input, u.output, u.cache_read, u.cache_write, u.counted, u.model",
            "JOIN usage u USING (attempt) WHERE (?1 IS NULL OR a.run = ?1)",
        );
        self.0.rows(&select, [run], AttemptCosts::of)
    }
}

fn select(figures: &str, which: &str) -> String {
    format!(
        "SELECT a.backlog, a.story, a.title, COALESCE(a.ended_at, a.started_at), a.result,
             a.elapsed_ms, a.stated, a.turns, a.tool_calls, {figures}
         FROM attempts a {which} ORDER BY a.started_at, a.attempt"
    )
}

impl AttemptCosts {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let count = |index: usize| row.get(index).map(unsigned);
        Ok(Self {
            backlog: row.get(0)?,
            story: row.get(1)?,
            title: row.get(2)?,
            at: row.get(3)?,
            result: row.get(4)?,
            elapsed_ms: count(5)?,
            stated: row.get::<_, Option<i64>>(6)?.map(usd),
            usage: Usage {
                cost_usd: None,
                turns: count(7)?,
                tool_calls: count(8)?,
                input_tokens: count(9)?,
                output_tokens: count(10)?,
                cache_read_tokens: count(11)?,
                cache_write_tokens: count(12)?,
            },
            counted: row.get(13).map(usd)?,
            model: row.get(14)?,
        })
    }
}

pub(super) fn usd(micros: i64) -> Usd {
    Usd::from_micros(unsigned(micros))
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests;
