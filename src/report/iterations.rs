//! The iterations of a run: what is known of each, and what they add up to.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::model::{
    AttemptEnded, AttemptReason, AttemptStarted, IterationResult, StepKind, StoryChange, StoryId,
    Tokens, Usd, shorten,
};
use crate::state::{Health, WATCHED, health};

use super::document::ReportTime;

const MOST_ERRORS: usize = 5;
const LONGEST_ERROR: usize = 500;
const LONGEST_TITLE: usize = 200;

#[derive(Clone, Debug, Serialize)]
pub struct Iteration {
    pub iteration: u32,
    pub attempt: String,
    pub story: StoryId,
    pub title: String,
    pub agent: String,
    pub why: AttemptReason,
    pub phase: IterationPhase,
    pub outcome: Option<IterationResult>,
    pub agent_end: Option<String>,
    pub started_at: ReportTime,
    pub ended_at: Option<ReportTime>,
    pub elapsed_ms: Option<u64>,
    #[serde(flatten)]
    pub usage: IterationUsage,
    pub health: Health,
    pub errors: Vec<String>,
    pub checkpoint: Option<String>,
    pub change: Option<StoryChange>,
    /// Its health, if an event decides about it and not its figures.
    #[serde(skip)]
    known_health: Option<Health>,
}

/// Known when its agent has ended.
#[derive(Clone, Debug, Default, Serialize)]
pub struct IterationUsage {
    tokens: Tokens,
    cost_usd: Option<f64>,
    counted_usd: Option<Usd>,
    model: Option<String>,
    turns: u64,
    tool_calls: u64,
    denied: Vec<String>,
}

/// The phase of an iteration, guessed from what its agent does. Only for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationPhase {
    /// It has not changed anything yet.
    Planning,
    Implementing,
    /// Its tests or ralph's gates run.
    Testing,
    /// It looks at its own changes, or ralph checks its claim.
    Reviewing,
    /// Over, with something left for the next one.
    Handoff,
    /// Its story is closed.
    Complete,
}

/// Words of commands that test something.
const TESTS: [&str; 18] = [
    "test", "tests", "check", "clippy", "lint", "eslint", "pytest", "jest", "vitest", "mocha",
    "rspec", "phpunit", "ctest", "nextest", "tsc", "mypy", "ruff", "tox",
];
/// git commands that show changes.
const REVIEWS: [&str; 4] = ["diff", "status", "show", "log"];

impl IterationPhase {
    /// `what` is one line; of a step that runs a command, it has the command.
    pub fn after(self, kind: StepKind, what: &str) -> Self {
        let runs = kind == StepKind::Run;
        if kind == StepKind::Edit {
            Self::Implementing
        } else if runs && words(what).any(|word| TESTS.contains(&word)) {
            Self::Testing
        } else if runs && self != Self::Planning && looks_at_changes(what) {
            Self::Reviewing
        } else {
            self
        }
    }
}

fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

fn looks_at_changes(command: &str) -> bool {
    let mut words = words(command).skip_while(|word| *word != "git").skip(1);
    words.any(|word| REVIEWS.contains(&word))
}

/// Updated with each event, so that an event costs the same however many iterations there are.
#[derive(Debug, Default)]
pub struct Iterations {
    all: Vec<Iteration>,
    /// Durations of those that count for health, sorted.
    times: Vec<u64>,
    /// Those without an end.
    running: BTreeSet<usize>,
    pub successes: u32,
    pub failures: u32,
    pub errors: u32,
    /// The counted cost of failed iterations.
    pub failed_cost: Usd,
}

impl Iterations {
    /// The latest ones, and how many there are before them. None: all.
    pub fn latest(&self, most: Option<usize>) -> (&[Iteration], usize) {
        let left_out = most.map_or(0, |most| self.all.len().saturating_sub(most));
        (self.all.get(left_out..).unwrap_or_default(), left_out)
    }

    /// Searched for from the end: it is nearly always the last one.
    pub fn of_attempt(&self, attempt: &str) -> Option<usize> {
        self.all.iter().rposition(|iteration| iteration.attempt == attempt)
    }

    pub fn latest_of(&self, story: &StoryId) -> Option<usize> {
        self.all.iter().rposition(|iteration| iteration.story == *story)
    }

    fn at(&mut self, index: Option<usize>) -> Option<&mut Iteration> {
        self.all.get_mut(index?)
    }

    pub fn result(&self, index: Option<usize>) -> Option<IterationResult> {
        self.all.get(index?)?.outcome
    }

    pub fn start(&mut self, start: &AttemptStarted, at: ReportTime) {
        self.running.insert(self.all.len());
        self.all.push(Iteration {
            iteration: start.iteration,
            attempt: start.attempt.clone(),
            story: start.story.clone(),
            title: shorten(&start.title, LONGEST_TITLE),
            agent: start.agent.clone(),
            why: start.why,
            phase: IterationPhase::Planning,
            outcome: None,
            agent_end: None,
            started_at: at,
            ended_at: None,
            elapsed_ms: None,
            usage: IterationUsage::default(),
            health: Health::default(),
            errors: Vec::new(),
            checkpoint: None,
            change: None,
            known_health: None,
        });
    }

    pub fn end(&mut self, index: Option<usize>, end: &AttemptEnded, at: ReportTime) {
        let Some(iteration) = self.at(index) else { return };
        iteration.agent_end = Some(end.outcome.class());
        iteration.ended_at = Some(at);
        iteration.elapsed_ms = Some(end.elapsed_ms);
        iteration.usage = IterationUsage {
            tokens: end.usage.tokens(),
            cost_usd: end.usage.cost_usd,
            counted_usd: Some(end.cost.counted(&end.usage)),
            model: end.model.clone(),
            turns: end.usage.turns,
            tool_calls: end.usage.tool_calls,
            denied: end.denied.keys().cloned().collect(),
        };
        let result = IterationResult::of(&end.verdict);
        if result.counts_for_health() {
            let place = self.times.partition_point(|time| *time <= end.elapsed_ms);
            self.times.insert(place, end.elapsed_ms);
        }
        self.settle(index, result);
    }

    /// Sets or changes an iteration's result.
    pub fn settle(&mut self, index: Option<usize>, result: IterationResult) {
        let Some(iteration) = self.at(index) else { return };
        let before = iteration.outcome.replace(result);
        iteration.phase = match result {
            IterationResult::Claimed => IterationPhase::Reviewing,
            IterationResult::Closed => IterationPhase::Complete,
            _ => IterationPhase::Handoff,
        };
        let (fails, failed) = (result.is_failure(), before.is_some_and(|one| one.is_failure()));
        let cost = iteration.usage.counted_usd.unwrap_or_default();
        self.running.retain(|running| Some(*running) != index);
        if fails && !failed {
            self.failed_cost += cost;
        } else if failed && !fails {
            self.failed_cost = self.failed_cost.rest_after(cost).unwrap_or_default();
        }
        self.successes += u32::from(result == IterationResult::Closed);
        self.failures += u32::from(fails);
        self.successes -= u32::from(before == Some(IterationResult::Closed));
        self.failures -= u32::from(failed);
        self.refresh_health(index);
    }

    /// None: its figures decide.
    pub fn set_health(&mut self, story: &StoryId, known: Option<Health>) {
        let index = self.latest_of(story);
        if let Some(iteration) = self.at(index) {
            iteration.known_health = known;
            iteration.health = known.unwrap_or(iteration.health);
        }
    }

    fn refresh_health(&mut self, index: Option<usize>) {
        let failing = self.failing();
        if let Some(iteration) = index.and_then(|index| self.all.get_mut(index)) {
            let elapsed = iteration.elapsed_ms.unwrap_or_default();
            let by_figures = || health(elapsed, &self.times, &failing);
            iteration.health = iteration.known_health.unwrap_or_else(by_figures);
        }
    }

    /// Whether the last iterations that count for health failed.
    fn failing(&self) -> Vec<bool> {
        let results = self.all.iter().rev().filter_map(|iteration| iteration.outcome);
        let telling = results.filter(|result| result.counts_for_health()).take(WATCHED);
        telling.map(IterationResult::is_failure).collect()
    }

    pub fn note_error(&mut self, index: Option<usize>, error: &str) {
        let Some(iteration) = self.at(index) else { return };
        if iteration.errors.len() < MOST_ERRORS {
            iteration.errors.push(shorten(error, LONGEST_ERROR));
        }
        self.errors += 1;
    }

    pub fn keep(&mut self, index: Option<usize>, name: &str) {
        if let Some(iteration) = self.at(index) {
            iteration.checkpoint = Some(name.to_owned());
        }
    }

    pub fn set_change(&mut self, index: Option<usize>, change: Option<StoryChange>) {
        if let Some(iteration) = self.at(index) {
            iteration.change = change;
        }
    }

    /// The ends of running iterations will not be recorded. Returns how many there were.
    pub fn cut_off(&mut self) -> u32 {
        let running = std::mem::take(&mut self.running);
        for index in running.iter().copied().map(Some) {
            if let Some(iteration) = self.at(index) {
                iteration.elapsed_ms = None;
            }
            self.settle(index, IterationResult::CutOff);
        }
        u32::try_from(running.len()).unwrap_or(u32::MAX)
    }

    /// Updates the figures of running iterations that change with time.
    pub fn refresh(&mut self, now: ReportTime) {
        for index in self.running.clone().into_iter().map(Some) {
            if let Some(iteration) = self.at(index) {
                iteration.elapsed_ms = Some(now.ms_since(iteration.started_at));
            }
            self.refresh_health(index);
        }
    }

    /// Of an iteration with this result. False if nothing changed.
    pub fn set_phase(
        &mut self,
        attempt: &str,
        outcome: Option<IterationResult>,
        next: impl Fn(IterationPhase) -> IterationPhase,
    ) -> bool {
        let index = self.of_attempt(attempt);
        let Some(iteration) = self.at(index).filter(|one| one.outcome == outcome) else {
            return false;
        };
        let phase = next(iteration.phase);
        std::mem::replace(&mut iteration.phase, phase) != phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_follows_the_steps() {
        use IterationPhase::{Implementing, Planning, Reviewing, Testing};
        use StepKind::{Edit, Other, Read, Run};
        for (before, kind, what, after) in [
            (Planning, Read, "Read src/a.rs", Planning),
            (Planning, Read, "Grep test", Planning),
            (Planning, Other, "Task run the tests", Planning),
            (Planning, Run, "Bash ls -la", Planning),
            (Planning, Run, "Bash git log --oneline", Planning),
            (Planning, Edit, "Edit src/a.rs", Implementing),
            // Another agent's tools.
            (Planning, Edit, "apply_patch src/tests.rs", Implementing),
            (Planning, Run, "shell cargo test", Testing),
            (Planning, Run, "cargo test", Testing),
            (Implementing, Read, "Read src/a.rs", Implementing),
            (Implementing, Run, "Bash mkdir x", Implementing),
            (Implementing, Run, "Bash cd web && npm run test:unit", Testing),
            (Implementing, Run, "Bash python -m pytest -q", Testing),
            (Implementing, Run, "Bash cat latest.txt", Implementing),
            (Testing, Run, "Bash ./mvnw -q test", Testing),
            (Testing, Edit, "Edit src/b.rs", Implementing),
            (Testing, Run, "Bash git diff", Reviewing),
            (Implementing, Run, "Bash git -C sub status", Reviewing),
            (Implementing, Run, "Bash diff a b", Implementing),
            (Reviewing, Edit, "Edit src/a.rs", Implementing),
            (Reviewing, Other, "retry 1 of 10: overloaded", Reviewing),
            (Testing, Other, "", Testing),
            (Testing, Run, "Bash", Testing),
        ] {
            assert_eq!(before.after(kind, what), after, "{before:?} {what}");
        }
    }
}
