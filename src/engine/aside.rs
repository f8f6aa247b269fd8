//! Work of a story that is left unfinished: kept, out of the way, brought back.

use crate::core::event::{Base, Event};
use crate::core::id::StoryId;
use crate::git::{BroughtBack, GitError};

use super::Engine;
use super::error::EngineError;

impl Engine {
    pub(super) fn set_aside(&mut self, story: &StoryId) -> Result<(), EngineError> {
        let base = self.state.story(story).and_then(|known| known.base.clone());
        let reference = match base {
            Some(base) => self.keep(story, &base)?,
            None => None,
        };
        self.known_base = None;
        self.record(vec![Event::WorkSetAside { story: story.clone(), reference }])
    }

    /// Under the next free number: another backlog may have had a story of the same name.
    fn keep(&self, story: &StoryId, base: &Base) -> Result<Option<String>, EngineError> {
        let mut number = self.state.story(story).map_or(0, |known| known.set_aside_count) + 1;
        loop {
            match self.parts.tree.set_aside(story, number, base, &self.orders.human_files) {
                Err(GitError::AlreadyKept(_)) => number += 1,
                kept => return Ok(kept?),
            }
        }
    }

    /// Puts kept work back into the tree, where it still fits.
    pub(super) fn bring_back(&mut self, story: &StoryId, base: &Base) -> Result<(), EngineError> {
        let kept = self.state.story(story).and_then(|known| known.set_aside.clone());
        let Some(reference) = kept else { return Ok(()) };
        // First of all what is not the story's: half of its work may be in the tree after a crash.
        self.record(vec![Event::BaseSet { story: story.clone(), base: base.clone() }])?;
        let brought = self.parts.tree.bring_back(&reference, &self.orders.human_files)?;
        let conflicts = match brought {
            BroughtBack::Clean => Vec::new(),
            BroughtBack::Conflicts(paths) => paths,
        };
        self.record(vec![Event::WorkBroughtBack { story: story.clone(), reference, conflicts }])
    }
}
