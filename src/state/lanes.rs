//! Which story's work is in which lane.

use std::collections::BTreeMap;

use crate::model::{Event, LaneId, StoryId};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lanes(BTreeMap<LaneId, StoryId>);

impl Lanes {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AttemptStarted(start) => self.occupy(start.lane, &start.story),
            Event::BaseSet { story, lane, .. } => self.occupy(*lane, story),
            Event::WorkSetAside { story, .. }
            | Event::WorkLetGo { story }
            | Event::StorySkipped { story, .. }
            | Event::StoryReopened { story, .. } => self.vacate(story),
            Event::StoryClosed(closed) => self.vacate(&closed.story),
            _ => {}
        }
    }

    fn occupy(&mut self, lane: LaneId, story: &StoryId) {
        self.0.insert(lane, story.clone());
    }

    fn vacate(&mut self, story: &StoryId) {
        self.0.retain(|_, occupant| occupant != story);
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
