//! The backlog: stories in the order of their file.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::OnceLock;

use super::gate::Gate;
use super::id::StoryId;
use super::signals::CompletionMarkers;

/// A valid backlog: ids are unique, dependencies exist, there is no cycle.
#[derive(Clone, Debug)]
pub struct Backlog {
    pub project: String,
    pub description: String,
    pub stories: Vec<Story>,
    places: OnceLock<HashMap<StoryId, usize>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    pub id: StoryId,
    pub title: String,
    pub description: String,
    pub criteria: Vec<String>,
    pub passes: bool,
    pub skipped: bool,
    pub depends_on: Vec<StoryId>,
    /// Lower comes first; stories without a priority come last.
    pub priority: Option<f64>,
    /// Commands that must pass before it is done.
    pub verify: Vec<Gate>,
    /// Attempts before the human is asked; None: the run's setting.
    pub max_attempts: Option<NonZeroU32>,
    /// Lines that also claim it.
    pub markers: CompletionMarkers,
}

impl PartialEq for Backlog {
    fn eq(&self, other: &Self) -> bool {
        (&self.project, &self.description, &self.stories)
            == (&other.project, &other.description, &other.stories)
    }
}

impl Backlog {
    pub fn new(project: String, description: String, stories: Vec<Story>) -> Self {
        Self { project, description, stories, places: OnceLock::new() }
    }

    pub fn story(&self, id: &StoryId) -> Option<&Story> {
        self.stories.get(self.place(id)?)
    }

    /// It is in the backlog and not settled.
    pub fn is_open(&self, id: &StoryId) -> bool {
        self.story(id).is_some_and(|story| !story.is_settled())
    }

    /// Its place in the file's order. Thousands of stories are looked up in every decision.
    pub fn place(&self, id: &StoryId) -> Option<usize> {
        let ids = || self.stories.iter().map(|story| story.id.clone());
        let places = self.places.get_or_init(|| ids().zip(0..).collect());
        places.get(id).copied()
    }

    /// Stories that pass.
    pub fn done(&self) -> usize {
        self.stories.iter().filter(|story| story.passes).count()
    }

    /// Every story passes, or was skipped by a human.
    pub fn is_settled(&self) -> bool {
        self.stories.iter().all(Story::is_settled)
    }

    /// Stories that neither pass nor were skipped by a human.
    pub fn remaining(&self) -> usize {
        self.stories.iter().filter(|story| !story.is_settled()).count()
    }
}

impl Story {
    /// It passes, or a human skipped it.
    pub fn is_settled(&self) -> bool {
        self.passes || self.skipped
    }
}
