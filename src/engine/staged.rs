//! What stays out of a story's commit, and what keeps it from being made.

use crate::core::event::Event;
use crate::core::evidence::{Unfit, weigh_content};
use crate::core::id::StoryId;
use crate::core::text::{some_of, visible_line};
use crate::git::{GitError, LeftOut, Staging, WhyLeftOut};

use super::Engine;
use super::error::EngineError;
use super::ports::Notice;

/// So many files are named in a trailer.
const NAMED: usize = 10;

impl Engine {
    pub(super) fn staging(&self) -> Staging<'_> {
        Staging { rules: &self.orders.staging, secrets: &self.parts.secrets }
    }

    /// The next attempt is told why, or the human is asked.
    pub(super) fn unfit(&mut self, id: &StoryId, error: &GitError) -> Result<(), EngineError> {
        let refusals = self.state.story(id).map_or(0, |known| known.unfit);
        match weigh_content(id, &error.to_string(), refusals, error.is_beyond_the_agent()) {
            Unfit::Told { error } => self.refuse_close(id, error, true),
            Unfit::Asked { question } => {
                self.record(vec![Event::QuestionRaised { story: id.clone(), question }])
            }
        }
    }

    pub(super) fn refuse_close(
        &mut self,
        id: &StoryId,
        error: String,
        unfit: bool,
    ) -> Result<(), EngineError> {
        self.record(vec![Event::CloseRefused { story: id.clone(), error, unfit }])?;
        self.keep_attempt(id)
    }

    /// Each once.
    pub(super) fn tell_left_out(&mut self, left_out: &[LeftOut]) {
        for one in left_out {
            if self.told_left_out.insert(one.path.clone()) {
                self.notice(Notice::Warning(describe(one)));
            }
        }
    }

    /// What the gates saw beside the story's own work is in the record.
    pub(super) fn note_on_edits(&self, id: &StoryId) -> Result<Option<String>, EngineError> {
        let known = self.state.story(id).filter(|known| !known.evidence.is_empty());
        let Some(base) = known.and_then(|known| known.base.as_ref()) else { return Ok(None) };
        let mut edited = self.parts.tree.edited_before(base)?;
        edited.retain(|path| !self.orders.human_files.contains(path));
        Ok((!edited.is_empty())
            .then(|| format!("gates ran with uncommitted edits in {}", some_of(&edited, NAMED))))
    }
}

fn describe(one: &LeftOut) -> String {
    let path = visible_line(&one.path.to_string_lossy());
    match one.why {
        WhyLeftOut::Repository => {
            format!("{path} is a repository of its own and was not committed")
        }
        WhyLeftOut::Name if one.files > 1 => format!(
            "{path} was not committed ({} files): it is never committed by its name; \
             `never_commit` in ralph.toml changes that",
            one.files
        ),
        WhyLeftOut::Name => format!(
            "{path} was not committed: it is never committed by its name; `never_commit` in \
             ralph.toml changes that"
        ),
        WhyLeftOut::Users => format!(
            "{path} was not committed: it was yours and untracked before the story, and the agent \
             changed it"
        ),
        WhyLeftOut::Filter => {
            format!("{path} goes through a filter and was not committed: commit it with git")
        }
    }
}
