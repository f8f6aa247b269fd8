//! The iterations of a run.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{AttemptEnded, AttemptStarted, StoryId, Usd, shorten};
use crate::state::{Health, WATCHED, health};

use super::document::{Iteration, IterationResult, ReportTime, TokenTotals};
use super::phase::IterationPhase;

const MOST_ERRORS: usize = 5;
const LONGEST_ERROR: usize = 500;
const LONGEST_TITLE: usize = 200;

/// Adds up as iterations start and end, so that an event costs the same however many there are.
#[derive(Debug, Default)]
pub struct Iterations {
    all: Vec<Iteration>,
    /// Durations of those that say something, sorted.
    times: Vec<u64>,
    /// Those without an end.
    running: BTreeSet<usize>,
    /// The health of some is known from an event, not from their figures.
    known: BTreeMap<usize, Health>,
    pub successes: u32,
    pub failures: u32,
    pub errors: u32,
    /// The counted cost of failed iterations.
    pub failed_cost: Usd,
}

impl Iterations {
    /// Without the first ones.
    pub fn after(&self, left_out: usize) -> &[Iteration] {
        self.all.get(left_out..).unwrap_or_default()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn of_attempt(&self, attempt: &str) -> Option<usize> {
        self.position(|iteration| iteration.attempt == attempt)
    }

    pub fn latest_of(&self, story: &StoryId) -> Option<usize> {
        self.position(|iteration| iteration.story == *story)
    }

    /// Searches from the end: it is nearly always the last one.
    fn position(&self, is_it: impl Fn(&Iteration) -> bool) -> Option<usize> {
        self.all.iter().rposition(is_it)
    }

    fn at(&mut self, index: Option<usize>) -> Option<&mut Iteration> {
        self.all.get_mut(index?)
    }

    pub fn outcome(&self, index: Option<usize>) -> Option<IterationResult> {
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
            tokens: TokenTotals::default(),
            cost_usd: None,
            counted_usd: None,
            model: None,
            turns: 0,
            tool_calls: 0,
            health: Health::default(),
            errors: Vec::new(),
            checkpoint: None,
        });
    }

    pub fn end(&mut self, index: Option<usize>, end: &AttemptEnded, at: ReportTime) {
        let Some(iteration) = self.at(index) else { return };
        iteration.agent_end = Some(end.outcome.class());
        iteration.ended_at = Some(at);
        iteration.elapsed_ms = Some(end.elapsed_ms);
        iteration.tokens = TokenTotals::from(&end.usage);
        iteration.cost_usd = end.usage.cost_usd;
        iteration.counted_usd = Some(end.bill.counted(&end.usage));
        iteration.model.clone_from(&end.model);
        iteration.turns = end.usage.turns;
        iteration.tool_calls = end.usage.tool_calls;
        let came = IterationResult::of(&end.verdict);
        if came.says_something() {
            let place = self.times.partition_point(|time| *time <= end.elapsed_ms);
            self.times.insert(place, end.elapsed_ms);
        }
        let phase = if came == IterationResult::Claimed {
            IterationPhase::Reviewing
        } else {
            IterationPhase::Handoff
        };
        self.settle(index, came, phase);
    }

    /// Sets or changes an iteration's outcome.
    pub fn settle(&mut self, index: Option<usize>, came: IterationResult, phase: IterationPhase) {
        let Some(iteration) = self.at(index) else { return };
        let before = iteration.outcome.replace(came);
        iteration.phase = phase;
        let elapsed = iteration.elapsed_ms.unwrap_or_default();
        let (fails, failed) = (came.is_failure(), before.is_some_and(IterationResult::is_failure));
        let cost = iteration.counted_usd.unwrap_or_default();
        self.running.retain(|running| Some(*running) != index);
        if fails && !failed {
            self.failed_cost += cost;
        } else if failed && !fails {
            self.failed_cost = self.failed_cost.rest_after(cost).unwrap_or_default();
        }
        self.successes += u32::from(came == IterationResult::Closed);
        self.failures += u32::from(fails);
        self.successes -= u32::from(before == Some(IterationResult::Closed));
        self.failures -= u32::from(failed);
        let health = self.health(index, elapsed);
        if let Some(iteration) = self.at(index) {
            iteration.health = health;
        }
    }

    /// None: its figures decide.
    pub fn set_health(&mut self, story: &StoryId, known: Option<Health>) {
        let Some(index) = self.latest_of(story) else { return };
        let Some(health) = known else {
            self.known.remove(&index);
            return;
        };
        self.known.insert(index, health);
        if let Some(iteration) = self.all.get_mut(index) {
            iteration.health = health;
        }
    }

    fn health(&self, index: Option<usize>, elapsed_ms: u64) -> Health {
        let known = index.and_then(|index| self.known.get(&index).copied());
        known.unwrap_or_else(|| health(elapsed_ms, &self.times, &self.failing()))
    }

    /// Whether the last iterations that say something failed.
    fn failing(&self) -> Vec<bool> {
        let outcomes = self.all.iter().rev().filter_map(|iteration| iteration.outcome);
        let telling = outcomes.filter(|came| came.says_something()).take(WATCHED);
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

    /// The ends of running iterations will not be recorded. Returns how many there were.
    pub fn cut_off(&mut self) -> u32 {
        let running = std::mem::take(&mut self.running);
        for index in &running {
            if let Some(iteration) = self.all.get_mut(*index) {
                iteration.elapsed_ms = None;
            }
            self.settle(Some(*index), IterationResult::CutOff, IterationPhase::Handoff);
        }
        u32::try_from(running.len()).unwrap_or(u32::MAX)
    }

    /// Updates the figures of running iterations that change with time.
    pub fn refresh(&mut self, now: ReportTime) {
        for index in self.running.clone() {
            let started = self.all.get(index).map(|iteration| iteration.started_at);
            let elapsed = started.map(|started| now.ms_since(started)).unwrap_or_default();
            let health = self.health(Some(index), elapsed);
            if let Some(iteration) = self.all.get_mut(index) {
                iteration.elapsed_ms = Some(elapsed);
                iteration.health = health;
            }
        }
    }

    /// Of an attempt with this outcome. False if nothing changed.
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
