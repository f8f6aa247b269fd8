//! The backlog: stories, what must hold between them, and what is wrong with a file.

use std::num::NonZeroU32;

use super::gate::Gate;
use super::id::StoryId;
use super::signal::Signs;

mod dependencies;
mod depth;
pub mod diagnostic;
mod duplicates;
mod fields;
mod graph;
mod ids;
mod knots;
mod parse;
pub mod position;
pub(crate) mod raw;
mod render;
mod report;
mod schema;
mod signs;
mod spelling;
mod story;
mod syntax;
#[cfg(test)]
mod tests;

pub use diagnostic::{Diagnostic, Severity};
pub use parse::{MAX_BYTES, MAX_DEPTH, MAX_STORIES, Parsed, parse};
pub use position::{LineIndex, Position, position};
pub use render::{render, summary};

/// A backlog that holds: ids are unique, dependencies exist, nothing waits for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Backlog {
    pub project: String,
    pub description: String,
    pub stories: Vec<Story>,
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
    /// Lower comes first; stories without one come after those that have it.
    pub priority: Option<f64>,
    /// Commands that have to pass before it is done.
    pub verify: Vec<Gate>,
    /// Attempts before the human is asked, where they are not the run's.
    pub max_attempts: Option<NonZeroU32>,
    /// What else says that it is complete.
    pub signs: Signs,
}

impl Backlog {
    pub fn story(&self, id: &StoryId) -> Option<&Story> {
        self.stories.iter().find(|story| story.id == *id)
    }

    /// Stories that pass.
    pub fn done(&self) -> usize {
        self.stories.iter().filter(|story| story.passes).count()
    }

    /// Stories that neither pass nor were skipped by a human.
    pub fn remaining(&self) -> usize {
        self.stories.iter().filter(|story| !story.is_settled()).count()
    }
}

impl Story {
    /// Nothing is left to do for it: it passes, or a human skipped it.
    pub fn is_settled(&self) -> bool {
        self.passes || self.skipped
    }
}
