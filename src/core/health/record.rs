//! How the last iterations of a run ended.

use std::collections::BTreeMap;

use super::{Health, WATCHED, health};
use crate::core::id::StoryId;

/// The newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record(Vec<(StoryId, bool)>);

impl Record {
    pub fn note(&mut self, story: &StoryId, failed: bool) {
        self.0.truncate(WATCHED - 1);
        self.0.insert(0, (story.clone(), failed));
    }

    /// What looked good was not.
    pub fn correct(&mut self, story: &StoryId) {
        if let Some((_, failed)) = self.0.iter_mut().find(|(of, _)| of == story) {
            *failed = true;
        }
    }

    /// As far as failures tell.
    pub fn health(&self) -> Health {
        let failing: Vec<bool> = self.0.iter().map(|(_, failed)| *failed).collect();
        health(0, &[], &failing)
    }

    /// How many of the last ten failed, of one story no more than `most_of_one`; None before there
    /// are ten.
    pub fn failures(&self, most_of_one: u32) -> Option<u32> {
        if self.0.len() < WATCHED {
            return None;
        }
        let mut of = BTreeMap::<&StoryId, u32>::new();
        for (story, _) in self.0.iter().filter(|(_, failed)| *failed) {
            *of.entry(story).or_default() += 1;
        }
        Some(of.values().map(|count| (*count).min(most_of_one)).sum())
    }
}
