//! When an attempt should hand over to a fresh one.

use std::time::Duration;

use crate::model::{ContextUsage, HandoffTrigger};

/// Percent of the model's window.
const FULL: u64 = 70;
/// Percent of a budget.
const SPENT: f64 = 0.8;
/// Failed attempts in a row.
const ERRORS: u32 = 3;
/// Percent of an iteration's time.
const LATE: u128 = 80;

/// Facts about an attempt, now or at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HandoffFacts {
    pub context: Option<ContextUsage>,
    /// Failed attempts in a row, this one included.
    pub errors: u32,
    /// The spent share of its tightest budget, 0 to 1; None without one.
    pub spent: Option<f64>,
    pub stage_reached: bool,
    pub asked: bool,
    pub elapsed: Duration,
    /// None: no limit.
    pub time: Option<Duration>,
}

/// All that apply, in a fixed order.
pub fn triggers(facts: &HandoffFacts) -> Vec<HandoffTrigger> {
    let late = |time: Duration| facts.elapsed.as_millis() * 100 > time.as_millis() * LATE;
    [
        (HandoffTrigger::Context, facts.context.is_some_and(|context| context.share() > FULL)),
        (HandoffTrigger::Errors, facts.errors >= ERRORS),
        (HandoffTrigger::Budget, facts.spent.is_some_and(|spent| spent > SPENT)),
        (HandoffTrigger::PhaseComplete, facts.stage_reached),
        (HandoffTrigger::AskedFor, facts.asked),
        (HandoffTrigger::Time, facts.time.is_some_and(late)),
    ]
    .into_iter()
    .filter_map(|(trigger, holds)| holds.then_some(trigger))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trigger_fires_by_itself_and_not_just_before() {
        let context = |used| HandoffFacts {
            context: Some(ContextUsage { used, window: 1000 }),
            ..HandoffFacts::default()
        };
        let spent = |spent| HandoffFacts { spent: Some(spent), ..HandoffFacts::default() };
        let errors = |errors| HandoffFacts { errors, ..HandoffFacts::default() };
        let late = |secs| HandoffFacts {
            elapsed: Duration::from_secs(secs),
            time: Some(Duration::from_secs(100)),
            ..HandoffFacts::default()
        };
        let hours =
            HandoffFacts { elapsed: Duration::from_secs(36_000), ..HandoffFacts::default() };
        let unknown = HandoffFacts {
            context: Some(ContextUsage { used: 900, window: 0 }),
            ..HandoffFacts::default()
        };
        for (case, facts, fired) in [
            ("nothing", HandoffFacts::default(), &[][..]),
            ("context 71 %", context(710), &[HandoffTrigger::Context]),
            ("context 70 %", context(709), &[]),
            ("an unknown window", unknown, &[]),
            ("three errors", errors(3), &[HandoffTrigger::Errors]),
            ("two errors", errors(2), &[]),
            ("81 % spent", spent(0.81), &[HandoffTrigger::Budget]),
            ("80 % spent", spent(0.8), &[]),
            (
                "a stage",
                HandoffFacts { stage_reached: true, ..HandoffFacts::default() },
                &[HandoffTrigger::PhaseComplete],
            ),
            (
                "asked for",
                HandoffFacts { asked: true, ..HandoffFacts::default() },
                &[HandoffTrigger::AskedFor],
            ),
            ("81 % of the time", late(81), &[HandoffTrigger::Time]),
            ("80 % of the time", late(80), &[]),
            ("long, without a limit", hours, &[]),
            (
                "two at once",
                HandoffFacts { asked: true, ..context(999) },
                &[HandoffTrigger::Context, HandoffTrigger::AskedFor],
            ),
        ] {
            assert_eq!(triggers(&facts), fired, "{case}");
        }
    }
}
