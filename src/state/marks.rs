//! Which stories pass, and which are skipped.

use std::collections::BTreeSet;

use crate::model::{Backlog, Event, Story, StoryId};

/// The marks of a backlog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub passing: BTreeSet<StoryId>,
    pub skipped: BTreeSet<StoryId>,
}

impl Marks {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::MarksSeen { passing, skipped } => {
                self.passing = passing.iter().cloned().collect();
                self.skipped = skipped.iter().cloned().collect();
            }
            Event::StoryClosed(closed) => {
                self.passing.insert(closed.story.clone());
            }
            Event::StorySkipped { story, .. } => {
                self.skipped.insert(story.clone());
            }
            Event::StoryReopened { story, .. } => {
                self.passing.remove(story);
            }
            _ => {}
        }
    }

    pub fn of(backlog: &Backlog) -> Self {
        let ids = |which: fn(&&Story) -> bool| {
            backlog.stories.iter().filter(which).map(|story| story.id.clone()).collect()
        };
        Self { passing: ids(|story| story.passes), skipped: ids(|story| story.skipped) }
    }

    pub fn set(&mut self, story: &StoryId, passes: bool, skipped: bool) {
        for (set, marked) in [(passes, &mut self.passing), (skipped, &mut self.skipped)] {
            if set {
                marked.insert(story.clone())
            } else {
                marked.remove(story)
            };
        }
    }

    /// As an event: these are the human's.
    pub fn seen(&self) -> Event {
        Event::MarksSeen {
            passing: self.passing.iter().cloned().collect(),
            skipped: self.skipped.iter().cloned().collect(),
        }
    }

    /// Stories that neither pass nor are skipped.
    pub fn remaining(&self, backlog: &Backlog) -> usize {
        let is_open =
            |story: &&Story| !self.passing.contains(&story.id) && !self.skipped.contains(&story.id);
        backlog.stories.iter().filter(is_open).count()
    }
}
