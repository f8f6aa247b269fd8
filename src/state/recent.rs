//! How recent iterations ended.

use std::collections::BTreeMap;

use crate::model::{Event, Health, StoryId, Verdict, WATCHED, health};

/// Newest first: the story, and whether it failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecentOutcomes(Vec<(StoryId, bool)>);

impl RecentOutcomes {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AttemptEnded(end) => match &end.verdict {
                Verdict::Progress | Verdict::Escalated { .. } | Verdict::Done => {
                    self.note(&end.story, false);
                }
                Verdict::Failed { .. } => self.note(&end.story, true),
                _ => {}
            },
            Event::ClaimRejected { story, .. } | Event::CloseRefused { story, .. } => {
                self.correct(story);
            }
            _ => {}
        }
    }

    fn note(&mut self, story: &StoryId, failed: bool) {
        self.0.truncate(WATCHED - 1);
        self.0.insert(0, (story.clone(), failed));
    }

    /// A claim that counted as success was rejected.
    fn correct(&mut self, story: &StoryId) {
        if let Some((_, failed)) = self.0.iter_mut().find(|(of, _)| of == story) {
            *failed = true;
        }
    }

    /// By failures alone.
    pub fn health(&self) -> Health {
        let failing: Vec<bool> = self.0.iter().map(|(_, failed)| *failed).collect();
        health(0, &[], &failing)
    }

    /// How many of the last ten failed, at most `max_per_story` of each story; None before ten.
    pub fn failures(&self, max_per_story: u32) -> Option<u32> {
        if self.0.len() < WATCHED {
            return None;
        }
        let mut of = BTreeMap::<&StoryId, u32>::new();
        for (story, _) in self.0.iter().filter(|(_, failed)| *failed) {
            *of.entry(story).or_default() += 1;
        }
        Some(of.values().map(|count| (*count).min(max_per_story)).sum())
    }
}
