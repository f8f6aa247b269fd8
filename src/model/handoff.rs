//! What an agent leaves for the next one at its story.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What an agent leaves for the next one. Its texts are untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Handoff {
    pub phase: String,
    pub completed: String,
    pub pending: String,
    /// With the reason.
    pub blocked: String,
    pub decisions: String,
    pub assumptions: String,
    pub constraints: String,
    pub next_step: String,
    /// The raw text of a malformed block.
    pub unread: Option<String>,
}

/// Why a fresh agent should continue instead of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffTrigger {
    /// The context is over 70 % of the model's window.
    Context,
    /// Three failed attempts in a row.
    Errors,
    /// Over 80 % of a budget is spent.
    Budget,
    /// A stage was reached.
    PhaseComplete,
    /// The agent handed over by itself, or the human asked for it.
    AskedFor,
    /// Over 80 % of an iteration's time.
    Time,
}

impl fmt::Display for HandoffTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Context => "its context was over 70 % full",
            Self::Errors => "three attempts failed in a row",
            Self::Budget => "over 80 % of the budget was spent",
            Self::PhaseComplete => "a stage was reached",
            Self::AskedFor => "it was asked for",
            Self::Time => "its time was nearly over",
        })
    }
}

/// How full an agent's context was, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUsage {
    pub used: u64,
    /// Of the model.
    pub window: u64,
}

impl ContextUsage {
    /// In percent; 0 when the window is not known.
    pub fn share(self) -> u64 {
        self.used.saturating_mul(100).checked_div(self.window).unwrap_or_default()
    }
}

/// What a story changed so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub files: Vec<FileChange>,
    /// How many more there are.
    pub more: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    pub added: usize,
    pub removed: usize,
}
