//! What the human changes in the tree while no run is active is the human's, also if a story's
//! unfinished work is there: a process records the tree when it begins to wait, or ends, and the next
//! one compares.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use crate::model::{Base, Event, LaneId, StoryId};
use crate::runner::effects::Left;
use crate::runner::error::{Result, RunnerError};
use crate::runner::log::RunLog;
use crate::runner::task::Message;
use crate::state::RunState;
use crate::workspace::{UserEdits, WorkTree};

use super::World;
use super::recovery::base_on_branch;

/// How long a look at the tree may take after a signal.
const LAST_LOOK: Duration = Duration::from_secs(2);

impl World {
    /// The tree that this process leaves. None: no unfinished work is in it, or it cannot be read.
    /// After a success, what is on the branch must be whole.
    pub(super) async fn left_tree(&self, log: &RunLog, end: Option<&Event>) -> Left {
        if matches!(end, Some(Event::RunEnded { reason }) if reason.stop().exit_code == 0) {
            self.env.home.with(WorkTree::require_whole_tip).await??;
        }
        let Some(story) = left_by(log) else { return Ok(None) };
        let left = self.env.home.with(WorkTree::leave);
        // After a signal nobody waits for large files.
        let left = match end {
            Some(Event::RunInterrupted { .. }) => timeout(LAST_LOOK, left).await.ok(),
            _ => Some(left.await),
        };
        let left = left.and_then(|left| left.ok()?.ok());
        Ok(left.map(|left| Event::TreeLeft { story, left }))
    }

    /// Nothing runs, and the loop waits: the process may be killed now. The loop does not wait for the
    /// look.
    pub(super) fn look_before_wait(&mut self, log: &RunLog) {
        let is_idle = log.state.attempts.is_idle() && self.gates.is_empty() && !self.has_home_job;
        if !is_idle || self.look != TreeLook::Due || log.is_cut_off() {
            return;
        }
        let Some(story) = left_by(log) else { return };
        self.look = TreeLook::UnderWay;
        let (home, mailbox) = (self.env.home.clone(), self.mailbox.clone());
        tokio::spawn(async move {
            let left = home.with(WorkTree::leave).await;
            let left = left.and_then(|left| Ok(left?)).ok();
            // The loop may have ended.
            let _ = mailbox.send(Message::Left { story, left }).await;
        });
    }

    /// Unless something else began meanwhile.
    pub(super) fn take_look(
        &mut self,
        log: &mut RunLog,
        story: StoryId,
        left: Option<Base>,
    ) -> Result<()> {
        if std::mem::replace(&mut self.look, TreeLook::Done) != TreeLook::UnderWay {
            self.look = TreeLook::Due;
            return Ok(());
        }
        match left {
            Some(left) => self.record(log, Event::TreeLeft { story, left }),
            None => Ok(()),
        }
    }

    /// A job is about to change the tree, and it may be killed.
    pub(super) fn take_tree(&mut self, log: &mut RunLog, story: &StoryId) -> Result<()> {
        match log.state.left {
            Some(_) => self.record(log, Event::TreeTaken { story: story.clone() }),
            None => Ok(()),
        }
    }

    /// What the user changed in the files since the last process's end is no part of the story.
    pub(super) fn take_up_edits(&mut self, log: &mut RunLog) -> Result<()> {
        let tree = self.env.home.tree();
        let found = edits_between_runs(&log.state, &tree, &self.config.human_files)?;
        let Some(EditsBetweenRuns { story, base, found, roll_back, rest }) = found else {
            return Ok(());
        };
        if !found.mixed.is_empty() {
            return Err(RunnerError::MixedEdits { story, paths: found.mixed });
        }
        if found.tree == base.tree {
            return Ok(());
        }
        let base = Base { tree: found.tree, ..base };
        tree.hold(&base)?;
        let found = Event::UserEditsFound { story, base, roll_back, rest };
        log.record(self.env.backlog.current(), vec![found])
    }
}

/// A look at the human's tree that is to be recorded while nothing runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeLook {
    #[default]
    Due,
    UnderWay,
    Done,
}

/// The story whose unfinished work is in the human's tree, if the journal does not have that already.
fn left_by(log: &RunLog) -> Option<StoryId> {
    let story = log.state.lanes.occupant(LaneId::HOME).filter(|_| log.state.left.is_none());
    story.cloned()
}

/// The user's changes since the last process left a story's unfinished work in the human's tree.
pub struct EditsBetweenRuns {
    pub story: StoryId,
    /// The story's base, on top of the current branch tip.
    pub base: Base,
    pub found: UserEdits,
    /// Where a planned roll-back goes to, with the changes.
    roll_back: Option<Base>,
    /// What shelving returns to, with the changes, if it is not the base.
    rest: Option<String>,
}

/// None if there is no such work, or if something ran when the last process was killed: then what
/// changed since its last snapshot counts as the attempt's.
pub fn edits_between_runs(
    state: &RunState,
    tree: &WorkTree,
    except: &[PathBuf],
) -> Result<Option<EditsBetweenRuns>> {
    let (Some(left), Some(story)) = (&state.left, state.lanes.occupant(LaneId::HOME)) else {
        return Ok(None);
    };
    let work = state.story(story).and_then(|known| known.work.in_lane());
    let Some(work) = work.filter(|_| tree.has_tree(left)) else { return Ok(None) };
    let moved = base_on_branch(state, tree)?.map(|(_, base)| base);
    let base = moved.unwrap_or_else(|| work.base.clone());
    let mut found = tree.edits_since(left, &base, except)?;
    let mut roll_back = None;
    if let Some(planned) = &work.roll_back {
        let mut edits = tree.edits_since(left, &planned.to, except)?;
        found.mixed.append(&mut edits.mixed);
        roll_back = Some(Base { tree: edits.tree, ..planned.to.clone() });
    }
    let with = |rest: &String| -> Result<String> {
        let rest = Base { tree: rest.clone(), ..base.clone() };
        Ok(tree.edits_since(left, &rest, except)?.tree)
    };
    let rest = work.rest.as_ref().map(with).transpose()?;
    Ok(Some(EditsBetweenRuns { story: story.clone(), base, found, roll_back, rest }))
}
