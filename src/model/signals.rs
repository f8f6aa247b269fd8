//! Signals in an agent's text: claims, completion markers and hand-offs.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::id::StoryId;
use super::question::Escalation;

/// The signals in an agent's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSignals {
    /// The last statement about the current story is that it is complete.
    pub claims_story: bool,
    /// Other stories that it calls complete; only reported.
    pub claims_others: Vec<String>,
    /// It says that the whole backlog is done.
    pub promises_all: bool,
    /// It asks for a human.
    pub escalation: Option<Escalation>,
    /// What it leaves for the next agent.
    pub handoff: Option<Handoff>,
    /// Stages that it reached, in order; a story's last stage is its claim.
    #[serde(default)]
    pub stages: Vec<String>,
    /// Some stages are not reached yet: nothing else is a claim.
    #[serde(default)]
    pub stages_left: bool,
}

/// Lines that claim a story in addition to the built-in one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompletionMarkers {
    /// The text of a `<promise>` that claims the story.
    pub promise: Option<String>,
    /// Lines, any of which claims the story.
    pub signals: Vec<String>,
    /// Lines in this order; only the last claims the story, and nothing else does.
    pub stages: Vec<String>,
}

/// The markers of a run, as of its start.
#[derive(Clone, Debug, Default)]
pub struct RunMarkers {
    pub run: CompletionMarkers,
    pub of: BTreeMap<StoryId, CompletionMarkers>,
}

impl RunMarkers {
    /// `now` is what the file has; it counts for a story that was added later.
    pub fn of_story(&self, story: &StoryId, now: &CompletionMarkers) -> CompletionMarkers {
        self.of.get(story).unwrap_or(now).or(&self.run)
    }
}

impl CompletionMarkers {
    /// The story's where set, else the run's, field by field.
    pub fn or(&self, run: &Self) -> Self {
        let list = |own: &Vec<String>, run: &Vec<String>| {
            if own.is_empty() { run.clone() } else { own.clone() }
        };
        Self {
            promise: self.promise.clone().or_else(|| run.promise.clone()),
            signals: list(&self.signals, &run.signals),
            stages: list(&self.stages, &run.stages),
        }
    }

    /// How many stages were reached, counted from the first.
    pub fn reached(&self, known: &[String]) -> usize {
        // The last is a claim: if it was rejected, it has to be made again.
        let most = self.stages.len().saturating_sub(1);
        self.stages.iter().take(most).take_while(|stage| known.contains(stage)).count()
    }
}

/// A hand-off. Its texts are untrusted.
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
    /// The context is over 70% of the model's window.
    Context,
    /// Three failed attempts in a row.
    Errors,
    /// Over 80% of a budget is spent.
    Budget,
    /// A stage was reached.
    PhaseComplete,
    /// The agent handed over by itself, or was ended because it was stuck.
    AskedFor,
    /// Over 80% of an iteration's time.
    Time,
}

impl fmt::Display for HandoffTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Context => "its context was over 70% full",
            Self::Errors => "three attempts failed in a row",
            Self::Budget => "over 80% of the budget was spent",
            Self::PhaseComplete => "a stage was reached",
            Self::AskedFor => "the agent asked for it, or was ended without progress",
            Self::Time => "its time was nearly used up",
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
