//! How far the backlog is: `3/5 complete, 1 skipped (1 remaining)`.

use std::fmt;

use crate::core::backlog::Backlog;

pub struct Counts {
    pub all: usize,
    pub complete: usize,
    pub skipped: usize,
}

impl Counts {
    pub fn of(backlog: &Backlog) -> Self {
        let stories = &backlog.stories;
        let complete = backlog.done();
        let skipped = stories.iter().filter(|story| story.skipped && !story.passes).count();
        Self { all: stories.len(), complete, skipped }
    }

    pub fn remaining(&self) -> usize {
        self.all.saturating_sub(self.complete + self.skipped)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} complete", self.complete, self.all)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        write!(f, " ({} remaining)", self.remaining())
    }
}
