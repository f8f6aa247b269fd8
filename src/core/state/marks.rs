//! What passes and what is skipped.

use std::collections::BTreeSet;

use crate::core::backlog::{Backlog, Story};
use crate::core::id::StoryId;

/// The marks of a backlog, as far as they are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub passing: BTreeSet<StoryId>,
    pub skipped: BTreeSet<StoryId>,
}

impl Marks {
    pub fn of(backlog: &Backlog) -> Self {
        let ids = |which: fn(&&Story) -> bool| {
            backlog.stories.iter().filter(which).map(|story| story.id.clone()).collect()
        };
        Self { passing: ids(|story| story.passes), skipped: ids(|story| story.skipped) }
    }

    /// Stories of the backlog that are settled by neither.
    pub fn remaining(&self, backlog: &Backlog) -> usize {
        let is_open =
            |story: &&Story| !self.passing.contains(&story.id) && !self.skipped.contains(&story.id);
        backlog.stories.iter().filter(is_open).count()
    }
}
