//! What the human approved: nothing untrusted of a run can add to it.

use crate::model::Event;
use crate::runner::error::Result;
use crate::runner::log::RunLog;

use super::World;

impl World {
    /// Before anything untrusted runs.
    pub(super) fn know_approvals(&mut self) -> Result<()> {
        self.approvals = self.env.answers.all()?;
        Ok(())
    }

    /// For the next process, if the journal does not have them yet.
    pub(super) fn new_approvals(&self, log: &RunLog) -> Option<Event> {
        let sums = self.approvals.sums();
        let is_new = log.state.approvals.as_ref() != Some(&sums);
        is_new.then(|| Event::ApprovalsSeen { sums: sums.into_iter().collect() })
    }

    pub(super) fn note_approvals(&self, log: &mut RunLog) -> Result<()> {
        self.new_approvals(log).map_or(Ok(()), |event| self.record(log, event))
    }

    /// After something untrusted.
    pub(super) fn repair_approvals(&self, log: &mut RunLog) -> Result<()> {
        if log.is_cut_off() {
            return Ok(());
        }
        let names = self.env.answers.put_back(&self.approvals, log.now())?;
        if names.is_empty() { Ok(()) } else { self.record(log, Event::ApprovalsPutBack { names }) }
    }
}
