//! The backlog file and its marks.

use crate::model::{Event, StoryId};
use crate::ports::{BacklogNotice, Notice};
use crate::runner::error::RunnerError;
use crate::runner::log::RunLog;
use crate::state::{Marks, StoryState};

use super::World;
use super::attempt::Held;

impl World {
    pub(super) fn refresh_backlog(&mut self, log: &mut RunLog) {
        // On another branch, where an agent left it, the file may be a different one.
        if log.state.is_rolling_back() {
            return;
        }
        if let Some(notice) = self.env.backlog.refresh(&log.state.marks) {
            log.notice(notice);
        }
    }

    /// Records the human's marks; reverts and reports an agent's.
    pub(super) fn settle_marks(&mut self, log: &mut RunLog) -> Result<(), RunnerError> {
        let busy = !log.state.attempts.is_idle() || log.state.is_rolling_back();
        if busy || self.env.backlog.problem().is_some() {
            return Ok(());
        }
        let suspect = std::mem::take(&mut self.marks_are_suspect);
        if !self.env.backlog.has_other_marks() {
            return Ok(());
        }
        if suspect {
            return self.put_back_marks(log);
        }
        self.env.backlog.take_up_marks();
        let seen = self.marks_in_file();
        self.record(log, seen)
    }

    /// For `ralph mark`. While an attempt runs, its agent may write the file too: the journal
    /// counts, and the file is set again after the attempt.
    pub(super) fn set_marks(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        passes: bool,
        skipped: bool,
    ) -> Result<(), RunnerError> {
        if self.env.backlog.current().story(story).is_none() {
            return Ok(());
        }
        let mut wanted = log.state.marks.clone();
        for (set, wanted) in [(passes, &mut wanted.passing), (skipped, &mut wanted.skipped)] {
            if set {
                wanted.insert(story.clone())
            } else {
                wanted.remove(story)
            };
        }
        // First the journal: after a crash the file is set again.
        self.env.backlog.show_marks(&wanted);
        self.record(log, seen(&wanted))?;
        log.sync()?;
        if self.env.backlog.problem().is_none() {
            self.env.backlog.put_back_marks(&wanted)?;
        }
        Ok(())
    }

    pub(super) fn marks_in_file(&self) -> Event {
        seen(&Marks::of(self.env.backlog.current()))
    }

    pub(super) fn put_back_marks(&mut self, log: &mut RunLog) -> Result<(), RunnerError> {
        let mut ids = self.env.backlog.put_back_marks(&log.state.marks)?;
        // The driver's own marks are about to be set again.
        ids.retain(|id| !log.state.story(id).is_some_and(StoryState::is_being_settled));
        if !ids.is_empty() {
            log.notice(Notice::MarksPutBack { ids });
        }
        Ok(())
    }

    pub(super) fn tell_removed_stories(&self, log: &mut RunLog, held: Option<&Held>) {
        let gone = self.removed_stories(held);
        if !gone.is_empty() {
            log.notice(Notice::Backlog(BacklogNotice::Disappeared { ids: gone }));
        }
    }

    /// Stories that existed when the attempt began.
    pub(super) fn removed_stories(&self, held: Option<&Held>) -> Vec<StoryId> {
        let Some(held) = held else { return Vec::new() };
        let backlog = self.env.backlog.current();
        let gone = held.stories.iter().filter(|id| backlog.story(id).is_none());
        gone.cloned().collect()
    }
}

fn seen(marks: &Marks) -> Event {
    Event::MarksSeen {
        passing: marks.passing.iter().cloned().collect(),
        skipped: marks.skipped.iter().cloned().collect(),
    }
}
