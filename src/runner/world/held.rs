//! What gates may not change, and PRD.json after an attempt or a gate that left it unusable.

use crate::files::atomic::private_folder;
use crate::model::{Base, Event, Notice, Untrusted};
use crate::runner::effects::GatesOf;
use crate::runner::error::Result;
use crate::runner::log::RunLog;
use crate::runner::task::gate_guard::GateGuard;
use crate::runner::task::inspect::Ran;

use super::World;

/// The folder for the versions that gates wrote.
pub(super) fn folder_of(gates: &GatesOf) -> &str {
    match gates {
        GatesOf::Baseline => "baseline",
        GatesOf::Claim { attempt, .. } => attempt,
    }
}

impl World {
    pub(super) fn gate_guard(&self, log: &RunLog, of: &GatesOf, base: Option<Base>) -> GateGuard {
        let ran = match of {
            GatesOf::Baseline => Ran { what: Untrusted::Baseline, story: None },
            GatesOf::Claim { story, .. } => {
                Ran { what: Untrusted::Gates, story: Some(story.clone()) }
            }
        };
        GateGuard {
            ran,
            folder: folder_of(of).to_owned(),
            base,
            told: log.state.written.clone(),
            held: self.config.held.clone(),
            keep: self.config.settings.keep.clone(),
            backlog: self.config.backlog_in_tree.clone(),
        }
    }

    /// Every process that could write the backlog is gone: nobody has to wait until the file is
    /// mended. `attempt` names the folder for what is there now.
    pub(super) fn release_backlog(&mut self, log: &mut RunLog, attempt: &str) -> Result<()> {
        if self.is_writing_marks || log.state.is_rolling_back() {
            return Ok(());
        }
        let notice = self.look_at_backlog(log)?;
        let Some(problem) = self.env.backlog.problem().map(ToOwned::to_owned) else {
            notice.into_iter().for_each(|notice| log.notice(notice));
            return Ok(());
        };
        let folder = self.env.home.tree().changed_by(attempt);
        private_folder(&folder)?;
        let keep = folder.join(self.env.backlog.name());
        match self.env.backlog.put_back(&log.state.marks, &keep) {
            Ok(kept) => {
                let kept = kept.map(|kept| kept.to_string_lossy().into_owned());
                self.record(log, Event::BacklogPutBack { problem, kept })
            }
            // The last good version serves on.
            Err(error) => {
                log.notice(Notice::BacklogBroken { problem: error.to_string() });
                Ok(())
            }
        }
    }
}
