//! When an attempt should hand over to a fresh one, and what it leaves behind.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Percent of the model's window that an agent may fill before it should wrap up.
const FULL: u64 = 70;
/// Percent of a budget that may be spent before.
const SPENT: f64 = 0.8;
/// So many failed attempts in a row.
const ERRORS: u32 = 3;
/// Percent of the time that an iteration has.
const LATE: u128 = 80;

/// Why a fresh agent should go on instead of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The context is over 70 % of the model's window.
    Context,
    /// Three failed attempts in a row.
    Errors,
    /// Over 80 % of a budget is spent.
    Budget,
    /// A stage was reached.
    PhaseComplete,
    /// The agent handed over by itself, or the human wants it.
    AskedFor,
    /// Over 80 % of the time that an iteration has.
    Time,
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Context => "its context was over 70 % full",
            Self::Errors => "three attempts failed in a row",
            Self::Budget => "over 80 % of the budget was spent",
            Self::PhaseComplete => "a stage was reached",
            Self::AskedFor => "it was asked for",
            Self::Time => "its time was nearly over",
        })
    }
}

/// How full an agent's context was, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    pub used: u64,
    /// Of the model.
    pub window: u64,
}

impl Context {
    /// In percent; 0 when the window is not known.
    pub fn share(self) -> u64 {
        self.used.saturating_mul(100).checked_div(self.window).unwrap_or_default()
    }
}

/// What is known of an attempt, now or at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    pub context: Option<Context>,
    /// Failed attempts in a row, this one included.
    pub errors: u32,
    /// The part of its tightest budget that is spent, 0 to 1; None without one.
    pub spent: Option<f64>,
    pub stage_reached: bool,
    pub asked: bool,
    pub elapsed: Duration,
    /// None: there is no limit.
    pub time: Option<Duration>,
}

/// All that hold, in a fixed order.
pub fn triggers(facts: &Facts) -> Vec<Trigger> {
    let late = |time: Duration| facts.elapsed.as_millis() * 100 > time.as_millis() * LATE;
    [
        (Trigger::Context, facts.context.is_some_and(|context| context.share() > FULL)),
        (Trigger::Errors, facts.errors >= ERRORS),
        (Trigger::Budget, facts.spent.is_some_and(|spent| spent > SPENT)),
        (Trigger::PhaseComplete, facts.stage_reached),
        (Trigger::AskedFor, facts.asked),
        (Trigger::Time, facts.time.is_some_and(late)),
    ]
    .into_iter()
    .filter_map(|(trigger, holds)| holds.then_some(trigger))
    .collect()
}

/// What a story changed so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub files: Vec<FileChange>,
    /// How many more there are.
    pub more: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    pub added: usize,
    pub removed: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trigger_fires_by_itself_and_not_just_before() {
        let context =
            |used| Facts { context: Some(Context { used, window: 1000 }), ..Facts::default() };
        let spent = |spent| Facts { spent: Some(spent), ..Facts::default() };
        let errors = |errors| Facts { errors, ..Facts::default() };
        let late = |secs| Facts {
            elapsed: Duration::from_secs(secs),
            time: Some(Duration::from_secs(100)),
            ..Facts::default()
        };
        let hours = Facts { elapsed: Duration::from_secs(36_000), ..Facts::default() };
        let unknown = Facts { context: Some(Context { used: 900, window: 0 }), ..Facts::default() };
        for (case, facts, fired) in [
            ("nothing", Facts::default(), &[][..]),
            ("context 71 %", context(710), &[Trigger::Context]),
            ("context 70 %", context(709), &[]),
            ("an unknown window", unknown, &[]),
            ("three errors", errors(3), &[Trigger::Errors]),
            ("two errors", errors(2), &[]),
            ("81 % spent", spent(0.81), &[Trigger::Budget]),
            ("80 % spent", spent(0.8), &[]),
            (
                "a stage",
                Facts { stage_reached: true, ..Facts::default() },
                &[Trigger::PhaseComplete],
            ),
            ("asked for", Facts { asked: true, ..Facts::default() }, &[Trigger::AskedFor]),
            ("81 % of the time", late(81), &[Trigger::Time]),
            ("80 % of the time", late(80), &[]),
            ("long, without a limit", hours, &[]),
            (
                "two at once",
                Facts { asked: true, ..context(999) },
                &[Trigger::Context, Trigger::AskedFor],
            ),
        ] {
            assert_eq!(triggers(&facts), fired, "{case}");
        }
    }
}
