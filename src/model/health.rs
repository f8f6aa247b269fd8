//! The health of iterations.

use serde::{Deserialize, Serialize};

/// Iterations needed before one counts as long.
const ENOUGH: usize = 3;
const LONG: u64 = 3;
/// Recent iterations that are looked at; if half of them failed, health is degraded.
const LAST: usize = 6;
/// A run is failing if `TOO_MANY` of these failed.
pub const WATCHED: usize = 10;
pub const TOO_MANY: u32 = 8;

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
    if is_failing(failing) {
        return Health::Failing;
    }
    let median = times.get(times.len() / 2).filter(|_| times.len() >= ENOUGH);
    let is_long = median.is_some_and(|median| elapsed_ms > median.saturating_mul(LONG));
    let last = failing.get(..LAST).unwrap_or_default();
    let fails_often = !last.is_empty() && count(last) * 2 >= last.len();
    if is_long || fails_often { Health::Degraded } else { Health::Healthy }
}

fn is_failing(failing: &[bool]) -> bool {
    let too_many = usize::try_from(TOO_MANY).unwrap_or(usize::MAX);
    failing.get(..WATCHED).is_some_and(|last| count(last) >= too_many)
}

fn count(failing: &[bool]) -> usize {
    failing.iter().filter(|failed| **failed).count()
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
