//! What was kept and what was asked, in tables, for whoever looks into the journal with SQL.
//!
//! Filled like the ledger, in the transaction that appends the events. Refs and events stay the
//! truth: nothing here is read back to decide anything.

use rusqlite::{Connection, params};

use super::Scope;
use super::ledger::set;
use crate::core::event::{Answer, Event};
use crate::core::id::StoryId;

/// A row is open while it has no `answered_at`.
pub const TABLES: &str = "CREATE TABLE snapshots (
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

pub const EMPTY: &str = "DELETE FROM snapshots; DELETE FROM questions;";

/// What an event changes in the tables.
pub fn note(
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
    use crate::core::tests::{escalation, id};
    use crate::store::journal::{Journal, SqliteJournal};

    #[test]
    fn questions_and_what_was_kept_are_told_as_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let scope = Scope { backlog: "PRD.json".into(), work_tree: String::new() };
        let mut journal = SqliteJournal::open(&path, scope).unwrap();
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
