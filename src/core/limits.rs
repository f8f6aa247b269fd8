//! Why a run stops, in the order in which it is told.

use std::time::Duration;

use super::backlog::{Backlog, Story};
use super::breaker::Phase;
use super::budget::{Level, Purse};
use super::decide::Moment;
use super::event::{AttemptEnded, Event};
use super::evidence::Item;
use super::health::TOO_MANY;
use super::policy::{Policy, StopReason};
use super::select::{Selection, is_ready, select};
use super::state::RunState;
use super::verdict::Verdict;

/// How many iterations an average needs.
const ENOUGH: u32 = 3;

/// What the human bounded, beside the iterations. None: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Errors in a row, over all stories.
    pub max_consecutive_errors: Option<u32>,
    /// So many of the last ten iterations may not fail.
    pub max_failing: Option<u32>,
    /// How long agents and gates may work.
    pub max_run_time: Option<Duration>,
    /// How long an iteration may take on average.
    pub max_average_iteration: Option<Duration>,
    /// How long the run pauses when its breaker opens. None: it has no breaker.
    pub cool_down: Option<Duration>,
    /// The unit of the rest after a failure. None: there is no rest.
    pub backoff: Option<Duration>,
}

impl Limits {
    pub const NONE: Self = Self {
        max_consecutive_errors: None,
        max_failing: None,
        max_run_time: None,
        max_average_iteration: None,
        cool_down: None,
        backoff: None,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_consecutive_errors: Some(5),
            max_failing: Some(TOO_MANY),
            max_run_time: Some(Duration::from_hours(12)),
            max_average_iteration: None,
            cool_down: Some(Duration::from_mins(30)),
            backoff: Some(Duration::from_secs(1)),
        }
    }
}

/// How long was worked, by clocks that stand still while the machine sleeps. Waits, and the time
/// between two processes of a run, are not work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worked {
    pub agents_ms: u64,
    pub gates_ms: u64,
    /// Iterations that say how long one takes.
    pub iterations: u32,
    pub iterations_ms: u64,
}

impl Worked {
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::AttemptEnded(end) => self.note_attempt(end),
            Event::ClaimChecked { items, .. } => {
                self.gates_ms += items.iter().map(|Item::Gate(one)| one.elapsed_ms).sum::<u64>();
            }
            Event::BaselineTaken { reports } => {
                self.gates_ms += reports.iter().map(|report| report.elapsed_ms).sum::<u64>();
            }
            _ => {}
        }
    }

    fn note_attempt(&mut self, end: &AttemptEnded) {
        self.agents_ms = self.agents_ms.saturating_add(end.elapsed_ms);
        let is_whole = !matches!(
            end.verdict,
            Verdict::NotTheStory { .. } | Verdict::PromptTooLong { .. } | Verdict::Interrupted
        );
        if is_whole {
            self.iterations += 1;
            self.iterations_ms = self.iterations_ms.saturating_add(end.elapsed_ms);
        }
    }

    pub fn ms(&self) -> u64 {
        self.agents_ms.saturating_add(self.gates_ms)
    }
}

/// The first that holds, in this order.
pub fn reason(
    state: &RunState,
    backlog: &Backlog,
    policy: &Policy,
    moment: &Moment,
) -> Option<StopReason> {
    settled(backlog, policy)
        .or_else(|| breaker(state, policy))
        .or_else(|| failing(state, backlog, policy))
        .or_else(|| consecutive_errors(state, backlog, policy))
        .or_else(|| used_up(state, policy, moment))
        .or_else(|| iterations(state, policy))
        .or_else(|| run_time(state, policy, moment))
        .or_else(|| average(state, policy))
        .or_else(|| nothing_to_select(state, backlog, policy))
        .or_else(|| state.aborted.then_some(StopReason::Aborted))
}

fn settled(backlog: &Backlog, policy: &Policy) -> Option<StopReason> {
    if backlog.remaining() == 0 {
        return Some(StopReason::AllDone);
    }
    let only = policy.only.as_ref()?;
    let is_settled = backlog.story(only).is_some_and(Story::is_settled);
    is_settled.then(|| StopReason::StoryDone { story: only.clone() })
}

fn breaker(state: &RunState, policy: &Policy) -> Option<StopReason> {
    policy.limits.cool_down?;
    match &state.breaker.phase {
        Phase::Failed { why } => {
            let (why, error) = (why.clone(), state.slump.last_error.clone());
            Some(StopReason::BreakerOpen { why, error })
        }
        Phase::Closed | Phase::Open { .. } | Phase::HalfOpen { .. } => None,
    }
}

/// While others could go on, one story alone cannot reach it: that is a rut's business. What the
/// breaker pauses for is not stopped for.
fn consecutive_errors(state: &RunState, backlog: &Backlog, policy: &Policy) -> Option<StopReason> {
    let limit = policy.limits.max_consecutive_errors?;
    let slump = &state.slump;
    if slump.errors(u32::MAX) < limit {
        return None;
    }
    let has_breaker = policy.limits.cool_down.is_some();
    let breaks =
        state.breaker.phase != Phase::Closed || state.breaker.is_due(slump.breakdowns).is_some();
    if has_breaker && breaks {
        return None;
    }
    let count = slump.errors(most_of_one(state, backlog, policy));
    let error = || slump.last_error.clone();
    (count >= limit).then(|| StopReason::ConsecutiveErrors { limit, error: error() })
}

/// Health is failing: nearly everything goes wrong, though not in a row.
fn failing(state: &RunState, backlog: &Backlog, policy: &Policy) -> Option<StopReason> {
    let limit = policy.limits.max_failing?;
    let failed = state.record.failures(most_of_one(state, backlog, policy))?;
    let error = || state.slump.last_error.clone();
    (failed >= limit).then(|| StopReason::Failing { failed, error: error() })
}

/// While others could go on, one story alone must not end the run.
fn most_of_one(state: &RunState, backlog: &Backlog, policy: &Policy) -> u32 {
    let parked = state.parked();
    let is_other = |story: &&Story| Some(&story.id) != state.slump.story();
    let wanted = |story: &&Story| policy.only.as_ref().is_none_or(|only| *only == story.id);
    let mut others = backlog.stories.iter().filter(is_other).filter(wanted);
    let others_wait = others.any(|story| is_ready(story, backlog, &parked));
    if others_wait { policy.stuck_threshold.get() } else { u32::MAX }
}

fn used_up(state: &RunState, policy: &Policy, moment: &Moment) -> Option<StopReason> {
    let Level { budget, spent, limit, .. } = Purse::of(state, policy, moment).used_up()?;
    Some(StopReason::BudgetUsedUp { budget, spent, limit })
}

fn iterations(state: &RunState, policy: &Policy) -> Option<StopReason> {
    if policy.once && state.attempts > policy.attempts_before {
        return Some(StopReason::Once);
    }
    let limit = policy.max_iterations?;
    (state.iterations >= limit).then_some(StopReason::MaxIterations { limit })
}

/// The attempt under way counts: it is ended at the limit.
pub fn run_time(state: &RunState, policy: &Policy, moment: &Moment) -> Option<StopReason> {
    let limit_ms = millis(policy.limits.max_run_time?);
    let worked_ms = state.worked.ms().saturating_add(moment.busy_ms);
    (worked_ms >= limit_ms).then_some(StopReason::MaxRunTime { limit_ms, worked_ms })
}

fn average(state: &RunState, policy: &Policy) -> Option<StopReason> {
    let limit_ms = millis(policy.limits.max_average_iteration?);
    let worked = &state.worked;
    let average_ms = worked.iterations_ms.checked_div(u64::from(worked.iterations))?;
    let iterations = worked.iterations;
    (iterations >= ENOUGH && average_ms > limit_ms).then_some(StopReason::SlowIterations {
        limit_ms,
        average_ms,
        iterations,
    })
}

fn nothing_to_select(state: &RunState, backlog: &Backlog, policy: &Policy) -> Option<StopReason> {
    let is_wanted = |id: &&_| policy.only.as_ref().is_none_or(|only| only == *id);
    if state.in_tree.as_ref().filter(is_wanted).is_some() {
        return None;
    }
    match select(backlog, &state.parked(), policy.only.as_ref()) {
        Selection::Next(_) => None,
        // With `--story`: that story is not there any more.
        Selection::AllSettled => Some(StopReason::NothingToSelect { blocked: vec![] }),
        Selection::Blocked(blocked) => Some(StopReason::NothingToSelect { blocked }),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
