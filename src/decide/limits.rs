//! Why a run stops, in order.

use crate::decide::budget::BudgetCheck;
use crate::decide::select::{Selection, is_ready, select};
use crate::decide::situation::Situation;
use crate::model::{Backlog, Because, Blocked, BudgetLevel, StopReason, Story, millis};
use crate::state::{BreakerPhase, RunState, WorkTime};

/// Iterations needed for an average.
const ENOUGH: u32 = 3;

/// The first that applies.
pub fn reason(now: &Situation<'_>) -> Option<StopReason> {
    settled(now)
        .or_else(|| breaker(now))
        .or_else(|| failing(now))
        .or_else(|| consecutive_errors(now))
        .or_else(|| used_up(now))
        .or_else(|| iterations(now))
        .or_else(|| run_time(now))
        .or_else(|| average(now))
        .or_else(|| nothing_to_select(now))
        .or_else(|| now.state.aborted.then_some(StopReason::Aborted))
}

fn settled(now: &Situation<'_>) -> Option<StopReason> {
    // The common case, without checking every story.
    let at_work = now.state.attempts.iter().any(|flight| now.backlog.is_open(&flight.start.story));
    if !at_work && now.backlog.is_settled() {
        let mut blocked = gone(now);
        blocked.extend(red(now));
        return Some(match blocked.is_empty() {
            true => StopReason::AllDone,
            false => StopReason::NothingToSelect { blocked },
        });
    }
    let only = now.policy.only.as_ref()?;
    let is_settled = now.backlog.story(only).is_some_and(Story::is_settled);
    let red = || red(now).collect::<Vec<_>>();
    is_settled.then(|| match red() {
        blocked if blocked.is_empty() => StopReason::StoryDone { story: only.clone() },
        blocked => StopReason::NothingToSelect { blocked },
    })
}

/// A story that disappeared during the run is not done. Without it, the backlog may look complete.
fn gone(now: &Situation<'_>) -> Vec<Blocked> {
    let gone = now.state.gone.iter().filter(|id| now.backlog.story(id).is_none());
    gone.map(|id| Blocked { story: id.clone(), because: Because::Gone }).collect()
}

/// A closed story whose gate fails is not done either, whoever broke it.
fn red<'a>(now: &'a Situation<'_>) -> impl Iterator<Item = Blocked> + use<'a> {
    red_gates(now.state, now.backlog)
}

/// The closed stories of the backlog whose gates fail, and no later story is to blame.
pub fn red_gates<'a>(
    state: &'a RunState,
    backlog: &'a Backlog,
) -> impl Iterator<Item = Blocked> + use<'a> {
    let red = state.gate_results.red_again();
    let red = red.filter(|(id, _)| backlog.story(id).is_some_and(|story| story.passes));
    red.map(|(story, gate)| Blocked {
        story: story.clone(),
        because: Because::Red { gate: gate.to_owned() },
    })
}

fn breaker(now: &Situation<'_>) -> Option<StopReason> {
    now.policy.limits.cool_down?;
    let BreakerPhase::Failed { why } = &now.state.breaker.phase else { return None };
    let (why, error) = (why.clone(), now.state.failures.last_error.clone());
    Some(StopReason::BreakerOpen { why, error })
}

/// While other stories are ready, one story alone cannot reach it: that is stagnation. Errors
/// that open the breaker do not stop the run.
fn consecutive_errors(now: &Situation<'_>) -> Option<StopReason> {
    let (state, policy) = (now.state, now.policy);
    let limit = policy.limits.max_consecutive_errors?;
    let failures = &state.failures;
    if failures.errors(u32::MAX) < limit {
        return None;
    }
    let has_breaker = policy.limits.cool_down.is_some();
    let breaks = state.breaker.phase != BreakerPhase::Closed
        || state.breaker.is_due(failures.breakdowns).is_some();
    if has_breaker && breaks {
        return None;
    }
    let count = failures.errors(max_per_story(now));
    let error = || failures.last_error.clone();
    (count >= limit).then(|| StopReason::ConsecutiveErrors { limit, error: error() })
}

/// Nearly all recent iterations failed, though not in a row.
fn failing(now: &Situation<'_>) -> Option<StopReason> {
    let limit = now.policy.limits.max_failing?;
    let recent = &now.state.recent;
    if recent.failures(u32::MAX)? < limit {
        return None;
    }
    let failed = recent.failures(max_per_story(now))?;
    let error = || now.state.failures.last_error.clone();
    (failed >= limit).then(|| StopReason::Failing { failed, error: error() })
}

/// How often one story may count: while others are ready, it must not end the run alone.
fn max_per_story(now: &Situation<'_>) -> u32 {
    let is_other = |story: &&Story| Some(&story.id) != now.state.failures.story();
    let mut others = now.backlog.stories.iter().filter(is_other);
    let is_asking = |id: &_| now.state.is_asking(id);
    let others_wait =
        others.any(|story| now.is_wanted(&story.id) && is_ready(story, now.backlog, &is_asking));
    if others_wait { now.policy.stuck_threshold.get() } else { u32::MAX }
}

fn used_up(now: &Situation<'_>) -> Option<StopReason> {
    let BudgetLevel { budget, spent, limit, .. } = BudgetCheck::of(now).used_up()?;
    Some(StopReason::BudgetUsedUp { budget, spent, limit })
}

fn iterations(now: &Situation<'_>) -> Option<StopReason> {
    let (attempts, policy) = (&now.state.attempts, now.policy);
    if policy.once && attempts.started > policy.attempts_before {
        return Some(StopReason::Once);
    }
    let limit = policy.max_iterations?;
    (attempts.iterations >= limit).then_some(StopReason::MaxIterations { limit })
}

/// Running attempts count: they are ended at the limit.
pub fn run_time(now: &Situation<'_>) -> Option<StopReason> {
    let limit_ms = millis(now.policy.limits.max_run_time?);
    let worked_ms = now.state.work_time.ms().saturating_add(now.observed.busy_ms);
    (worked_ms >= limit_ms).then_some(StopReason::MaxRunTime { limit_ms, worked_ms })
}

fn average(now: &Situation<'_>) -> Option<StopReason> {
    let limit_ms = millis(now.policy.limits.max_average_iteration?);
    let WorkTime { iterations, iterations_ms, .. } = now.state.work_time;
    let average_ms = iterations_ms.checked_div(u64::from(iterations))?;
    let is_slow = iterations >= ENOUGH && average_ms > limit_ms;
    is_slow.then_some(StopReason::SlowIterations { limit_ms, average_ms, iterations })
}

fn nothing_to_select(now: &Situation<'_>) -> Option<StopReason> {
    if now.state.lanes.iter().any(|(_, story)| now.is_wanted(story)) {
        return None;
    }
    let is_parked = |id: &_| now.state.is_parked(id);
    match select(now.backlog, &is_parked, now.policy.only.as_ref()) {
        Selection::Next(_) => None,
        // With `--story`: that story is gone.
        Selection::AllSettled => Some(StopReason::NothingToSelect { blocked: gone(now) }),
        Selection::Blocked(mut blocked) => {
            blocked.extend(gone(now));
            blocked.extend(red(now));
            Some(StopReason::NothingToSelect { blocked })
        }
    }
}

#[cfg(test)]
mod tests;
