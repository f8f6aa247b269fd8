//! Progress: what an attempt left of it, and the question about a story without any.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crate::model::{Escalation, EscalationKind, Footprint, Policy, Story, shorten, visible_line};
use crate::state::{ALIKE_IN_A_ROW, FailedAttempt, ONLY_TESTS_WARNING, StoryState, UNCHANGED};
use crate::text::similarity::{most_alike, normalized};

/// The second prompt was already shortened.
const TOO_LONG: u32 = 2;

const MOST_TRIED: usize = 10;

const LONGEST_ERROR: usize = 300;

/// The question about a story without progress.
pub fn question(story: &Story, known: &StoryState, policy: &Policy) -> Option<Escalation> {
    let summary = summary(story, known, policy)?;
    let options = [
        "Try a different approach; do not repeat what did not work",
        "Find the cause first and fix that, then continue the story",
        "Do the part of the story that is possible, and say what is missing",
    ];
    let (kind, options) = (EscalationKind::NoProgress, options.map(str::to_owned).to_vec());
    let (context, question) = (context(known), format!("How should {} continue?", story.id));
    Some(Escalation { kind, summary, context, options, question, unread: None })
}

fn summary(story: &Story, known: &StoryState, policy: &Policy) -> Option<String> {
    let counters = &known.stagnation;
    let error = known.last_error.as_deref().unwrap_or_default();
    let often = policy.stuck_threshold.get();
    let (in_a_row, in_all) = counters.repeated();
    let most = story.max_attempts.unwrap_or(policy.max_attempts).get();
    Some(if in_a_row >= often {
        format!("the same error {in_a_row} times in a row: {error}")
    } else if in_all >= often {
        format!("the same error {in_all} times: {error}")
    } else if counters.alternates(often) {
        format!("two errors alternate; the latest: {error}")
    } else if counters.unchanged >= UNCHANGED {
        format!("{} iterations in a row changed nothing", counters.unchanged)
    } else if counters.alike >= ALIKE_IN_A_ROW {
        "the agents keep ending with the same text, without a commit".to_owned()
    } else if counters.only_tests > ONLY_TESTS_WARNING {
        format!("{} iterations in a row touched only tests", counters.only_tests)
    } else if known.too_long >= TOO_LONG {
        format!("the prompt is too long for the agent: {error}")
    } else if known.tries >= most {
        format!("not complete after {} attempts", known.tries)
    } else {
        return None;
    })
}

/// What was tried, with the error in full.
fn context(known: &StoryState) -> String {
    let error = known.last_error.clone().unwrap_or_default();
    let all: Vec<&FailedAttempt> = known.failed_before.iter().chain(&known.failed).collect();
    if all.len() < 2 {
        return error;
    }
    let shown = all.iter().skip(all.len().saturating_sub(MOST_TRIED));
    let lines: Vec<String> = shown.map(|tried| line(tried)).collect();
    format!("{}\n\nWhat was tried:\n{}", error.trim_end(), lines.join("\n")).trim().to_owned()
}

fn line(tried: &FailedAttempt) -> String {
    let error = shorten(&visible_line(&tried.error), LONGEST_ERROR);
    match (&tried.reference, &tried.changes) {
        (Some(reference), Some(changes)) => format!("- {error} ({reference}, {changes})"),
        (Some(reference), None) => format!("- {error} ({reference})"),
        (None, _) => format!("- {error} (nothing changed)"),
    }
}

/// Folders of tests.
const TEST_FOLDERS: [&str; 8] =
    ["__tests__", "__mocks__", "__snapshots__", "spec", "specs", "test", "testdata", "tests"];

/// What an attempt is measured by.
pub struct FootprintFacts<'a> {
    /// Files that differ after it; None: not checked.
    pub paths: Option<&'a [PathBuf]>,
    /// The branch has other commits.
    pub committed: bool,
    /// Marks that an agent sets are reverted, so a change of the backlog is no work.
    pub backlog: Option<&'a Path>,
    /// The story's own text is another one.
    pub story_changed: bool,
    /// The agent's final text; empty if it did not end normally.
    pub said: &'a str,
    /// What earlier attempts at the story said, normalized.
    pub before: Option<&'a VecDeque<String>>,
}

impl FootprintFacts<'_> {
    pub fn footprint(&self) -> Footprint {
        let said = normalized(self.said);
        let likeness = most_alike(&said, self.before.into_iter().flatten());
        let Some(paths) = self.paths else {
            return Footprint { said, likeness, ..Footprint::default() };
        };
        let is_work = |path: &&PathBuf| Some(path.as_path()) != self.backlog;
        let work: Vec<&PathBuf> = paths.iter().filter(is_work).collect();
        let only_tests = work.iter().all(|path| is_test(&path.to_string_lossy()));
        Footprint {
            changed: Some(self.committed || !work.is_empty() || self.story_changed),
            committed: self.committed,
            only_tests: only_tests && !work.is_empty(),
            said,
            likeness,
        }
    }
}

/// By its name, in the conventions of common languages.
fn is_test(path: &str) -> bool {
    let path = path.to_lowercase();
    let mut parts = path.split('/').rev();
    let name = parts.next().unwrap_or_default();
    parts.any(|folder| TEST_FOLDERS.contains(&folder)) || is_test_name(name)
}

fn is_test_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let has_ending = name.split('.').skip(1).any(|part| ["test", "spec", "snap"].contains(&part));
    let has_word = stem.split(['_', '-']).any(|part| ["test", "tests", "spec"].contains(&part));
    has_ending || has_word || stem == "conftest" || is_class_of_tests(name, stem)
}

/// `LoginTest.java`, `LoginTests.cs`: languages with a class per file.
fn is_class_of_tests(name: &str, stem: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or_default();
    ["java", "kt", "scala", "groovy", "cs", "swift", "php"].contains(&ending)
        && (stem.ends_with("test") || stem.ends_with("tests"))
}

#[cfg(test)]
mod tests;
