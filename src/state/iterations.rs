//! Iterations: how long they worked, how the recent ones ended, and their health.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{AttemptEnded, Event, EvidenceItem, StoryId, Verdict};

/// Iterations needed before one counts as long.
const ENOUGH: usize = 3;
const LONG: u64 = 3;
/// Recent iterations that are looked at; if half of them failed, health is degraded.
const LAST: usize = 6;
const HALF: u32 = 3;
/// A run is failing if `TOO_MANY` of these failed.
pub const WATCHED: usize = 10;
const TOO_MANY: u32 = 8;

/// How long agents and gates worked, by clocks that stand still while the machine sleeps. Waits and
/// the time between two processes of a run do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkTime {
    pub agents_ms: u64,
    pub gates_ms: u64,
    /// Iterations that count for the average.
    pub iterations: u32,
    pub iterations_ms: u64,
}

impl WorkTime {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AttemptEnded(end) => self.note_attempt(end),
            Event::ClaimChecked { items, .. } => {
                self.gates_ms +=
                    items.iter().map(|EvidenceItem::Gate(one)| one.elapsed_ms).sum::<u64>();
            }
            Event::BaselineTaken { reports, .. } => {
                self.gates_ms += reports.iter().map(|report| report.elapsed_ms).sum::<u64>();
            }
            _ => {}
        }
    }

    fn note_attempt(&mut self, end: &AttemptEnded) {
        self.agents_ms = self.agents_ms.saturating_add(end.elapsed_ms);
        if end.verdict.is_about_the_work() {
            self.iterations += 1;
            self.iterations_ms = self.iterations_ms.saturating_add(end.elapsed_ms);
        }
    }

    pub fn ms(&self) -> u64 {
        self.agents_ms.saturating_add(self.gates_ms)
    }
}

/// How recent iterations ended, newest first: the story, and whether it failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecentResults(Vec<(StoryId, bool)>);

impl RecentResults {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AttemptEnded(end) if end.verdict.is_about_the_work() => {
                let failed = matches!(end.verdict, Verdict::Failed { .. });
                self.0.truncate(WATCHED - 1);
                self.0.insert(0, (end.story.clone(), failed));
            }
            // A claim that counted as success was rejected.
            Event::ClaimRejected { story, .. } | Event::CloseRefused { story, .. } => {
                if let Some((_, failed)) = self.0.iter_mut().find(|(of, _)| of == story) {
                    *failed = true;
                }
            }
            _ => {}
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    #[default]
    Healthy,
    /// Much longer than the others, or half of them fail.
    Degraded,
    /// The agent prints output but makes no progress.
    Stuck,
    /// Nearly all recent ones failed.
    Failing,
    /// It was ended because it was stuck.
    Terminated,
}

impl Health {
    pub fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Stuck => "stuck",
            Self::Failing => "failing",
            Self::Terminated => "terminated",
        }
    }
}

/// `times`: durations of earlier iterations, sorted. `failing`: whether the recent ones failed,
/// newest first, including this one if it is over.
pub fn health(elapsed_ms: u64, times: &[u64], failing: &[bool]) -> Health {
    let failed = |last: usize| Some(failing.get(..last)?.iter().copied().map(u32::from).sum());
    if failed(WATCHED) >= Some(TOO_MANY) {
        return Health::Failing;
    }
    let median = times.get(times.len() / 2).filter(|_| times.len() >= ENOUGH);
    let is_long = median.is_some_and(|median| elapsed_ms > median.saturating_mul(LONG));
    if is_long || failed(LAST) >= Some(HALF) { Health::Degraded } else { Health::Healthy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_iterations_and_frequent_failures_are_noticed() {
        let (good, bad) = (false, true);
        for (elapsed, times, failing, found) in [
            (0, &[][..], &[][..], Health::Healthy),
            (9999, &[10, 20], &[good], Health::Healthy),
            (60, &[10, 20, 30], &[good], Health::Healthy),
            (61, &[10, 20, 30], &[good], Health::Degraded),
            (61, &[10, 20, 30, 40], &[good], Health::Healthy),
            (1, &[0, 0, 0], &[good], Health::Degraded),
            (9, &[10, 20, 30], &[bad, bad, bad, bad, bad], Health::Healthy),
            (9, &[], &[bad, good, bad, good, bad, good], Health::Degraded),
            (9, &[], &[bad, good, bad, good, good, good], Health::Healthy),
            (9, &[], &[bad; 6], Health::Degraded),
            (9, &[], &[bad; 9], Health::Degraded),
            (9, &[], &[bad; 10], Health::Failing),
            (
                9,
                &[],
                &[bad, bad, good, bad, bad, bad, good, bad, bad, bad, good, good],
                Health::Failing,
            ),
            (9, &[], &[bad, bad, good, bad, bad, bad, good, bad, bad, good, bad], Health::Degraded),
        ] {
            assert_eq!(health(elapsed, times, failing), found, "{elapsed} {times:?} {failing:?}");
        }
        assert_eq!(health(u64::MAX, &[u64::MAX; 3], &[]), Health::Healthy);
    }
}
