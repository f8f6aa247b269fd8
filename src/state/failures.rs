//! Failed iterations in a row, over all stories.
//!
//! Faults of the service (`state::service`) count as neither failures nor successes.

use std::time::Duration;

use crate::model::{AttemptEnded, Event, Outcome, Recorded, StoryId, Verdict, Wait, WaitFor};

/// A breakdown within this time came before any work.
const AT_ONCE_MS: u64 = 10_000;
/// This many equal ones stop the run.
pub const AT_ONCE: u32 = 3;
const LONGEST_BACK_OFF: Duration = Duration::from_mins(1);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailureStreak {
    /// Errors in a row, by story; the latest story is the last.
    errors: Vec<(StoryId, u32)>,
    /// Errors and iterations that did nothing, in a row.
    failures: u32,
    /// Agents in a row whose process failed, not their work.
    pub breakdowns: u32,
    /// The error of agents that break down at once, and how often in a row.
    at_once: Option<(String, u32)>,
    pub last_error: String,
    last_at: i64,
    /// The human skipped the wait after the last one.
    cut_short: bool,
    /// Attempts that the run had started at the last failed one. Those fail for the same reason, so
    /// that only the first of them counts as an agent that failed.
    wave: u32,
}

impl FailureStreak {
    pub fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::ClaimRejected { story, error, .. }
            | Event::CloseRefused { story, error, .. } => {
                self.note_failure(error, recorded.at, true);
                self.note_error(story);
            }
            Event::StoryClosed(_) => *self = Self::default(),
            Event::WaitCutShort => self.cut_short = true,
            _ => {}
        }
    }

    /// A claim counts when it is decided. `number`: the attempt's among the `started` of the run.
    pub fn ended(&mut self, end: &AttemptEnded, number: u32, started: u32, at: i64) {
        match &end.verdict {
            Verdict::Progress | Verdict::Escalated { .. } => *self = Self::default(),
            Verdict::Done => {
                self.breakdowns = 0;
                self.at_once = None;
            }
            Verdict::Failed { error, fingerprint } => {
                let is_first = number > self.wave;
                self.wave = started;
                self.note_breakdown(end, fingerprint, is_first);
                self.note_failure(error, at, is_first);
                if !end.did_nothing() {
                    self.note_error(&end.story);
                }
            }
            Verdict::NotTheStory { .. } | Verdict::PromptTooLong { .. } | Verdict::Interrupted => {}
        }
    }

    fn note_error(&mut self, story: &StoryId) {
        let before = self.errors.iter().position(|(known, _)| known == story);
        let count = before.map_or(0, |place| self.errors.remove(place).1);
        self.errors.push((story.clone(), count + 1));
    }

    fn note_failure(&mut self, error: &str, at: i64, is_first: bool) {
        self.failures += u32::from(is_first);
        self.last_at = at;
        self.cut_short = false;
        error.clone_into(&mut self.last_error);
    }

    fn note_breakdown(&mut self, end: &AttemptEnded, fingerprint: &str, is_first: bool) {
        if !is_breakdown(end) {
            self.breakdowns = 0;
            self.at_once = None;
            return;
        }
        self.breakdowns += u32::from(is_first);
        let before = self.at_once.take().filter(|(error, _)| error == fingerprint);
        if end.elapsed_ms < AT_ONCE_MS {
            let count = before.map_or(1, |(_, count)| count + u32::from(is_first));
            self.at_once = Some((fingerprint.to_owned(), count));
        }
    }

    /// Agents that break down the same way before any work: the next would too.
    pub fn at_once(&self) -> Option<u32> {
        self.at_once.as_ref().map(|(_, count)| *count).filter(|count| *count >= AT_ONCE)
    }

    /// Errors in a row, at most `max_per_story` of each story.
    pub fn errors(&self, max_per_story: u32) -> u32 {
        self.errors.iter().map(|(_, count)| (*count).min(max_per_story)).sum()
    }

    /// The story of the last error.
    pub fn story(&self) -> Option<&StoryId> {
        self.errors.last().map(|(story, _)| story)
    }

    /// min(2^n, 60) `unit`s after the last failure, so that fast failures do not repeat quickly.
    pub fn wait(&self, unit: Option<Duration>, now: i64) -> Option<Wait> {
        let unit = unit.filter(|_| self.failures > 0 && !self.cut_short)?;
        let factor = 2_u32.checked_pow(self.failures).unwrap_or(u32::MAX);
        let rest = unit.saturating_mul(factor).min(LONGEST_BACK_OFF);
        let until = self.last_at + i64::try_from(rest.as_millis()).unwrap_or_default();
        let error = self.last_error.clone();
        (now < until).then_some(Wait { what: WaitFor::Retry, error, until })
    }
}

/// The agent's process crashed, was killed or fell silent; not a fault of the story.
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
