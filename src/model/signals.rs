//! Signals in an agent's text, and the completion markers of stories.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::handoff::Handoff;
use super::id::StoryId;
use super::question::Escalation;

/// What an agent's text says that has a meaning.
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
