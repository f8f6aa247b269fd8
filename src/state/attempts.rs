//! Attempts in flight, their numbers, and which story's work is in which lane.

use std::collections::BTreeMap;

use crate::model::{AttemptStarted, Event, LaneId, StoryId, Usd};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempts {
    in_flight: BTreeMap<String, InFlight>,
    /// Attempts that were started, whether they count as an iteration or not.
    pub started: u32,
    /// Attempts that count as an iteration.
    pub iterations: u32,
    /// The highest iteration number.
    highest: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct InFlight {
    pub start: AttemptStarted,
    /// Its number among all attempts of the run.
    pub number: u32,
}

impl Attempts {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AttemptStarted(start) => {
                self.started += 1;
                self.iterations += 1;
                self.highest = self.highest.max(start.iteration);
                let flight = InFlight { start: (**start).clone(), number: self.started };
                self.in_flight.insert(start.attempt.clone(), flight);
            }
            Event::AttemptEnded(end) => drop(self.in_flight.remove(&end.attempt)),
            Event::RunContinued => self.in_flight.clear(),
            _ => {}
        }
    }

    /// The attempt does not count as an iteration; its number is free again if it was the last.
    pub fn refund(&mut self, start: &AttemptStarted) {
        self.iterations = self.iterations.saturating_sub(1);
        if self.highest == start.iteration {
            self.highest = self.highest.saturating_sub(1);
        }
    }

    pub fn next_iteration(&self) -> u32 {
        self.highest + 1
    }

    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    pub fn count(&self) -> usize {
        self.in_flight.len()
    }

    pub fn get(&self, attempt: &str) -> Option<&InFlight> {
        self.in_flight.get(attempt)
    }

    /// In the order of their ids; a run's ids (UUIDv7) grow with time.
    pub fn iter(&self) -> impl Iterator<Item = &InFlight> {
        self.in_flight.values()
    }

    pub fn at(&self, story: &StoryId) -> Option<&InFlight> {
        self.iter().find(|flight| flight.start.story == *story)
    }

    pub fn is_free(&self, lane: LaneId) -> bool {
        self.iter().all(|flight| flight.start.lane != lane)
    }

    /// The sum of their allowances.
    pub fn reserved(&self) -> Usd {
        self.iter().filter_map(|flight| flight.start.allowance).sum()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lanes(BTreeMap<LaneId, StoryId>);

impl Lanes {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AttemptStarted(start) => _ = self.0.insert(start.lane, start.story.clone()),
            Event::BaseSet { story, lane, .. } => _ = self.0.insert(*lane, story.clone()),
            Event::WorkSetAside { story, .. }
            | Event::WorkLetGo { story }
            | Event::StorySkipped { story, .. }
            | Event::StoryReopened { story, .. } => self.retain(|other| other != story),
            Event::StoryClosed(closed) => self.retain(|other| *other != closed.story),
            _ => {}
        }
    }

    pub fn retain(&mut self, keep: impl Fn(&StoryId) -> bool) {
        self.0.retain(|_, occupant| keep(occupant));
    }

    pub fn occupant(&self, lane: LaneId) -> Option<&StoryId> {
        self.0.get(&lane)
    }

    pub fn of(&self, story: &StoryId) -> Option<LaneId> {
        self.0.iter().find(|(_, occupant)| *occupant == story).map(|(lane, _)| *lane)
    }

    pub fn iter(&self) -> impl Iterator<Item = (LaneId, &StoryId)> {
        self.0.iter().map(|(lane, story)| (*lane, story))
    }
}
