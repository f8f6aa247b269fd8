//! Room on the disk and time, looked at before every decision.

use crate::core::decide::{FreeDisk, Moment};
use crate::core::limits;
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
        let busy = self.under_way.values().map(|under_way| under_way.watch.busy()).max();
        let busy_ms = u64::try_from(busy.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
        let now = (self.parts.clock)();
        Ok(Moment { now, busy_ms, disk, stuck, today: self.today(now)? })
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
        if self.ends_attempts {
            return;
        }
        self.ends_attempts = true;
        let policy = &self.orders.policy;
        let why = match limits::run_time(&self.state, policy, moment) {
            Some(_) => "the run's time is over",
            None => {
                self.disk_was_low.clone_from(&moment.disk);
                "the disk is nearly full"
            }
        };
        let text = format!("{why}: the agent is ended, and its work stays in the tree");
        self.notice(Notice::Warning(text));
        self.stop.send_replace(Some(Order::Stop));
    }

    /// What was claimed in time is still checked, by gates that nobody told to stop.
    pub(super) fn take_back_the_end(&mut self) {
        if std::mem::take(&mut self.ends_attempts) && self.interrupted.is_none() {
            self.stop.send_replace(None);
        }
    }
}
