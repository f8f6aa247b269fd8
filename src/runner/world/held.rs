//! What gates may not change.

use crate::model::{Base, Untrusted};
use crate::runner::effects::GatesOf;
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
}
