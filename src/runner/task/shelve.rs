//! Work that leaves its lane or returns to it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{Base, Cause, Event, LaneId, Notice, StoryId, TreeNotice};
use crate::runner::config::RunConfig;
use crate::runner::effects::KeptWork;
use crate::runner::error::Result;
use crate::runner::task::EventSink;
use crate::runner::task::occupant::Occupant;
use crate::workspace::{GitError, Reset, Unshelved, WorkTree};

/// A story's work in its lane.
pub struct StoryWork {
    pub story: StoryId,
    pub iteration: u32,
    /// None: there is none.
    pub occupant: Option<Occupant>,
    /// From here on a number of kept work may be free: another backlog may have had a story of the
    /// same id.
    pub number: u32,
    pub config: Arc<RunConfig>,
}

impl StoryWork {
    /// Takes it out of the lane; returns the ref that has it.
    pub fn shelve(mut self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<Option<String>> {
        let Some(occupant) = self.occupant.take() else { return Ok(None) };
        let Occupant { base, rest, .. } = occupant.follow(tree, log)?;
        let to = rest.unwrap_or_else(|| base.tree.clone());
        self.leave(tree, &base, &Reset { to: &to, except: &self.config.human_files }, log)
    }

    /// Carries out a planned roll-back; after a crash again.
    pub fn roll_back(
        self,
        tree: &WorkTree,
        to: &Base,
        why: Cause,
        log: &mut dyn EventSink,
    ) -> Result<Option<String>> {
        match why {
            Cause::FreshStart => self.shelve(tree, log),
            // An agent that lost the branch may have changed the human's files.
            Cause::Elsewhere | Cause::Rewritten | Cause::Unfinished => {
                self.leave(tree, to, &Reset { to: &to.tree, except: &[] }, log)
            }
        }
    }

    fn leave(
        &self,
        tree: &WorkTree,
        base: &Base,
        reset: &Reset<'_>,
        log: &mut dyn EventSink,
    ) -> Result<Option<String>> {
        let mut number = self.number;
        let kept = loop {
            match tree.shelve_to(&self.story, number, base, reset) {
                Err(GitError::RefTaken(_)) => number += 1,
                kept => break kept?,
            }
        };
        if let Some(reference) = &kept {
            let paths = tree.new_files_of(reference)?;
            if !paths.is_empty() {
                let (story, reference) = (self.story.clone(), reference.clone());
                log.notice(Notice::Tree(TreeNotice::NewFilesShelved { story, reference, paths }));
            }
        }
        Ok(kept)
    }

    /// Stores a failed attempt's work at a ref; it stays in the lane too.
    pub fn keep(self, tree: &WorkTree) -> Result<Option<KeptWork>> {
        let Some(Occupant { base, .. }) = &self.occupant else { return Ok(None) };
        let kept = tree.keep_attempt(&self.story, self.number, self.iteration, base)?;
        Ok(kept
            .map(|(kept, stat)| KeptWork { reference: kept.reference, changes: stat.to_string() }))
    }
}

/// A claim whose work is merged onto the branch in lane 0.
pub struct Landing {
    pub story: StoryId,
    /// If a process before this one began with it: then half of the work may be there.
    pub occupant: Option<Occupant>,
    pub shelved: Option<String>,
    pub config: Arc<RunConfig>,
}

impl Landing {
    /// Merges shelved work, if there is any, and returns its new base. None if it conflicts with what
    /// is there: then nothing changed.
    pub fn run(self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<Option<Base>> {
        let base = match self.occupant {
            Some(occupant) => occupant.follow_branch(tree, log)?,
            None => tree.base()?,
        };
        tree.hold(&base)?;
        let (lane, except) = (LaneId::HOME, &self.config.human_files);
        let Some(reference) = self.shelved else {
            log.record(Event::BaseSet { story: self.story, base: base.clone(), lane })?;
            return Ok(Some(base));
        };
        let work = ShelvedWork { story: &self.story, lane, reference, base: &base, except };
        Ok(work.unshelve(tree, log)?.then_some(base))
    }
}

/// Work that is kept at a ref, and the lane that it returns to.
pub struct ShelvedWork<'a> {
    pub story: &'a StoryId,
    pub lane: LaneId,
    pub reference: String,
    /// The lane's tree, which becomes the story's base.
    pub base: &'a Base,
    /// The human's own files stay as they are.
    pub except: &'a [PathBuf],
}

impl ShelvedWork<'_> {
    /// False if it conflicts with what is in the lane: then nothing changed.
    pub fn unshelve(self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<bool> {
        let (story, base) = (self.story.clone(), self.base.clone());
        // Record the base first: after a crash half of the work may be in the tree.
        log.record(Event::BaseSet { story, base, lane: self.lane })?;
        let conflicts = match tree.unshelve(&self.reference, self.except)? {
            Unshelved::Clean => Vec::new(),
            Unshelved::Conflicts(paths) => paths,
        };
        let is_clean = conflicts.is_empty();
        let (story, reference) = (self.story.clone(), self.reference);
        log.record(Event::WorkBroughtBack { story, reference, conflicts })?;
        Ok(is_clean)
    }
}
