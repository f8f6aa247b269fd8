//! The configuration of a run.

use std::path::PathBuf;

use crate::decide::first_looks::first_look;
use crate::decide::gate_files::Sight;
use crate::decide::recheck::{DueGate, STORY, is_each_story};
use crate::decide::weigh::{Due, Gates};
use crate::model::{Backlog, CompletionMarkers, Policy, RunMarkers, SettingsText, StoryId};
use crate::settings::RunSettings;
use crate::state::RunState;
use crate::workspace::HeldPlace;

pub struct RunConfig {
    pub settings: RunSettings,
    /// The ralph.toml that they come from.
    pub settings_text: SettingsText,
    /// The settings that decisions depend on, and facts of this run.
    pub policy: Policy,
    /// The text of PROMPT.md.
    pub instructions: String,
    /// Its file, if there is one.
    pub instructions_file: Option<PathBuf>,
    /// Completion markers.
    pub markers: RunMarkers,
    /// The commands that a claim must pass.
    pub gates: Gates,
    /// Run with uncommitted edits.
    pub allow_dirty: bool,
    /// What untrusted code must leave alone, besides git's own setup.
    pub held: Vec<HeldPlace>,
    /// The human's own files: never rolled back with an agent's work.
    pub human_files: Vec<PathBuf>,
    /// Show the agent's text.
    pub verbose: bool,
    /// The backlog's name in commits and in the journal.
    pub backlog_name: String,
    /// Its path in the work tree, if it is committed with the work.
    pub backlog_in_tree: Option<PathBuf>,
    /// Its unique key in the journal.
    pub backlog_key: String,
    pub branch: Option<String>,
    /// The previous journal was damaged, so this one may lack events.
    pub journal_was_damaged: bool,
    /// The agent enforces its allowance itself.
    pub agent_keeps_allowance: bool,
}

impl RunConfig {
    pub fn markers_of(&self, id: &StoryId, backlog: &Backlog) -> CompletionMarkers {
        let none = CompletionMarkers::default();
        let now = backlog.story(id).map_or(&none, |story| &story.markers);
        self.markers.of_story(id, now)
    }

    /// Each gate that a claim must pass. What runs for a closed story hears of that one.
    pub fn gates_due(&self, id: &StoryId, backlog: &Backlog, sight: Sight<'_>) -> Vec<DueGate> {
        let due = self.gates.due(id, backlog, |gate| is_each_story(gate, sight));
        let due = due.into_iter().map(|Due { gate, guards }| {
            let mut gate = gate.clone();
            if let Some(closed) = &guards {
                gate.env.insert(STORY.to_owned(), closed.to_string());
            }
            DueGate { gate, guards, last_ms: None }
        });
        due.collect()
    }

    /// Those that say something before any work: without a story, one that asks for it says nothing.
    pub fn baseline_gates(&self, sight: Sight<'_>) -> Vec<DueGate> {
        let all = self.gates.all.iter().filter(|gate| !is_each_story(gate, sight));
        all.map(|gate| DueGate { gate: gate.clone(), guards: None, last_ms: None }).collect()
    }

    /// Those of a story that run before its first attempt.
    pub fn first_look(&self, story: &StoryId, sight: Sight<'_>) -> Vec<DueGate> {
        let gates = first_look(&self.gates, story, sight);
        gates.map(|gate| DueGate { gate: gate.clone(), guards: None, last_ms: None }).collect()
    }

    /// No gate applies, so a claim without concerns needs no check.
    pub fn is_plain_claim(&self, id: &StoryId, backlog: &Backlog, state: &RunState) -> bool {
        !self.gates.is_any_due(id, backlog) && !self.is_first_of_two(id, backlog, state)
    }

    /// The first of two required claims. With a gate one is enough.
    pub fn is_first_of_two(&self, id: &StoryId, backlog: &Backlog, state: &RunState) -> bool {
        let looked_again = state.story(id).is_some_and(|known| known.looked_again);
        self.settings.require_two_claims && !looked_again && !self.gates.is_any_due(id, backlog)
    }
}
