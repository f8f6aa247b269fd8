//! Who may set marks, and when: the driver always, the human while no attempt runs.

use std::collections::BTreeSet;

use crate::core::event::Event;
use crate::core::id::StoryId;
use crate::core::state::{Marks, StoryState};

use super::Engine;
use super::error::EngineError;
use super::ports::Notice;

impl Engine {
    /// What the human marked is taken up; what an agent marked is put back and reported.
    pub(super) fn settle_marks(&mut self) -> Result<(), EngineError> {
        let busy = !self.state.in_flight.is_empty() || self.state.is_returning();
        if busy || self.parts.backlog.problem().is_some() {
            return Ok(());
        }
        let found = Marks::of(self.parts.backlog.current());
        let suspect = std::mem::take(&mut self.marks_are_suspect);
        if found == self.state.marks {
            return Ok(());
        }
        if suspect {
            return self.put_back_marks();
        }
        let seen = self.marks_in_the_file();
        self.record(vec![seen])
    }

    /// What `ralph mark` wants, while no attempt runs.
    pub(super) fn mark(
        &mut self,
        story: &StoryId,
        passes: bool,
        skipped: bool,
    ) -> Result<(), EngineError> {
        if self.parts.backlog.current().story(story).is_none() {
            return Ok(());
        }
        let mut wanted = self.state.marks.clone();
        for (set, wanted) in [(passes, &mut wanted.passing), (skipped, &mut wanted.skipped)] {
            if set {
                wanted.insert(story.clone())
            } else {
                wanted.remove(story)
            };
        }
        self.parts.backlog.put_back_marks(&wanted)?;
        self.settle_marks()
    }

    pub(super) fn marks_in_the_file(&self) -> Event {
        let Marks { passing, skipped } = Marks::of(self.parts.backlog.current());
        let list = |ids: BTreeSet<StoryId>| ids.into_iter().collect();
        Event::MarksSeen { passing: list(passing), skipped: list(skipped) }
    }

    pub(super) fn put_back_marks(&mut self) -> Result<(), EngineError> {
        let mut ids = self.parts.backlog.put_back_marks(&self.state.marks)?;
        // The driver's own, which it is about to set again.
        ids.retain(|id| !self.state.story(id).is_some_and(StoryState::is_being_settled));
        if !ids.is_empty() {
            self.notice(Notice::MarksPutBack { ids });
        }
        Ok(())
    }

    pub(super) fn let_go(&mut self, story: StoryId) -> Result<(), EngineError> {
        let left = format!(
            "{story} was marked as passing by hand: what it left uncommitted in the work tree is \
             yours now, ralph does not commit it"
        );
        self.notice(Notice::Warning(left));
        self.with_scratchpad(|room| room.archive_scratchpad(&story));
        self.record(vec![Event::WorkLetGo { story }])
    }
}
