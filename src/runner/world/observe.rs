//! Observations before each decision.

use std::time::Duration;

use crate::decide::situation::FreeDisk;
use crate::model::{Event, StuckEvent};
use crate::runner::effects::{About, Effects, Sighting};
use crate::runner::error::RunnerError;
use crate::runner::log::RunLog;
use crate::store::files::free_space;

use super::World;

impl World {
    pub(super) fn look_around(&mut self, log: &mut RunLog) -> Result<Sighting, RunnerError> {
        self.look_for_progress(log)?;
        let agents: Duration = self.running.values().map(|running| running.busy()).sum();
        let gates: Duration = self.gates.iter().map(|(.., since)| since.elapsed()).sum();
        // Low disk that ended an agent still counts if that freed space: the next would fill it again.
        let disk = self.disk_was_low.clone().or_else(|| self.free_disk());
        let floor = self.config.policy.min_free_disk.unwrap_or_default();
        let runs = !self.running.is_empty() || !self.gates.is_empty();
        if runs && disk.as_ref().is_some_and(|disk| disk.bytes < floor) {
            self.disk_was_low.clone_from(&disk);
        }
        Ok(Sighting {
            busy: agents + gates,
            disk,
            stuck: self.stuck_dues(),
            today: self.spent_today(log)?,
            backlog_usable: self.env.backlog.problem().is_none(),
        })
    }

    fn look_for_progress(&mut self, log: &mut RunLog) -> Result<(), RunnerError> {
        let policy = self.config.stuck;
        let wanting = self.running.iter().filter(|(_, running)| running.wants_a_look(&policy));
        let wanting: Vec<String> = wanting.map(|(attempt, _)| attempt.clone()).collect();
        for attempt in wanting {
            let tree = self.env.tree.base().ok();
            let recovered =
                self.running.get_mut(&attempt).is_some_and(|running| running.look(tree));
            let flight = log.state.attempts.get(&attempt).filter(|_| recovered);
            if let Some(story) = flight.map(|flight| flight.start.story.clone()) {
                self.withdraw(&About::Attempt { attempt, story: story.clone() });
                self.record(log, Event::Stuck { story, step: StuckEvent::Recovered })?;
            }
        }
        Ok(())
    }

    /// Agents write to the work tree, ralph to the git folder.
    fn free_disk(&self) -> Option<FreeDisk> {
        self.config.policy.min_free_disk?;
        let places = [self.env.tree.root(), self.env.tree.common_dir()];
        let measured = places.into_iter().filter_map(|place| {
            Some(FreeDisk { bytes: free_space(place)?, place: place.display().to_string() })
        });
        measured.min_by_key(|disk| disk.bytes)
    }
}
