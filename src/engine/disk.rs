//! Room on the disk, looked at before every decision.

use crate::core::decide::{FreeDisk, Moment};
use crate::process::Order;
use crate::store::disk;

use super::Engine;
use super::error::EngineError;
use super::ports::Notice;

impl Engine {
    pub(super) fn moment(&mut self) -> Result<Moment, EngineError> {
        let stuck = self.stuck()?;
        // What ended an agent counts, also when that made room: the next one would fill it again.
        let disk = self.disk_was_low.clone().or_else(|| self.free_disk());
        Ok(Moment { now: (self.parts.clock)(), disk, stuck })
    }

    /// The work tree is where agents write, the git folder where everything is kept.
    fn free_disk(&self) -> Option<FreeDisk> {
        self.orders.policy.min_free_disk?;
        let places = [self.parts.tree.root(), self.parts.tree.common_dir()];
        let measured = places.into_iter().filter_map(|place| {
            Some(FreeDisk { bytes: disk::free(place)?, place: place.display().to_string() })
        });
        measured.min_by_key(|disk| disk.bytes)
    }

    /// Once; from then on they are only waited for.
    pub(super) fn end_attempts(&mut self, moment: &Moment) {
        if self.disk_was_low.is_some() {
            return;
        }
        self.disk_was_low.clone_from(&moment.disk);
        let text = "the disk is nearly full: the agent is ended, and its work stays in the tree";
        self.notice(Notice::Warning(text.to_owned()));
        self.stop.send_replace(Some(Order::Stop));
    }
}
