//! Work that leaves its lane or returns to it.

use std::path::PathBuf;

use crate::model::{Base, Cause, Event, LaneId, StoryId};
use crate::ports::{BacklogNotice, Notice};
use crate::runner::error::RunnerError;
use crate::runner::log::RunLog;
use crate::workspace::{BroughtBack, GitError};

use super::World;

impl World {
    pub(super) fn shelve_work(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
    ) -> Result<Option<String>, RunnerError> {
        let base = log.state.story(story).and_then(|known| known.base());
        let reference = match base {
            Some(base) => self.keep(log, story, base, &self.config.human_files)?,
            None => None,
        };
        self.known_bases.remove(&self.lane_of(log, story));
        self.with_scratchpad(log, |dir| dir.shelve_scratchpad(story));
        Ok(reference)
    }

    /// Under the next free number: another backlog may have had a story of the same id.
    fn keep(
        &self,
        log: &RunLog,
        story: &StoryId,
        base: &Base,
        except: &[PathBuf],
    ) -> Result<Option<String>, RunnerError> {
        let mut number = Self::next_number(log, story);
        loop {
            match self.tree(self.lane_of(log, story)).set_aside(story, number, base, except) {
                Err(GitError::AlreadyKept(_)) => number += 1,
                kept => return Ok(kept?),
            }
        }
    }

    pub(super) fn next_number(log: &RunLog, story: &StoryId) -> u32 {
        log.state.story(story).map_or(0, |known| known.kept_count) + 1
    }

    /// Stores a failed attempt's work at a ref; it stays in the lane too.
    pub(super) fn keep_attempt(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
    ) -> Result<(), RunnerError> {
        let Some(known) = log.state.story(story) else { return Ok(()) };
        let Some(base) = known.base() else { return Ok(()) };
        let number = Self::next_number(log, story);
        let kept = self.tree(self.lane_of(log, story)).keep_attempt(
            story,
            number,
            known.iteration,
            base,
        )?;
        let Some((kept, stat)) = kept else { return Ok(()) };
        let (reference, changes) = (kept.reference, stat.to_string());
        self.record(log, Event::AttemptKept { story: story.clone(), reference, changes })
    }

    /// Carries out the planned roll-back; after a crash again.
    pub(super) fn roll_back_work(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
    ) -> Result<Option<String>, RunnerError> {
        let planned = log.state.story(story).and_then(|known| known.work.roll_back());
        let Some(planned) = planned else { return Ok(None) };
        // An agent that lost the branch may have changed the human's files.
        let except = match planned.why {
            Cause::FreshStart => self.config.human_files.as_slice(),
            Cause::Elsewhere | Cause::Rewritten => &[],
        };
        let reference = self.keep(log, story, &planned.to, except)?;
        self.known_bases.remove(&self.lane_of(log, story));
        Ok(reference)
    }

    /// Merges shelved work into the lane; false if there is none.
    pub(super) fn unshelve(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        base: &Base,
        lane: LaneId,
    ) -> Result<bool, RunnerError> {
        let shelved = log.state.story(story).and_then(|known| known.work.shelved().cloned());
        let Some(reference) = shelved else { return Ok(false) };
        // Record the base first: after a crash half of the work may be in the tree.
        self.record(log, Event::BaseSet { story: story.clone(), base: base.clone(), lane })?;
        log.sync()?;
        let brought = self.tree(lane).bring_back(&reference, &self.config.human_files)?;
        let conflicts = match brought {
            BroughtBack::Clean => Vec::new(),
            BroughtBack::Conflicts(paths) => paths,
        };
        let story = story.clone();
        self.record(log, Event::WorkBroughtBack { story, reference, conflicts })?;
        Ok(true)
    }

    pub(super) fn disown_work(&mut self, log: &mut RunLog, story: &StoryId) {
        log.notice(Notice::Backlog(BacklogNotice::Disowned { story: story.clone() }));
        self.with_scratchpad(log, |dir| dir.archive_scratchpad(story));
    }
}
