//! Iterations in a row that came to nothing, over all stories.
//!
//! What the service's bad days are is `weather`'s business: they are neither errors nor successes
//! here.

use std::time::Duration;

use super::event::AttemptEnded;
use super::id::StoryId;
use super::outcome::Outcome;
use super::verdict::Verdict;

/// A breakdown within this time had no time for any work.
const AT_ONCE_MS: u64 = 10_000;
/// So many alike are no accident.
pub const AT_ONCE: u32 = 3;
const LONGEST_BACK_OFF: Duration = Duration::from_mins(1);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slump {
    /// Errors in a row, by the stories they came in; the latest story is the last.
    errors: Vec<(StoryId, u32)>,
    /// Errors and iterations that did nothing, in a row.
    failures: u32,
    /// Agents in a row that broke down: their process, not their work.
    pub breakdowns: u32,
    /// The error that agents break down with at once, and how often in a row.
    at_once: Option<(String, u32)>,
    pub last_error: String,
    last_at: i64,
    /// The human does not want to wait after the last one.
    cut_short: bool,
}

impl Slump {
    /// Of a claim, what becomes of it tells.
    pub fn ended(&mut self, end: &AttemptEnded, at: i64) {
        match &end.verdict {
            Verdict::Progress | Verdict::Escalated { .. } => *self = Self::default(),
            Verdict::Done => {
                self.breakdowns = 0;
                self.at_once = None;
            }
            Verdict::Failed { error, fingerprint } => {
                self.note_breakdown(end, fingerprint);
                if end.did_nothing() {
                    self.come_to_nothing(error, at);
                } else {
                    self.fail(&end.story, error, at);
                }
            }
            Verdict::NotTheStory { .. } | Verdict::PromptTooLong { .. } | Verdict::Interrupted => {}
        }
    }

    /// An iteration went wrong.
    pub fn fail(&mut self, story: &StoryId, error: &str, at: i64) {
        self.come_to_nothing(error, at);
        let before = self.errors.iter().position(|(known, _)| known == story);
        let count = before.map_or(0, |place| self.errors.remove(place).1);
        self.errors.push((story.clone(), count + 1));
    }

    fn come_to_nothing(&mut self, error: &str, at: i64) {
        self.failures += 1;
        self.last_at = at;
        self.cut_short = false;
        error.clone_into(&mut self.last_error);
    }

    fn note_breakdown(&mut self, end: &AttemptEnded, fingerprint: &str) {
        if !is_breakdown(end) {
            self.breakdowns = 0;
            self.at_once = None;
            return;
        }
        self.breakdowns += 1;
        let before = match self.at_once.take() {
            Some((same, count)) if same == fingerprint => count,
            _ => 0,
        };
        if end.elapsed_ms < AT_ONCE_MS {
            self.at_once = Some((fingerprint.to_owned(), before + 1));
        }
    }

    /// Agents that end alike before they could do anything: the next would too.
    pub fn at_once(&self) -> Option<u32> {
        self.at_once.as_ref().map(|(_, count)| *count).filter(|count| *count >= AT_ONCE)
    }

    /// Errors in a row; of one story no more than `most_of_one`.
    pub fn errors(&self, most_of_one: u32) -> u32 {
        self.errors.iter().map(|(_, count)| (*count).min(most_of_one)).sum()
    }

    /// The story of the last one.
    pub fn story(&self) -> Option<&StoryId> {
        self.errors.last().map(|(story, _)| story)
    }

    /// Not before this moment: min(2^n, 60) seconds after the last failure, in units of `unit`.
    pub fn rests_until(&self, unit: Option<Duration>) -> Option<i64> {
        let unit = unit.filter(|_| self.failures > 0 && !self.cut_short)?;
        let factor = 2_u32.checked_pow(self.failures).unwrap_or(u32::MAX);
        let rest = unit.saturating_mul(factor).min(LONGEST_BACK_OFF);
        Some(self.last_at + i64::try_from(rest.as_millis()).unwrap_or_default())
    }

    pub fn cut_short(&mut self) {
        self.cut_short = true;
    }
}

/// The agent's process went away, fell silent or never worked; that says nothing about the story.
fn is_breakdown(end: &AttemptEnded) -> bool {
    match &end.outcome {
        Outcome::NoResult { .. } | Outcome::KilledBySomeoneElse { .. } | Outcome::IdleTimeout => {
            true
        }
        Outcome::AgentError { .. } => end.usage.turns == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
