//! ralph.toml, at the root of the work tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::agent::AgentSettings;
use super::budget::BudgetSettings;
use super::memory::MemorySettings;
use crate::core::gate::{Gate, Recheck};
use crate::core::policy::{OnEscalation, OnLimit};
use crate::core::text::visible;

pub const FILE_NAME: &str = "ralph.toml";

/// What the file may say. Everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsFile {
    pub max_iterations: Option<Limit>,
    pub stuck_threshold: Option<Limit>,
    pub max_attempts: Option<Limit>,
    pub max_consecutive_errors: Option<Limit>,
    pub max_failing: Option<Limit>,
    pub max_run_time: Option<Limit>,
    pub max_average_iteration: Option<Limit>,
    pub cool_down: Option<Limit>,
    pub backoff: Option<Limit>,
    pub fresh_start_after: Option<Limit>,
    pub keep_snapshots: Option<Limit>,
    pub keep_days: Option<Limit>,
    pub on_escalation: Option<OnEscalation>,
    pub on_limit: Option<OnLimit>,
    pub answer_timeout: Option<String>,
    pub first_event_timeout: Option<String>,
    pub idle_timeout: Option<String>,
    pub iteration_timeout: Option<String>,
    pub stuck_after: Option<String>,
    pub stuck_question_after: Option<String>,
    pub stuck_answer_timeout: Option<String>,
    pub result_grace: Option<String>,
    pub background_grace: Option<String>,
    /// Daemons that are left alone when an agent's processes are ended.
    pub keep_processes: Vec<String>,
    /// Commands that have to pass before any story is done.
    pub verify: Vec<Gate>,
    pub recheck: Recheck,
    /// The word of a `<promise>` that claims a story.
    pub completion_promise: Option<String>,
    /// Lines, any of which claims a story.
    pub signals: Vec<String>,
    /// Lines in their order, of which the last claims a story.
    pub stages: Vec<String>,
    /// Without a gate, a first claim is sent back for a second look.
    pub require_two_claims: bool,
    pub memory: MemorySettings,
    /// Patterns of files whose change is a human's to accept.
    pub protect: Vec<String>,
    pub log_limit: Option<Limit>,
    pub min_free_disk: Option<Limit>,
    /// Work beside uncommitted edits of tracked files.
    pub allow_dirty: bool,
    /// Further patterns of new files that are left out of every commit.
    pub never_commit: Vec<String>,
    pub max_file_size: Option<Limit>,
    pub max_new_files: Option<Limit>,
    pub prompt: Option<PathBuf>,
    pub branch: Option<String>,
    pub agent: AgentSettings,
    pub budget: BudgetSettings,
}

/// A number, or a word such as `none`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Limit {
    Number(i64),
    Fraction(f64),
    Word(String),
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Fraction(number) => number.fmt(f),
            Self::Word(word) => word.fmt(f),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("`{path}` cannot be read: {source}")]
    Unreadable { path: String, source: io::Error },
    #[error("`{path}` is not right:\n{problem}")]
    Invalid { path: String, problem: String },
}

impl SettingsFile {
    /// The defaults when there is no file.
    pub fn load(root: &Path) -> Result<Self, FileError> {
        let path = root.join(FILE_NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => {
                return Err(FileError::Unreadable { path: FILE_NAME.to_owned(), source });
            }
        };
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, FileError> {
        toml::from_str(text).map_err(|error| FileError::Invalid {
            path: FILE_NAME.to_owned(),
            problem: visible(error.to_string().trim_end()).into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_setting_is_an_error_with_its_line() {
        let error = SettingsFile::parse("max_iterations = 5\nmax_iteration = 6\n").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("line 2"), "{text}");
        assert!(text.contains("max_iteration"), "{text}");
    }

    #[test]
    fn numbers_and_words_are_both_limits() {
        let file = SettingsFile::parse("max_iterations = \"none\"\nstuck_threshold = 4\n").unwrap();
        assert_eq!(file.max_iterations, Some(Limit::Word("none".into())));
        assert_eq!(file.stuck_threshold, Some(Limit::Number(4)));
    }
}
