//! Work that Claude Code goes on with after its result.

use std::collections::BTreeSet;

/// More tasks at once, or longer names of them, are not told apart.
const MAX_TASKS: usize = 64;
const MAX_ID: usize = 64;

/// The tasks that are known to run in the background.
#[derive(Debug, Default)]
pub struct Background {
    running: BTreeSet<String>,
}

/// What an event says about them.
#[derive(Debug, PartialEq, Eq)]
pub enum TaskNews {
    Started(String),
    Ended(String),
    /// These run, and no others.
    Running(Vec<String>),
}

impl Background {
    pub fn take(&mut self, news: TaskNews) {
        match news {
            TaskNews::Started(id) => self.add(id),
            TaskNews::Ended(id) => {
                self.running.remove(&id);
            }
            TaskNews::Running(ids) => {
                self.running.clear();
                ids.into_iter().for_each(|id| self.add(id));
            }
        }
    }

    pub fn count(&self) -> usize {
        self.running.len()
    }

    fn add(&mut self, id: String) {
        if self.running.len() < MAX_TASKS && id.len() <= MAX_ID {
            self.running.insert(id);
        }
    }
}
