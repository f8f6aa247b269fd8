//! The tables of the journal's database: how an older one gets them, and how events fill them.
//!
//! They are filled in the transaction that appends the events, so both always agree, and the costs of
//! a day or a model are one query. The events stay the truth: the tables can be filled from them again.
//! `snapshots` and `questions` are for people who use SQL; nothing reads them.

use rusqlite::{Connection, Params, TransactionBehavior, params};

use crate::model::{
    Answer, AttemptEnded, AttemptStarted, Event, IterationResult, ModelUse, StoryId, Usd,
};

use super::approvals::seal_answers;
use super::journal::seal_all;

/// Each leads from one version to the next, beginning with an empty file. A released migration never
/// changes: a change is one more.
const MIGRATIONS: [&str; 9] = [
    "CREATE TABLE events (
         seq       INTEGER PRIMARY KEY,
         backlog   TEXT    NOT NULL,
         work_tree TEXT    NOT NULL,
         run       TEXT    NOT NULL,
         at        INTEGER NOT NULL,
         version   INTEGER NOT NULL,
         payload   TEXT    NOT NULL
     );
     CREATE INDEX events_by_scope ON events (backlog, work_tree, seq);",
    "CREATE TABLE remembered (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;",
    "CREATE TABLE trust (
         what TEXT    NOT NULL,
         text TEXT    NOT NULL,
         at   INTEGER NOT NULL,
         PRIMARY KEY (what, text)
     ) WITHOUT ROWID;",
    "ALTER TABLE events ADD COLUMN sum INTEGER;",
    "CREATE TABLE wishes (
         id        INTEGER PRIMARY KEY,
         work_tree TEXT    NOT NULL,
         at        INTEGER NOT NULL,
         wish      TEXT    NOT NULL
     );",
    QUESTION_TABLES,
    COST_TABLES,
    SEALS,
    HUMAN_SEALS,
];

/// Each event's checksum covers the one before it, from here on of every event. The column of the
/// earlier checksums goes when they are checked.
const SEALS: &str = "ALTER TABLE events ADD COLUMN seal INTEGER;";

/// Checksums of the human's rows, and the process that made a request.
const HUMAN_SEALS: &str = "ALTER TABLE remembered ADD COLUMN seal INTEGER;
     ALTER TABLE trust ADD COLUMN seal INTEGER;
     ALTER TABLE wishes ADD COLUMN seal INTEGER;
     ALTER TABLE wishes ADD COLUMN pid INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE wishes ADD COLUMN started INTEGER NOT NULL DEFAULT 0;";

/// As it was before: for tests that make the database of an older ralph.
#[cfg(test)]
pub const NO_HUMAN_SEALS: &str = "ALTER TABLE remembered DROP COLUMN seal;
     ALTER TABLE trust DROP COLUMN seal;
     ALTER TABLE wishes DROP COLUMN seal;
     ALTER TABLE wishes DROP COLUMN pid;
     ALTER TABLE wishes DROP COLUMN started;";

/// For people who use SQL. A question is open while it has no `answered_at`.
const QUESTION_TABLES: &str = "CREATE TABLE snapshots (
         reference TEXT    NOT NULL,
         backlog   TEXT    NOT NULL,
         work_tree TEXT    NOT NULL,
         run       TEXT    NOT NULL,
         story     TEXT    NOT NULL,
         kind      TEXT    NOT NULL,
         at        INTEGER NOT NULL
     );
     CREATE TABLE questions (
         id          INTEGER PRIMARY KEY,
         backlog     TEXT    NOT NULL,
         work_tree   TEXT    NOT NULL,
         run         TEXT    NOT NULL,
         story       TEXT    NOT NULL,
         question    TEXT    NOT NULL,
         raised_at   INTEGER NOT NULL,
         parked      INTEGER NOT NULL DEFAULT 0,
         answer      TEXT,
         answered_at INTEGER
     );
     CREATE INDEX questions_by_story ON questions (backlog, work_tree, story, answered_at);";

/// Costs are in millionths of a dollar, times in milliseconds since the Unix epoch.
const COST_TABLES: &str = "CREATE TABLE runs (
         run        TEXT PRIMARY KEY,
         backlog    TEXT    NOT NULL,
         work_tree  TEXT    NOT NULL,
         project    TEXT    NOT NULL,
         agent      TEXT    NOT NULL,
         started_at INTEGER NOT NULL,
         ended_at   INTEGER
     ) WITHOUT ROWID;
     CREATE TABLE attempts (
         attempt    TEXT PRIMARY KEY,
         run        TEXT    NOT NULL,
         backlog    TEXT    NOT NULL,
         work_tree  TEXT    NOT NULL,
         story      TEXT    NOT NULL,
         title      TEXT    NOT NULL,
         iteration  INTEGER NOT NULL,
         agent      TEXT    NOT NULL,
         started_at INTEGER NOT NULL,
         ended_at   INTEGER,
         result     TEXT    NOT NULL,
         elapsed_ms INTEGER NOT NULL DEFAULT 0,
         turns      INTEGER NOT NULL DEFAULT 0,
         tool_calls INTEGER NOT NULL DEFAULT 0,
         stated     INTEGER,
         counted    INTEGER NOT NULL DEFAULT 0
     ) WITHOUT ROWID;
     CREATE INDEX attempts_by_end ON attempts (ended_at, counted);
     CREATE INDEX attempts_by_run ON attempts (run, started_at);
     CREATE TABLE usage (
         attempt     TEXT    NOT NULL,
         model       TEXT    NOT NULL,
         input       INTEGER NOT NULL,
         output      INTEGER NOT NULL,
         cache_read  INTEGER NOT NULL,
         cache_write INTEGER NOT NULL,
         counted     INTEGER NOT NULL,
         PRIMARY KEY (attempt, model)
     ) WITHOUT ROWID;";

/// The version of the tables that this program knows.
pub const KNOWN: i64 = MIGRATIONS.len() as i64;

pub fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// All missing steps, or none of them. The version is read under the lock: another process may have
/// been faster.
pub fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    migrate_by(connection, &MIGRATIONS)
}

fn migrate_by(connection: &mut Connection, migrations: &[&str]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for (number, step) in (1..).zip(migrations).filter(|(number, _)| *number > found) {
        transaction.execute_batch(step)?;
        if *step == COST_TABLES {
            fill(&transaction)?;
        }
        if *step == SEALS {
            seal_all(&transaction)?;
            transaction.execute_batch("ALTER TABLE events DROP COLUMN sum;")?;
        }
        if *step == HUMAN_SEALS {
            seal_answers(&transaction)?;
        }
        transaction.pragma_update(None, "user_version", number)?;
    }
    transaction.commit()
}

/// Fills the tables from all events. An event that cannot be read is left out: reading the journal
/// reports it.
pub fn fill(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "DELETE FROM usage; DELETE FROM attempts; DELETE FROM runs;
         DELETE FROM snapshots; DELETE FROM questions;",
    )?;
    let mut query = connection
        .prepare("SELECT backlog, work_tree, run, at, payload FROM events ORDER BY seq")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let [backlog, work_tree, run, payload]: [String; 4] =
            [row.get(0)?, row.get(1)?, row.get(2)?, row.get(4)?];
        if let Ok(event) = Event::from_json(&payload) {
            let (backlog, work_tree, run) = (&backlog, &work_tree, &run);
            Rows { connection, backlog, work_tree, run, at: row.get(3)? }.apply(&event)?;
        }
    }
    Ok(())
}

/// The tables, and where and when an event happened.
pub struct Rows<'a> {
    pub connection: &'a Connection,
    pub backlog: &'a str,
    pub work_tree: &'a str,
    pub run: &'a str,
    pub at: i64,
}

impl Rows<'_> {
    pub fn apply(&self, event: &Event) -> rusqlite::Result<()> {
        self.apply_to_costs(event)?;
        self.apply_to_snapshots(event)?;
        self.apply_to_questions(event)
    }

    fn apply_to_costs(&self, event: &Event) -> rusqlite::Result<()> {
        let Self { connection: _, backlog, work_tree, run, at } = self;
        match event {
            Event::RunStarted(start) => self.execute(
                "INSERT OR REPLACE INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL)",
                params![start.run, backlog, work_tree, start.project, start.agent, at],
            ),
            Event::RunEnded { .. } => {
                self.execute("UPDATE runs SET ended_at = ?2 WHERE run = ?1", params![run, at])
            }
            Event::AttemptStarted(start) => {
                let AttemptStarted { attempt, title, iteration, agent, .. } = &**start;
                let story = start.story.as_str();
                self.execute(
                    "INSERT OR REPLACE INTO attempts (attempt, run, backlog, work_tree, story,
                         title, iteration, agent, started_at, result)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'running')",
                    params![attempt, run, backlog, work_tree, story, title, iteration, agent, at],
                )
            }
            Event::AttemptEnded(end) => self.end_attempt(end),
            Event::AttemptLost { attempt, counted, .. } => {
                self.execute(
                    "UPDATE attempts SET result = 'cut_off', ended_at = ?2, counted = ?3
                     WHERE attempt = ?1 AND ended_at IS NULL",
                    params![attempt, at, micros(*counted)],
                )?;
                self.add_usage(attempt, &ModelUse { cost: *counted, ..ModelUse::default() })
            }
            Event::StoryClosed(closed) => self.execute(
                "UPDATE attempts SET result = 'closed' WHERE attempt = ?1",
                [&closed.attempt],
            ),
            Event::ClaimRejected { story, .. } | Event::CloseRefused { story, .. } => {
                self.reject(story, false)
            }
            // Any other answer about a claimed story does not accept the claim.
            Event::QuestionAnswered { story, answer }
                if !matches!(answer, Answer::Accept | Answer::Restore | Answer::Abort) =>
            {
                self.reject(story, true)
            }
            _ => Ok(()),
        }
    }

    fn apply_to_snapshots(&self, event: &Event) -> rusqlite::Result<()> {
        let (kind, story, reference) = match event {
            Event::AttemptStarted(start) => ("before", &start.story, start.snapshot.as_ref()),
            Event::AttemptKept { story, reference, .. } => ("attempt", story, Some(reference)),
            Event::WorkSetAside { story, reference, .. } => {
                ("set_aside", story, reference.as_ref())
            }
            Event::Returned { story, reference } => ("returned", story, reference.as_ref()),
            _ => return Ok(()),
        };
        let Some(reference) = reference else { return Ok(()) };
        let story = story.as_str();
        self.execute(
            "INSERT INTO snapshots VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![reference, self.backlog, self.work_tree, self.run, story, kind, self.at],
        )
    }

    fn apply_to_questions(&self, event: &Event) -> rusqlite::Result<()> {
        let Self { connection: _, backlog, work_tree, run, at } = self;
        match event {
            Event::QuestionRaised { story, question } => {
                self.close_question(story, None)?;
                let question = serde_json::to_string(question).unwrap_or_default();
                self.execute(
                    "INSERT INTO questions (backlog, work_tree, run, story, question, raised_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    params![backlog, work_tree, run, story.as_str(), question, at],
                )
            }
            Event::StoryParked { story } => self.execute(
                "UPDATE questions SET parked = 1 WHERE backlog = ?1 AND work_tree = ?2
                     AND story = ?3 AND answered_at IS NULL",
                params![backlog, work_tree, story.as_str()],
            ),
            // The question stays open: the next run asks again.
            Event::QuestionAnswered { answer: Answer::Abort, .. } => Ok(()),
            Event::QuestionAnswered { story, answer } => {
                self.close_question(story, serde_json::to_string(answer).ok())
            }
            _ => Ok(()),
        }
    }

    fn execute(&self, sql: &str, values: impl Params) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(values).map(drop)
    }

    fn end_attempt(&self, end: &AttemptEnded) -> rusqlite::Result<()> {
        let AttemptEnded { attempt, usage, .. } = end;
        let counted = end.cost.counted(usage);
        let (result, cost) = (IterationResult::of(&end.verdict).word(), micros(counted));
        let stated = usage.cost_usd.map(|dollars| micros(Usd::of(dollars)));
        let [elapsed, turns, calls] = [end.elapsed_ms, usage.turns, usage.tool_calls].map(signed);
        self.execute(
            "UPDATE attempts SET ended_at = ?2, result = ?3, elapsed_ms = ?4, turns = ?5,
                 tool_calls = ?6, stated = ?7, counted = ?8 WHERE attempt = ?1",
            params![attempt, self.at, result, elapsed, turns, calls, stated, cost],
        )?;
        self.execute("DELETE FROM usage WHERE attempt = ?1", [attempt])?;
        for model in &end.cost.models {
            self.add_usage(attempt, model)?;
        }
        // Costs without a model count for the one that the agent was started with.
        let rest = counted.rest_after(end.cost.models.iter().map(|model| model.cost).sum());
        let model = end.model.clone().unwrap_or_default();
        let first = ModelUse { model, cost: rest.unwrap_or_default(), ..ModelUse::default() };
        if end.cost.models.is_empty() {
            let whole = ModelUse {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cache_read_tokens: usage.cache_read_tokens,
                cache_write_tokens: usage.cache_write_tokens,
                ..first
            };
            return self.add_usage(attempt, &whole);
        }
        if rest.is_some() { self.add_usage(attempt, &first) } else { Ok(()) }
    }

    fn add_usage(&self, attempt: &str, used: &ModelUse) -> rusqlite::Result<()> {
        let [input, output] = [used.input_tokens, used.output_tokens].map(signed);
        let [read, written] = [used.cache_read_tokens, used.cache_write_tokens].map(signed);
        self.execute(
            "INSERT INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (attempt, model) DO UPDATE SET
                 input = input + excluded.input, output = output + excluded.output,
                 cache_read = cache_read + excluded.cache_read,
                 cache_write = cache_write + excluded.cache_write,
                 counted = counted + excluded.counted",
            params![attempt, used.model, input, output, read, written, micros(used.cost)],
        )
    }

    /// Rejects the latest attempt at the story, or only if it is a claim.
    fn reject(&self, story: &StoryId, only_claim: bool) -> rusqlite::Result<()> {
        self.execute(
            "UPDATE attempts SET result = 'rejected' WHERE attempt = (
                 SELECT attempt FROM attempts WHERE backlog = ?1 AND work_tree = ?2 AND story = ?3
                 ORDER BY started_at DESC, iteration DESC LIMIT 1
             ) AND (NOT ?4 OR result = 'claimed')",
            params![self.backlog, self.work_tree, story.as_str(), only_claim],
        )
    }

    /// Without an answer: another question replaces it.
    fn close_question(&self, story: &StoryId, answer: Option<String>) -> rusqlite::Result<()> {
        self.execute(
            "UPDATE questions SET answered_at = ?4, answer = ?5 WHERE backlog = ?1
                 AND work_tree = ?2 AND story = ?3 AND answered_at IS NULL",
            params![self.backlog, self.work_tree, story.as_str(), self.at, answer],
        )
    }
}

fn micros(amount: Usd) -> i64 {
    signed(amount.micros())
}

/// SQLite has no larger integers.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
