//! What the last attempts taught: a bounded number of bounded texts, for the next one.

use super::event::{AttemptEnded, Event};
use super::id::StoryId;
use super::text::both_ends;
use super::verdict::Verdict;

/// What is kept of each kind, however much is asked for.
pub const MOST_KEPT: usize = 20;
/// In characters.
pub const LONGEST_KEPT: usize = 2000;

/// How much of it an agent is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub outcomes: usize,
    pub errors: usize,
    pub worked: usize,
    /// Characters of one entry.
    pub entry: usize,
    /// Characters of all of them.
    pub total: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { outcomes: 5, errors: 5, worked: 3, entry: 500, total: 5000 }
    }
}

/// Of every story, oldest first. Every text in it is data from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub outcomes: Vec<Entry>,
    pub errors: Vec<Entry>,
    pub worked: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub story: StoryId,
    pub iteration: u32,
    pub what: String,
    /// The agent's last words.
    pub said: String,
}

impl Memory {
    /// `iteration` is the one under way, or the last.
    pub fn note(&mut self, event: &Event, iteration: u32) {
        match event {
            Event::AttemptEnded(end) => self.note_end(end, iteration),
            Event::ClaimRejected { story, error, .. }
            | Event::CloseRefused { story, error, .. } => {
                self.settle(story, "it claimed to be complete, and was not");
                self.note_error(story, iteration, error);
            }
            Event::StoryClosed(closed) => {
                let said = self.settle(&closed.story, "complete");
                let what = "complete, and committed".to_owned();
                let story = closed.story.clone();
                push(&mut self.worked, Entry { story, iteration, what, said });
            }
            _ => {}
        }
    }

    fn note_end(&mut self, end: &AttemptEnded, iteration: u32) {
        let what = match &end.verdict {
            Verdict::Done => "it says that it is complete".to_owned(),
            Verdict::Progress => "not complete yet".to_owned(),
            Verdict::Escalated { escalation } => format!("it asked: {}", escalation.summary),
            Verdict::Failed { error, .. } => {
                self.note_error(&end.story, iteration, error);
                let first = error.lines().next().unwrap_or_default();
                format!("it failed: {first}")
            }
            // They say nothing about the work.
            Verdict::NotTheStory { .. } | Verdict::PromptTooLong { .. } | Verdict::Interrupted => {
                return;
            }
        };
        let (story, said) = (end.story.clone(), end.said.clone().unwrap_or_default());
        push(&mut self.outcomes, Entry { story, iteration, what, said });
    }

    /// The same error again is the same entry, and the newest.
    fn note_error(&mut self, story: &StoryId, iteration: u32, error: &str) {
        let error = both_ends(error, LONGEST_KEPT);
        self.errors.retain(|known| known.what != error);
        let entry = Entry { story: story.clone(), iteration, what: error, said: String::new() };
        push(&mut self.errors, entry);
    }

    /// What a claim came to in the end; what its agent said.
    fn settle(&mut self, story: &StoryId, what: &str) -> String {
        let last = self.outcomes.iter_mut().rfind(|entry| entry.story == *story);
        last.map(|entry| {
            what.clone_into(&mut entry.what);
            entry.said.clone()
        })
        .unwrap_or_default()
    }
}

fn push(list: &mut Vec<Entry>, entry: Entry) {
    let (what, said) = (both_ends(&entry.what, LONGEST_KEPT), both_ends(&entry.said, LONGEST_KEPT));
    list.push(Entry { what, said, ..entry });
    if list.len() > MOST_KEPT {
        list.remove(0);
    }
}

#[cfg(test)]
mod tests;
