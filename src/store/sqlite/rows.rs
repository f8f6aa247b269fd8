//! Tables beside the events: runs, attempts, usage by model, snapshots and questions.
//!
//! Filled in the transaction that appends the events, so that both always agree, and what was
//! spent in a day or by a model is one query instead of a fold over every event. The events stay
//! the truth: the tables can be dropped and filled from them again. `snapshots` and `questions`
//! are for people who use SQL; nothing reads them back to decide anything.

use rusqlite::{Connection, OptionalExtension, params};

use crate::model::{
    Answer, AttemptEnded, AttemptStarted, Event, ModelUse, RunStarted, StoryId, Verdict,
};

use super::journal::Scope;

/// Costs are in millionths of a dollar, times in milliseconds since the Unix epoch.
pub const COST_TABLES: &str = "CREATE TABLE runs (
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

/// A row is open while it has no `answered_at`.
pub const QUESTION_TABLES: &str = "CREATE TABLE snapshots (
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

/// A story's question that nobody answered yet.
const OPEN: &str = "WHERE backlog = ?1 AND work_tree = ?2 AND story = ?3 AND answered_at IS NULL";

/// Fills the tables from every event there is. One that cannot be read is left out: whoever needs
/// it will say so.
pub fn fill(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "DELETE FROM usage; DELETE FROM attempts; DELETE FROM runs;
         DELETE FROM snapshots; DELETE FROM questions;",
    )?;
    let mut query = connection
        .prepare("SELECT backlog, work_tree, run, at, payload FROM events ORDER BY seq")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let scope = Scope { backlog: row.get(0)?, work_tree: row.get(1)? };
        let (run, at, payload): (String, i64, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
        if let Ok(event) = Event::from_json(&payload) {
            note(connection, &scope, &run, at, &event)?;
        }
    }
    Ok(())
}

/// What an event changes in the tables.
pub fn note(
    connection: &Connection,
    scope: &Scope,
    run: &str,
    at: i64,
    event: &Event,
) -> rusqlite::Result<()> {
    note_question(connection, scope, run, at, event)?;
    match event {
        Event::RunStarted(start) => begin_run(connection, scope, at, start),
        Event::RunEnded { .. } => {
            set(connection, "UPDATE runs SET ended_at = ?2 WHERE run = ?1", params![run, at])
        }
        Event::AttemptStarted(start) => begin(connection, scope, run, at, start),
        Event::AttemptEnded(end) => finish(connection, at, end),
        Event::AttemptLost { attempt, counted, .. } => {
            let counted = signed(counted.micros());
            let lost = "UPDATE attempts SET result = 'cut_off', ended_at = ?2, counted = ?3
                        WHERE attempt = ?1 AND ended_at IS NULL";
            set(connection, lost, params![attempt, at, counted])?;
            add_use(connection, attempt, &ModelUse::default(), counted)
        }
        Event::StoryClosed(closed) => {
            let sql = "UPDATE attempts SET result = 'closed' WHERE attempt = ?1";
            set(connection, sql, params![closed.attempt])
        }
        Event::ClaimRejected { story, .. } | Event::CloseRefused { story, .. } => {
            reject(connection, scope, story.as_str(), "")
        }
        // Whoever says how to go on with a claimed story does not accept the claim.
        Event::QuestionAnswered { story, answer }
            if !matches!(answer, Answer::Accept | Answer::Abort) =>
        {
            reject(connection, scope, story.as_str(), "AND result = 'claimed'")
        }
        _ => Ok(()),
    }
}

fn set(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(values).map(|_| ())
}

fn begin_run(
    connection: &Connection,
    scope: &Scope,
    at: i64,
    start: &RunStarted,
) -> rusqlite::Result<()> {
    let Scope { backlog, work_tree } = scope;
    set(
        connection,
        "INSERT OR REPLACE INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL)",
        params![start.run, backlog, work_tree, start.project, start.agent, at],
    )
}

fn begin(
    connection: &Connection,
    scope: &Scope,
    run: &str,
    at: i64,
    start: &AttemptStarted,
) -> rusqlite::Result<()> {
    let Scope { backlog, work_tree } = scope;
    let story = start.story.as_str();
    let AttemptStarted { attempt, title, iteration, agent, .. } = start;
    set(
        connection,
        "INSERT OR REPLACE INTO attempts
             (attempt, run, backlog, work_tree, story, title, iteration, agent, started_at, result)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'running')",
        params![attempt, run, backlog, work_tree, story, title, iteration, agent, at],
    )
}

fn finish(connection: &Connection, at: i64, end: &AttemptEnded) -> rusqlite::Result<()> {
    let usage = &end.usage;
    let counted = signed(end.bill.counted(usage).micros());
    let stated = usage.cost_usd.map(|cost| signed(crate::model::Usd::of(cost).micros()));
    set(
        connection,
        "UPDATE attempts SET ended_at = ?2, result = ?3, elapsed_ms = ?4, turns = ?5,
             tool_calls = ?6, stated = ?7, counted = ?8 WHERE attempt = ?1",
        params![
            end.attempt,
            at,
            result(&end.verdict),
            signed(end.elapsed_ms),
            signed(usage.turns),
            signed(usage.tool_calls),
            stated,
            counted
        ],
    )?;
    set(connection, "DELETE FROM usage WHERE attempt = ?1", params![end.attempt])?;
    let mut of_models = 0;
    for model in &end.bill.models {
        let cost = signed(model.cost.micros());
        of_models += cost;
        add_use(connection, &end.attempt, model, cost)?;
    }
    let name = end.model.clone().unwrap_or_default();
    let rest = (counted - of_models).max(0);
    if end.bill.models.is_empty() {
        let all = ModelUse {
            model: name,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            ..ModelUse::default()
        };
        add_use(connection, &end.attempt, &all, rest)
    } else if rest > 0 {
        // What no model is said to have cost is the one's that the agent was started with.
        add_use(connection, &end.attempt, &ModelUse { model: name, ..ModelUse::default() }, rest)
    } else {
        Ok(())
    }
}

fn add_use(
    connection: &Connection,
    attempt: &str,
    used: &ModelUse,
    counted: i64,
) -> rusqlite::Result<()> {
    set(
        connection,
        "INSERT INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (attempt, model) DO UPDATE SET
             input = input + excluded.input, output = output + excluded.output,
             cache_read = cache_read + excluded.cache_read,
             cache_write = cache_write + excluded.cache_write,
             counted = counted + excluded.counted",
        params![
            attempt,
            used.model,
            signed(used.input_tokens),
            signed(used.output_tokens),
            signed(used.cache_read_tokens),
            signed(used.cache_write_tokens),
            counted
        ],
    )
}

/// The latest attempt at the story.
fn reject(connection: &Connection, scope: &Scope, story: &str, only: &str) -> rusqlite::Result<()> {
    let mut latest = connection.prepare_cached(
        "SELECT attempt FROM attempts WHERE backlog = ?1 AND work_tree = ?2 AND story = ?3
         ORDER BY started_at DESC, iteration DESC LIMIT 1",
    )?;
    let key = params![scope.backlog, scope.work_tree, story];
    let attempt: Option<String> = latest.query_row(key, |row| row.get(0)).optional()?;
    let sql = format!("UPDATE attempts SET result = 'rejected' WHERE attempt = ?1 {only}");
    attempt.map_or(Ok(()), |attempt| set(connection, &sql, params![attempt]))
}

fn result(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Done => "claimed",
        Verdict::Progress => "progress",
        Verdict::Escalated { .. } => "escalated",
        Verdict::Failed { .. } => "failed",
        Verdict::NotTheStory { .. } => "service_trouble",
        Verdict::PromptTooLong { .. } => "prompt_too_long",
        Verdict::Interrupted => "interrupted",
    }
}

/// SQLite has no larger ones.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What an event changes in the tables that are for people.
fn note_question(
    connection: &Connection,
    scope: &Scope,
    run: &str,
    at: i64,
    event: &Event,
) -> rusqlite::Result<()> {
    let kept = |story: &StoryId, reference: &Option<String>, kind: &str| match reference {
        Some(reference) => set(
            connection,
            "INSERT INTO snapshots VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![reference, scope.backlog, scope.work_tree, run, story.as_str(), kind, at],
        ),
        None => Ok(()),
    };
    let Scope { backlog, work_tree } = scope;
    match event {
        Event::AttemptStarted(start) => kept(&start.story, &start.snapshot, "before"),
        Event::AttemptKept { story, reference, .. } => {
            kept(story, &Some(reference.clone()), "attempt")
        }
        Event::WorkSetAside { story, reference } => kept(story, reference, "set_aside"),
        Event::Returned { story, reference } => kept(story, reference, "returned"),
        Event::QuestionRaised { story, question } => {
            let another = format!("UPDATE questions SET answered_at = ?4 {OPEN}");
            set(connection, &another, params![backlog, work_tree, story.as_str(), at])?;
            let question = serde_json::to_string(question).unwrap_or_default();
            set(
                connection,
                "INSERT INTO questions (backlog, work_tree, run, story, question, raised_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![backlog, work_tree, run, story.as_str(), question, at],
            )
        }
        Event::StoryParked { story } => {
            let parked = format!("UPDATE questions SET parked = 1 {OPEN}");
            set(connection, &parked, params![backlog, work_tree, story.as_str()])
        }
        // The question stays: whoever runs it again is asked again.
        Event::QuestionAnswered { answer: Answer::Abort, .. } => Ok(()),
        Event::QuestionAnswered { story, answer } => {
            let answer = serde_json::to_string(answer).unwrap_or_default();
            let answered = format!("UPDATE questions SET answered_at = ?4, answer = ?5 {OPEN}");
            set(connection, &answered, params![backlog, work_tree, story.as_str(), at, answer])
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::samples::{escalation, id};
    use crate::store::{Journal, Store, StorePlace};

    #[test]
    fn questions_and_what_was_kept_are_told_as_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let store = Store::new(StorePlace::in_folder(folder.path()));
        let mut journal = store.journal("PRD.json").unwrap();
        let raised = |name| Event::QuestionRaised { story: id(name), question: escalation("s") };
        let answered = |answer| Event::QuestionAnswered { story: id("A"), answer };
        let aside = |reference: Option<&str>| Event::WorkSetAside {
            story: id("A"),
            reference: reference.map(str::to_owned),
        };
        journal.append("r", 1, &[raised("A"), raised("B"), answered(Answer::Abort)]).unwrap();
        journal.append("r", 2, &[Event::StoryParked { story: id("B") }]).unwrap();
        journal.append("r", 3, &[answered(Answer::Retry), aside(None), aside(Some("x"))]).unwrap();
        let rows = |sql: &str| -> Vec<String> {
            let connection = Connection::open(&path).unwrap();
            let mut query = connection.prepare(sql).unwrap();
            query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
        };
        let told = "SELECT story || ' ' || parked || ' ' || COALESCE(answered_at, 'open')
                    FROM questions ORDER BY id";
        assert_eq!(rows(told), ["A 0 3", "B 1 open"]);
        assert_eq!(rows("SELECT reference || ' ' || kind FROM snapshots"), ["x set_aside"]);
    }
}
