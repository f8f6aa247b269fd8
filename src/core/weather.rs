//! The service's bad days: failures that say nothing about the story.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::policy::{OnLimit, StopReason};

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// A limit's end is believed from a minute to eight days ahead.
const SHORTEST_LIMIT: i64 = MINUTE;
const LONGEST_LIMIT: i64 = 8 * 24 * HOUR;
/// When a limit does not say when it ends.
const UNSTATED_LIMIT: i64 = 15 * MINUTE;
/// So that not everybody comes back in the same second.
const JITTER: i64 = 30 * SECOND;
/// Failures in a row that are tried again soon and do not count as iterations.
const SOON: u32 = 10;
const LATER: i64 = 5 * MINUTE;
const LONGEST_OUTAGE: i64 = 2 * HOUR;
/// Agents in a row that say nothing at all.
const MOST_SILENT: u32 = 3;

/// What kind of bad day it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "trouble", rename_all = "snake_case")]
pub enum Trouble {
    /// Seconds since the Unix epoch.
    Limit {
        resets_at: Option<i64>,
    },
    Outage,
    Silence,
    /// Login or billing: the next story would fail too.
    Account,
    /// The agent cannot be started, or not with this model.
    Setup,
}

/// The same trouble, one attempt after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub trouble: Trouble,
    pub error: String,
    pub count: u32,
    pub first_at: i64,
    pub last_at: i64,
    /// The human does not want to wait after the last of them.
    pub cut_short: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Try again.
    Fine,
    /// Not before this moment (milliseconds since the epoch).
    WaitUntil(i64),
    Stop(StopReason),
}

impl Trouble {
    pub fn of(outcome: &Outcome) -> Option<Self> {
        Some(match outcome {
            Outcome::UsageLimit { resets_at, .. } => Self::Limit { resets_at: *resets_at },
            Outcome::Overloaded { .. }
            | Outcome::ServerError { .. }
            | Outcome::Connection { .. } => Self::Outage,
            Outcome::FirstEventTimeout => Self::Silence,
            Outcome::Login { .. } | Outcome::Billing { .. } => Self::Account,
            Outcome::ModelNotFound { .. } | Outcome::SpawnFailed { .. } => Self::Setup,
            _ => return None,
        })
    }

    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Row {
    pub fn after(before: Option<Self>, trouble: &Trouble, error: &str, at: i64) -> Self {
        let (count, first_at) = match before {
            Some(row) if row.trouble.is_like(trouble) => (row.count, row.first_at),
            _ => (0, at),
        };
        Self {
            trouble: trouble.clone(),
            error: error.to_owned(),
            count: count + 1,
            first_at,
            last_at: at,
            cut_short: false,
        }
    }

    /// An outage that goes on and on uses up iterations after all.
    pub fn counts(&self) -> bool {
        self.trouble == Trouble::Outage && self.count > SOON
    }

    pub fn weather(&self, on_limit: OnLimit, now: i64) -> Weather {
        if self.cut_short {
            return Weather::Fine;
        }
        let error = self.error.clone();
        let until = match &self.trouble {
            Trouble::Account => return Weather::Stop(StopReason::AccountTrouble { error }),
            Trouble::Setup => return Weather::Stop(StopReason::AgentUnusable { error }),
            Trouble::Limit { resets_at } if on_limit == OnLimit::Stop => {
                return Weather::Stop(StopReason::UsageLimit { resets_at: *resets_at, error });
            }
            Trouble::Limit { resets_at } => self.limit_ends(*resets_at),
            Trouble::Silence if self.count >= MOST_SILENT => {
                return Weather::Stop(StopReason::ServiceDown { error });
            }
            Trouble::Outage if self.last_at - self.first_at > LONGEST_OUTAGE => {
                return Weather::Stop(StopReason::ServiceDown { error });
            }
            Trouble::Outage if self.count > SOON => self.last_at + LATER,
            Trouble::Outage | Trouble::Silence => self.last_at + back_off(self.count),
        };
        if now < until { Weather::WaitUntil(until) } else { Weather::Fine }
    }

    fn limit_ends(&self, resets_at: Option<i64>) -> i64 {
        let stated = resets_at.map(|seconds| seconds.saturating_mul(SECOND));
        let ends = stated.unwrap_or(self.last_at + UNSTATED_LIMIT);
        let believed = ends.clamp(self.last_at + SHORTEST_LIMIT, self.last_at + LONGEST_LIMIT);
        believed + self.last_at.rem_euclid(JITTER)
    }
}

/// min(2^n, 60) seconds.
fn back_off(count: u32) -> i64 {
    2_i64.checked_pow(count).map_or(60, |seconds| seconds.min(60)) * SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    fn row(trouble: Trouble, times: u32, apart: i64) -> Row {
        let mut row = None;
        for n in 0..i64::from(times) {
            row = Some(Row::after(row, &trouble, "e", NOW + n * apart));
        }
        row.unwrap()
    }

    fn wait(row: &Row) -> i64 {
        match row.weather(OnLimit::Wait, row.last_at) {
            Weather::WaitUntil(at) => at - row.last_at,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_outage_is_tried_again_soon_then_later_then_never() {
        for (times, seconds) in [(1, 2), (2, 4), (5, 32), (6, 60), (10, 60), (11, 300), (20, 300)] {
            let row = row(Trouble::Outage, times, SECOND);
            assert_eq!(wait(&row), seconds * SECOND, "{times}");
            assert_eq!(row.counts(), times > 10, "{times}");
        }
        let long = row(Trouble::Outage, 30, 5 * MINUTE);
        let stop = Weather::Stop(StopReason::ServiceDown { error: "e".into() });
        assert_eq!(long.weather(OnLimit::Wait, NOW), stop);
        let just_not = row(Trouble::Outage, 25, 5 * MINUTE);
        assert_eq!(wait(&just_not), 5 * MINUTE);
    }

    #[test]
    fn a_wait_ends() {
        let row = row(Trouble::Outage, 1, 0);
        assert_eq!(row.weather(OnLimit::Wait, NOW + 2 * SECOND), Weather::Fine);
        assert!(matches!(row.weather(OnLimit::Wait, NOW + SECOND), Weather::WaitUntil(_)));
    }

    #[test]
    fn a_limit_is_waited_for_as_far_as_it_can_be_believed() {
        let jitter = NOW.rem_euclid(JITTER);
        for (resets_in, waits) in [
            (Some(5 * HOUR), 5 * HOUR),
            (Some(-HOUR), MINUTE),
            (Some(0), MINUTE),
            (Some(9 * 24 * HOUR), 8 * 24 * HOUR),
            (None, 15 * MINUTE),
        ] {
            let resets_at = resets_in.map(|time| (NOW + time) / SECOND);
            let row = row(Trouble::Limit { resets_at }, 1, 0);
            assert_eq!(wait(&row), waits + jitter, "{resets_in:?}");
        }
        let endless = row(Trouble::Limit { resets_at: Some(i64::MAX) }, 1, 0);
        assert_eq!(wait(&endless), 8 * 24 * HOUR + jitter);
    }

    #[test]
    fn a_human_can_want_to_stop_at_a_limit() {
        let row = row(Trouble::Limit { resets_at: Some(7) }, 1, 0);
        let stop = StopReason::UsageLimit { resets_at: Some(7), error: "e".into() };
        assert_eq!(row.weather(OnLimit::Stop, NOW), Weather::Stop(stop));
    }

    #[test]
    fn three_silent_agents_are_enough() {
        assert_eq!(wait(&row(Trouble::Silence, 2, 0)), 4 * SECOND);
        let stop = Weather::Stop(StopReason::ServiceDown { error: "e".into() });
        assert_eq!(row(Trouble::Silence, 3, 0).weather(OnLimit::Wait, NOW), stop);
    }

    #[test]
    fn what_no_waiting_mends_stops_at_once() {
        let account = row(Trouble::Account, 1, 0).weather(OnLimit::Wait, NOW);
        assert_eq!(account, Weather::Stop(StopReason::AccountTrouble { error: "e".into() }));
        let setup = row(Trouble::Setup, 1, 0).weather(OnLimit::Wait, NOW);
        assert_eq!(setup, Weather::Stop(StopReason::AgentUnusable { error: "e".into() }));
    }

    #[test]
    fn another_trouble_begins_another_row() {
        let silent = row(Trouble::Silence, 2, 0);
        let outage = Row::after(Some(silent), &Trouble::Outage, "o", NOW);
        assert_eq!((outage.count, outage.error.as_str()), (1, "o"));
    }
}
