//! The limits a run keeps, and why it stops.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::budget::{Budget, Budgets};
use super::id::StoryId;
use super::limits::Limits;
use super::money::Usd;
use super::select::Blocked;

/// What the human decided before the run, as far as decisions depend on it.
#[derive(Clone, Debug)]
pub struct Policy {
    /// None: no limit.
    pub max_iterations: Option<u32>,
    /// Stop after one iteration of this process.
    pub once: bool,
    /// Attempts that the run had when this process took it up.
    pub attempts_before: u32,
    /// Work on this story only.
    pub only: Option<StoryId>,
    /// The same error this often in a row is a question for the human.
    pub stuck_threshold: NonZeroU32,
    /// So many attempts at one story without an end are a question too.
    pub max_attempts: NonZeroU32,
    /// After so many failed attempts in a row a story starts over; None: never.
    pub fresh_start_after: Option<u32>,
    pub limits: Limits,
    pub on_escalation: OnEscalation,
    pub on_limit: OnLimit,
    /// Bytes that must be free on the disk. None: nobody looks.
    pub min_free_disk: Option<u64>,
    /// Somebody is at a terminal.
    pub human_present: bool,
    pub budgets: Budgets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnEscalation {
    /// In a terminal, ask; without one, park.
    Ask,
    Park,
    Skip,
    Abort,
}

/// What to do when the account's usage limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    Wait,
    Stop,
}

/// How long an agent may take for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until it says anything at all.
    pub first_event: Duration,
    /// Between two things it says.
    pub idle: Duration,
    pub iteration: Duration,
    /// Between its result and its exit.
    pub after_result: Duration,
    /// The same, at most, while work goes on that it left in the background.
    pub background: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_event: Duration::from_secs(180),
            idle: Duration::from_mins(15),
            iteration: Duration::from_mins(90),
            after_result: Duration::from_secs(10),
            background: Duration::from_mins(2),
        }
    }
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum StopReason {
    AllDone,
    /// `--story`: that one is settled.
    StoryDone {
        story: StoryId,
    },
    /// `--once`: the one iteration is over and work is left.
    Once,
    BudgetUsedUp {
        budget: Budget,
        spent: Usd,
        limit: Usd,
    },
    MaxIterations {
        limit: u32,
    },
    /// The breaker let one iteration through, and that failed too.
    BreakerOpen {
        why: String,
        error: String,
    },
    /// Agents break down before they could do anything, so often and alike.
    FailsAtOnce {
        times: u32,
        error: String,
    },
    /// So many of the last ten iterations failed.
    Failing {
        failed: u32,
        error: String,
    },
    /// Over all stories.
    ConsecutiveErrors {
        limit: u32,
        error: String,
    },
    MaxRunTime {
        limit_ms: u64,
        worked_ms: u64,
    },
    /// An iteration takes too long on average.
    SlowIterations {
        limit_ms: u64,
        average_ms: u64,
        iterations: u32,
    },
    /// `--on-limit stop`. Seconds since the Unix epoch.
    UsageLimit {
        resets_at: Option<i64>,
        error: String,
    },
    /// The service did not come back.
    ServiceDown {
        error: String,
    },
    /// Login or billing.
    AccountTrouble {
        error: String,
    },
    /// The agent cannot be started, or not with this model.
    AgentUnusable {
        error: String,
    },
    /// Bytes; `place` is where they are too few.
    DiskLow {
        free: u64,
        floor: u64,
        place: String,
    },
    /// Work is left, and none of it can be started.
    NothingToSelect {
        blocked: Vec<Blocked>,
    },
    Aborted,
}
