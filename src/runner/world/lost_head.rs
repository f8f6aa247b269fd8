//! After a crash: a branch that an agent left or rewrote, or a merge, rebase or the like that it was in
//! the middle of. Its work is kept, and branch and tree are rolled back.

use crate::model::{AttemptNotice, AttemptStarted, Cause, Event, LaneId, Notice};
use crate::runner::error::Result;
use crate::runner::log::RunLog;
use crate::workspace::BranchState;

use super::World;

impl World {
    /// Returns whether there is something to roll back to.
    pub(super) fn repair_head(&mut self, log: &mut RunLog) -> Result<bool> {
        let flights = log.state.attempts.iter().filter(|one| one.start.lane == LaneId::HOME);
        let starts: Vec<AttemptStarted> = flights.map(|flight| flight.start.clone()).collect();
        let mut is_lost = false;
        for start in starts {
            let Some(why) = self.why_lost(log, &start)? else { continue };
            let (story, to) = (start.story.clone(), start.before().clone());
            self.record(log, Event::ReturnPlanned { story, to, why })?;
            is_lost = true;
        }
        Ok(is_lost)
    }

    fn why_lost(&self, log: &mut RunLog, start: &AttemptStarted) -> Result<Option<Cause>> {
        let tree = self.env.home.tree();
        let is_as_left = tree.head_is_as_left(start.before(), &start.attempt)?;
        let branch = self.config.branch.as_deref().unwrap_or_default();
        if !is_as_left && !tree.is_astray(branch, start.before())? {
            return Ok(None);
        }
        let base = log.state.story(&start.story).and_then(|known| known.base());
        match tree.branch_state(base.unwrap_or(&start.base))? {
            BranchState::Lost(how) => return Ok(Some(how.into())),
            BranchState::Ahead { on } => {
                let taken = AttemptNotice::CommitsTakenFrom { branch: on };
                log.notice(Notice::Attempt(start.story.clone(), taken));
                tree.reattach()?;
            }
            BranchState::OnBranch => {}
        }
        Ok(tree.operation().map(|_| Cause::Unfinished))
    }
}
