//! Recent results, errors and successes for prompts: a limited number of limited texts.

use crate::model::{AttemptEnded, Event, LONGEST_KEPT, MOST_KEPT, StoryId, Verdict, both_ends};

/// Of all stories, oldest first. Its texts are untrusted.
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
    /// The agent's last text.
    pub said: String,
}

impl Memory {
    /// `iteration` is the number of the story's attempt.
    pub fn apply(&mut self, event: &Event, iteration: u32) {
        match event {
            Event::AttemptEnded(end) => self.note_end(end, iteration),
            Event::ClaimRejected { story, error, .. }
            | Event::CloseRefused { story, error, .. } => {
                self.settle(story, "it claimed the story, but the claim was rejected");
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
            Verdict::Done => "it claimed the story".to_owned(),
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

    /// A repeated error is one entry, the newest.
    fn note_error(&mut self, story: &StoryId, iteration: u32, error: &str) {
        let error = both_ends(error, LONGEST_KEPT);
        self.errors.retain(|known| known.what != error);
        let entry = Entry { story: story.clone(), iteration, what: error, said: String::new() };
        push(&mut self.errors, entry);
    }

    /// Sets how a claim was decided; returns what its agent said.
    fn settle(&mut self, story: &StoryId, what: &str) -> String {
        let last = self.outcomes.iter_mut().rfind(|entry| entry.story == *story);
        let Some(entry) = last else { return String::new() };
        what.clone_into(&mut entry.what);
        entry.said.clone()
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
