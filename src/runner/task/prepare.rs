//! Makes a lane ready for an attempt: its work tree is scanned, shelved work is back, the guard is
//! armed.

use std::sync::Arc;

use crate::model::{Base, Changes, HeldChange, LaneId, StoryId, Untrusted};
use crate::runner::config::RunConfig;
use crate::runner::error::Result;
use crate::runner::task::inspect::{Ran, repair_since};
use crate::runner::task::occupant::Occupant;
use crate::runner::task::shelve::ShelvedWork;
use crate::runner::task::{EventSink, held_files, tell_moved};
use crate::workspace::{Guard, Guarded, WorkTree};

pub struct Prepare {
    pub story: StoryId,
    pub lane: LaneId,
    /// The id that the attempt will have, and its iteration.
    pub attempt: String,
    pub iteration: u32,
    /// The tree after a close is known without a scan.
    pub known: Option<Base>,
    /// If its work is in the lane.
    pub occupant: Option<Occupant>,
    /// The ref of its shelved work.
    pub shelved: Option<String>,
    /// Changes of files that the human accepted and that are not in the tree yet.
    pub accepted: Vec<HeldChange>,
    /// From here on numbers of snapshots may be free.
    pub snapshot: u32,
    /// Something that an agent or a gate started may run since the last look.
    pub is_watched: bool,
    pub config: Arc<RunConfig>,
}

/// A lane that is ready.
pub struct Prepared {
    pub story: StoryId,
    pub lane: LaneId,
    pub attempt: String,
    pub iteration: u32,
    pub base: Base,
    pub before: Base,
    /// The ref that `before` will be kept at.
    pub snapshot: String,
    pub guard: Guard,
    /// What the story changed so far.
    pub changes: Changes,
}

impl Prepare {
    pub fn run(self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<Prepared> {
        if self.is_watched {
            let ran = Ran { what: Untrusted::Attempt, story: Some(self.story.clone()) };
            repair_since(tree, &ran, &self.attempt, log)?;
        }
        let mut before = match self.known {
            Some(known) => known,
            None => tree.base()?,
        };
        let base = match self.occupant {
            Some(occupant) => occupant.follow_branch(tree, log)?,
            None => {
                tree.hold(&before)?;
                tree.note_beside()?;
                tree.note_gate_scripts(self.config.gates.every());
                before.clone()
            }
        };
        if let Some(reference) = self.shelved {
            let (story, lane, except) = (&self.story, self.lane, &self.config.human_files);
            ShelvedWork { story, lane, reference, base: &base, except }.unshelve(tree, log)?;
            before = tree.base()?;
        }
        if held_files::apply(tree, &self.story, &self.accepted, log)? {
            before = tree.base()?;
        }
        tell_moved(tree, log);
        let snapshot = tree.snapshot_name(self.snapshot)?;
        let guarded = Guarded {
            ran: self.attempt.clone(),
            base: base.clone(),
            before: before.clone(),
            snapshot: Some(snapshot.clone()),
        };
        let guard = Guard::arm(tree, guarded, &self.config.held)?;
        // A failed summary is no reason to stop.
        let changes = tree.summary(&base, &before).unwrap_or_default();
        let Self { story, lane, attempt, iteration, .. } = self;
        Ok(Prepared { story, lane, attempt, iteration, base, before, snapshot, guard, changes })
    }
}

#[cfg(test)]
mod tests;
