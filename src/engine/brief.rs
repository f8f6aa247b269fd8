//! What the next agent is told, and what the last one leaves for it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use crate::agent::Reading;
use crate::core::backlog::{Backlog, Story};
use crate::core::briefing::Briefing;
use crate::core::event::{Base, Event, Recorded, RunStarted, Stray};
use crate::core::handoff::{Facts, Trigger, triggers};
use crate::core::id::StoryId;
use crate::core::memory::LONGEST_KEPT;
use crate::core::money::Usd;
use crate::core::outcome::{EndedBy, Outcome};
use crate::core::prompt::{CONTRACT, Layer};
use crate::core::secrets::Rules;
use crate::core::signal::{Signals, Signs};
use crate::core::state::RunState;
use crate::core::text::both_ends;
use crate::core::verdict::Verdict;
use crate::git::{GitError, WorkTree, hash};
use crate::store::room::Room;
use crate::store::scratchpad::{self, ScratchpadError};

use super::Engine;
use super::attempt::Report;
use super::ports::Notice;
use super::resume::{carried, is_same};

/// Bytes of the scratchpad's end that go into a prompt.
const NOTES: usize = 2048;

impl Engine {
    pub(super) fn layers(&mut self, story: &Story, base: &Base, before: &Base) -> Vec<Layer> {
        let notes = notes(self.parts.tree.root(), &self.parts.secrets);
        let notes = notes.unwrap_or_else(|error| {
            self.notice(Notice::Warning(error.to_string()));
            None
        });
        Briefing {
            state: &self.state,
            backlog: self.parts.backlog.current(),
            story,
            instructions: &self.orders.instructions,
            max_iterations: self.orders.policy.max_iterations,
            signs: &self.orders.signs.of_story(&story.id, &story.signs),
            limits: &self.orders.memory,
            notes: notes.as_deref(),
            // A summary that cannot be made is no reason to stop.
            changes: &self.parts.tree.summary(base, before).unwrap_or_default(),
        }
        .layers()
    }

    /// Of the part that is the same in every prompt.
    pub(super) fn stable_hash(&self) -> Option<String> {
        hash(format!("{}\n{CONTRACT}", self.orders.instructions).as_bytes())
    }

    /// The notes are a help: what goes wrong with them is told, and the run goes on.
    pub(super) fn with_scratchpad(
        &mut self,
        act: impl FnOnce(&Room) -> Result<(), ScratchpadError>,
    ) {
        if let Err(error) = act(&self.parts.room) {
            self.notice(Notice::Warning(error.to_string()));
        }
    }

    pub(super) fn reading(&self, id: &StoryId, prompt: &str) -> Reading {
        let signs = self.signs_of(id);
        let reached = self.reached(id, &signs);
        Reading::listening(id, signs, reached, prompt)
    }

    fn signs_of(&self, id: &StoryId) -> Signs {
        let none = Signs::default();
        let now = self.parts.backlog.current().story(id).map_or(&none, |story| &story.signs);
        self.orders.signs.of_story(id, now)
    }

    fn reached(&self, id: &StoryId, signs: &Signs) -> usize {
        self.state.story(id).map_or(0, |known| signs.reached(&known.stages))
    }

    /// One per line; None when the story has none.
    pub(super) fn stages_left(&self, id: &StoryId) -> Option<OsString> {
        let signs = self.signs_of(id);
        let left = signs.stages.get(self.reached(id, &signs)..)?.join("\n");
        (!left.is_empty()).then(|| left.into())
    }

    /// The stages that an attempt reached; the last one of a story is its claim.
    pub(super) fn stages(
        &self,
        id: &StoryId,
        outcome: &Outcome,
        signals: &Signals,
        stray: Option<Stray>,
    ) -> Vec<Event> {
        if *outcome != Outcome::Completed || stray.is_some() {
            return Vec::new();
        }
        let all = self.signs_of(id).stages;
        let reached = signals.stages.iter().filter(|stage| Some(*stage) != all.last());
        let event =
            |stage: &String| Event::StageReached { story: id.clone(), stage: stage.clone() };
        reached.map(event).collect()
    }

    pub(super) fn triggers(
        &self,
        id: &StoryId,
        report: &Report,
        verdict: &Verdict,
        stages: &[Event],
        cost: Usd,
    ) -> Vec<Trigger> {
        let failed = self.state.story(id).map_or(0, |known| known.row.len());
        let failed = u32::try_from(failed).unwrap_or(u32::MAX);
        let this_one = u32::from(matches!(verdict, Verdict::Failed { .. }));
        triggers(&Facts {
            context: report.read.context,
            errors: if this_one == 0 { 0 } else { failed.saturating_add(this_one) },
            spent: self.share(id, cost),
            stage_reached: !stages.is_empty(),
            asked: report.read.signals.handoff.is_some() || report.ended_by == Some(EndedBy::Stuck),
            elapsed: report.elapsed,
            time: Some(self.orders.timeouts.iteration),
        })
    }
}

/// No more than is ever told to another agent.
pub(super) fn last_words(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| both_ends(text, LONGEST_KEPT))
}

/// The end of the agents' notes. A file does not come in where everything else is redacted.
pub fn notes(root: &Path, secrets: &Arc<Rules>) -> Result<Option<String>, ScratchpadError> {
    Ok(scratchpad::end(root)?.and_then(|text| fit_for_a_prompt(&text, secrets)))
}

/// Of the notes that a story would find when its turn comes.
pub fn notes_for(
    root: &Path,
    story: &StoryId,
    state: &RunState,
    secrets: &Arc<Rules>,
) -> Result<Option<String>, ScratchpadError> {
    let is_anothers = state.in_tree.as_ref().is_some_and(|other| other != story);
    let current = if is_anothers { None } else { scratchpad::end(root)? };
    let text = match current {
        None => scratchpad::end_of_waiting(root, story)?,
        current => current,
    };
    Ok(text.and_then(|text| fit_for_a_prompt(&text, secrets)))
}

fn fit_for_a_prompt(text: &str, secrets: &Arc<Rules>) -> Option<String> {
    let clean = secrets.redact(text);
    let from = clean.ceil_char_boundary(clean.len().saturating_sub(NOTES));
    clean.get(from..).map(str::to_owned)
}

/// The base of the story in the tree, on top of the branch as it is now.
pub fn base_on_branch(
    state: &RunState,
    tree: &WorkTree,
) -> Result<Option<(StoryId, Base)>, GitError> {
    let Some(story) = state.in_tree.clone() else { return Ok(None) };
    let Some(known) = state.story(&story) else { return Ok(None) };
    let Some(base) = known.base.clone() else { return Ok(None) };
    if known.closing.is_some() || known.head == tree.head_commit()? {
        return Ok(None);
    }
    Ok(Some((story, tree.move_base(&base, known.head.as_deref())?)))
}

/// What the next `ralph run` would begin with: it goes on with an open run, or begins a new one.
pub fn as_next_process(mut state: RunState, backlog: &Backlog) -> RunState {
    let goes_on = state.is_open() && is_same(&state, backlog);
    let event = if goes_on {
        Event::RunContinued
    } else {
        Event::RunStarted(RunStarted {
            run: String::new(),
            backlog: String::new(),
            project: backlog.project.clone(),
            description: backlog.description.clone(),
            agent: String::new(),
            branch: None,
            allow_dirty: false,
            carried: carried(&state, backlog),
        })
    };
    state.apply(&Recorded { at: 0, event });
    state
}
