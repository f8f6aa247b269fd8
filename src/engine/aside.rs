//! Work that leaves the tree: kept, out of the way, brought back.

use std::path::PathBuf;

use crate::core::event::{AttemptStarted, Base, Cause, Event};
use crate::core::id::StoryId;
use crate::git::{BroughtBack, GitError};

use super::Engine;
use super::error::EngineError;

impl Engine {
    pub(super) fn set_aside(&mut self, story: &StoryId) -> Result<(), EngineError> {
        let base = self.state.story(story).and_then(|known| known.base.clone());
        let reference = match base {
            Some(base) => self.keep(story, &base, &self.orders.human_files)?,
            None => None,
        };
        self.known_base = None;
        self.with_scratchpad(|room| room.put_scratchpad_away(story));
        self.record(vec![Event::WorkSetAside { story: story.clone(), reference }])
    }

    /// Under the next free number: another backlog may have had a story of the same name.
    fn keep(
        &self,
        story: &StoryId,
        base: &Base,
        except: &[PathBuf],
    ) -> Result<Option<String>, EngineError> {
        let mut number = self.next_number(story);
        loop {
            match self.parts.tree.set_aside(story, number, base, except) {
                Err(GitError::AlreadyKept(_)) => number += 1,
                kept => return Ok(kept?),
            }
        }
    }

    pub(super) fn next_number(&self, story: &StoryId) -> u32 {
        self.state.story(story).map_or(0, |known| known.kept_count) + 1
    }

    /// What a failed attempt left, as it is now; the tree keeps it too.
    pub(super) fn keep_attempt(&mut self, story: &StoryId) -> Result<(), EngineError> {
        let Some(base) = self.state.story(story).and_then(|known| known.base.clone()) else {
            return Ok(());
        };
        let (number, iteration) = (self.next_number(story), self.state.iterations);
        let Some((kept, stat)) = self.parts.tree.keep_attempt(story, number, iteration, &base)?
        else {
            return Ok(());
        };
        let (reference, changes) = (kept.reference, stat.to_string());
        self.record(vec![Event::AttemptKept { story: story.clone(), reference, changes }])
    }

    /// Does what was planned; after a crash, once more.
    pub(super) fn go_back(&mut self, story: &StoryId) -> Result<(), EngineError> {
        let planned = self.state.story(story).and_then(|known| known.returning.clone());
        let Some(planned) = planned else { return Ok(()) };
        // An agent that went astray took the human's files along.
        let except = match planned.why {
            Cause::FreshStart => self.orders.human_files.as_slice(),
            Cause::Elsewhere | Cause::Rewritten => &[],
        };
        let reference = self.keep(story, &planned.to, except)?;
        self.known_base = None;
        self.record(vec![Event::Returned { story: story.clone(), reference }])
    }

    /// Puts kept work back into the tree, where it still fits; false when there is none.
    pub(super) fn bring_back(&mut self, story: &StoryId, base: &Base) -> Result<bool, EngineError> {
        let kept = self.state.story(story).and_then(|known| known.set_aside.clone());
        let Some(reference) = kept else { return Ok(false) };
        // First of all what is not the story's: half of its work may be in the tree after a crash.
        self.record(vec![Event::BaseSet { story: story.clone(), base: base.clone() }])?;
        let brought = self.parts.tree.bring_back(&reference, &self.orders.human_files)?;
        let conflicts = match brought {
            BroughtBack::Clean => Vec::new(),
            BroughtBack::Conflicts(paths) => paths,
        };
        self.record(vec![Event::WorkBroughtBack { story: story.clone(), reference, conflicts }])?;
        Ok(true)
    }

    /// The tree as it is right before the attempt, at a ref.
    pub(super) fn keep_snapshot(
        &self,
        story: &StoryId,
        iteration: u32,
        before: &Base,
    ) -> Result<String, EngineError> {
        let number = self.state.attempts + 1;
        Ok(self.parts.tree.keep_snapshot(number, story, iteration, before)?.reference)
    }

    /// What an attempt that is over, or was cut off, began with.
    pub(super) fn before(started: &AttemptStarted) -> &Base {
        started.before.as_ref().unwrap_or(&started.base)
    }
}
