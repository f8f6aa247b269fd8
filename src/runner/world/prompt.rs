//! Prompts and scratchpads.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use crate::agent::{LaunchRequest, StreamReader};
use crate::decide::prompt::{Briefing, Layer};
use crate::model::{AgentNotice, Changes, CompletionMarkers, LaneId, Notice, Story, StoryId};
use crate::runner::log::RunLog;
use crate::state::RunState;
use crate::store::ralph_dir::{RalphDir, ScratchpadError, scratchpad, shelved_scratchpad};
use crate::text::redact::SecretRules;
use crate::text::signals::Scanner;

use super::World;

/// Bytes of the scratchpad's end in a prompt.
const NOTES: usize = 2048;

impl World {
    pub(super) fn layers(
        &self,
        log: &mut RunLog,
        story: &Story,
        changes: &Changes,
        root: &Path,
    ) -> Vec<Layer> {
        let notes = self.with_scratchpad(log, |_| notes(root, &self.env.secrets));
        Briefing {
            state: &log.state,
            backlog: self.env.backlog.current(),
            story,
            instructions: &self.config.instructions,
            max_iterations: self.config.policy.max_iterations,
            markers: &self.config.markers.of_story(&story.id, &story.markers),
            limits: &self.config.settings.memory,
            notes: notes.as_deref(),
            changes,
        }
        .layers()
    }

    /// A failure with the notes is reported and does not stop the run.
    pub(super) fn with_scratchpad<T: Default>(
        &self,
        log: &mut RunLog,
        act: impl FnOnce(&RalphDir) -> Result<T, ScratchpadError>,
    ) -> T {
        act(&self.env.ralph_dir).unwrap_or_else(|error| {
            let problem = error.to_string();
            log.notice(Notice::Agent(AgentNotice::Scratchpad { problem }));
            T::default()
        })
    }

    pub(super) fn reader(
        &self,
        log: &RunLog,
        id: &StoryId,
        request: &LaunchRequest<'_>,
    ) -> StreamReader {
        let markers = self.config.markers_of(id, self.env.backlog.current());
        let reached = reached(log, id, &markers);
        let scanner = || Scanner::new(id, markers.clone(), reached);
        // Redacted like the output, to recognize a prompt that the agent prints.
        let prompt = self.env.secrets.redact(request.prompt);
        StreamReader::new(self.env.agent.decoder(request), scanner, &prompt)
    }

    /// One per line; None without stages.
    pub(super) fn stages_left(&self, log: &RunLog, id: &StoryId) -> Option<OsString> {
        let markers = self.config.markers_of(id, self.env.backlog.current());
        let left = markers.stages.get(reached(log, id, &markers)..)?.join("\n");
        (!left.is_empty()).then(|| left.into())
    }
}

fn reached(log: &RunLog, id: &StoryId, markers: &CompletionMarkers) -> usize {
    log.state.story(id).map_or(0, |known| markers.reached(&known.stages))
}

/// The end of the agents' notes, redacted here because files do not pass the attempt's redactor.
pub fn notes(root: &Path, secrets: &Arc<SecretRules>) -> Result<Option<String>, ScratchpadError> {
    Ok(scratchpad(root)?.and_then(|text| fit_for_a_prompt(&text, secrets)))
}

/// The notes that a story would find at its next attempt.
pub fn notes_for(
    root: &Path,
    story: &StoryId,
    state: &RunState,
    secrets: &Arc<SecretRules>,
) -> Result<Option<String>, ScratchpadError> {
    let occupant = state.lanes.occupant(LaneId::HOME);
    let is_anothers = occupant.is_some_and(|other| other != story);
    let current = if is_anothers { None } else { scratchpad(root)? };
    let text = match current {
        None => shelved_scratchpad(root, story)?,
        current => current,
    };
    Ok(text.and_then(|text| fit_for_a_prompt(&text, secrets)))
}

fn fit_for_a_prompt(text: &str, secrets: &Arc<SecretRules>) -> Option<String> {
    let clean = secrets.redact(text);
    let from = clean.ceil_char_boundary(clean.len().saturating_sub(NOTES));
    clean.get(from..).map(str::to_owned)
}
