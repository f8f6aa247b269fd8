//! Requests from other processes: only those of the human's commands count.
//!
//! Whatever can write into the repository's git folder can leave a request. One that was there before
//! the run counts; later ones only while the command that made them can be seen, and is not below a
//! supervisor. So commands wait until the run has looked.

use crate::model::{Event, Request, visible_line};
use crate::process::supervised::is_human_command;
use crate::runner::error::Result;
use crate::runner::log::RunLog;
use crate::store::PendingRequest;

use super::World;

impl World {
    /// Those that nothing untrusted of this run can have made. After a crash none is.
    pub(super) fn know_earlier_requests(&mut self, cut_off: bool) -> Result<()> {
        if !cut_off {
            let pending = self.env.requests.pending()?.into_iter();
            let elsewhere = self.env.requests.pending_elsewhere()?;
            let pending = pending.chain(elsewhere);
            self.human_requests = pending.filter(|one| one.by.is_some()).collect();
        }
        Ok(())
    }

    /// Those of the human's, oldest first; the others are dropped, also those to the runs of other work
    /// trees: an agent of this one can leave them.
    pub(super) fn pending_requests(
        &mut self,
        log: &mut RunLog,
    ) -> Result<Vec<(i64, Option<Request>)>> {
        let is_humans =
            |one: &PendingRequest| self.human_requests.contains(one) || self.is_made_by_human(one);
        let (humans, mut others): (Vec<_>, Vec<_>) =
            self.env.requests.pending()?.into_iter().partition(is_humans);
        let (elsewhere, planted): (Vec<_>, Vec<_>) =
            self.env.requests.pending_elsewhere()?.into_iter().partition(is_humans);
        others.extend(planted);
        let asked_here = humans.iter().map(|one| (one.number, one.request.clone())).collect();
        self.human_requests = humans.into_iter().chain(elsewhere).collect();
        if !others.is_empty() {
            for other in &others {
                self.env.requests.settle(other.number)?;
            }
            self.record(log, Event::RequestsIgnored { asked: others.iter().map(asked).collect() })?;
        }
        Ok(asked_here)
    }

    fn is_made_by_human(&self, pending: &PendingRequest) -> bool {
        let words: &[&str] = match &pending.request {
            Some(Request::Nudge { .. }) => &["nudge"],
            Some(Request::Mark { .. }) => &["mark"],
            Some(Request::Approved { .. }) => &["trust", "run", "init"],
            // A newer ralph may have other commands.
            None => &[],
        };
        pending.by.is_some_and(|by| is_human_command(by, words, self.env.supervisor.repository()))
    }
}

/// For people.
fn asked(pending: &PendingRequest) -> String {
    match &pending.request {
        Some(Request::Nudge { text }) => format!("nudge {}", visible_line(text)),
        Some(Request::Mark { story, passes: true, .. }) => format!("mark {story} pass"),
        Some(Request::Mark { story, skipped: true, .. }) => format!("mark {story} skip"),
        Some(Request::Mark { story, .. }) => format!("mark {story} fail"),
        Some(Request::Approved { .. }) => "trust".to_owned(),
        None => "unknown".to_owned(),
    }
}
