//! Why a run stops or waits.

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::id::StoryId;
use super::money::Usd;

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum StopReason {
    /// Every story is settled.
    AllDone,
    /// `--story`: that one is settled.
    StoryDone { story: StoryId },
    /// `--once`: the one iteration is over and work is left.
    Once,
    /// A budget does not allow another attempt.
    BudgetUsedUp { budget: Budget, spent: Usd, limit: Usd },
    /// The run reached `max_iterations`.
    MaxIterations { limit: u32 },
    /// The breaker let one iteration through, and that failed too.
    BreakerOpen { why: String, error: String },
    /// Agents broke down right after their start, repeatedly and with the same error.
    FailsAtOnce { times: u32, error: String },
    /// Too many of the last ten iterations failed.
    Failing { failed: u32, error: String },
    /// Too many errors in a row, over all stories.
    ConsecutiveErrors { limit: u32, error: String },
    /// The run reached `max_run_time`.
    MaxRunTime { limit_ms: u64, worked_ms: u64 },
    /// An iteration takes too long on average.
    SlowIterations { limit_ms: u64, average_ms: u64, iterations: u32 },
    /// `--on-limit stop`. `resets_at` is in seconds since the Unix epoch.
    UsageLimit { resets_at: Option<i64>, error: String },
    /// The service did not come back.
    ServiceDown { error: String },
    /// Login or billing.
    AccountTrouble { error: String },
    /// The agent cannot be started, or not with this model.
    AgentUnusable { error: String },
    /// In bytes; `place` is the path.
    DiskLow { free: u64, floor: u64, place: String },
    /// Stories are left, but none can start.
    NothingToSelect { blocked: Vec<Blocked> },
    /// The human aborted the run.
    Aborted,
}

/// The result of an ended run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// Every story is settled, or the one that was asked for.
    Completed,
    /// It could not continue.
    Failed,
    /// A limit or the human ended it.
    Terminated,
}

impl StopReason {
    /// As programs read it, in `status.json` and `report.json`.
    pub fn word(&self) -> &'static str {
        self.row().0
    }

    pub fn exit_code(&self) -> u8 {
        self.row().1
    }

    pub fn result(&self) -> RunResult {
        self.row().2
    }

    fn row(&self) -> (&'static str, u8, RunResult) {
        use RunResult::{Completed, Failed, Terminated};
        match self {
            Self::AllDone => ("all_done", 0, Completed),
            Self::StoryDone { .. } => ("story_done", 0, Completed),
            Self::AgentUnusable { .. } => ("agent_unusable", 1, Failed),
            Self::Once => ("once", 3, Terminated),
            Self::BudgetUsedUp { .. } => ("budget_used_up", 3, Terminated),
            Self::MaxIterations { .. } => ("max_iterations", 3, Terminated),
            Self::BreakerOpen { .. } => ("breaker_open", 3, Terminated),
            Self::FailsAtOnce { .. } => ("fails_at_once", 3, Failed),
            Self::Failing { .. } => ("failing", 3, Terminated),
            Self::ConsecutiveErrors { .. } => ("consecutive_errors", 3, Terminated),
            Self::MaxRunTime { .. } => ("max_run_time", 3, Terminated),
            Self::SlowIterations { .. } => ("slow_iterations", 3, Terminated),
            Self::UsageLimit { .. } => ("usage_limit", 3, Terminated),
            Self::ServiceDown { .. } => ("service_down", 4, Failed),
            Self::AccountTrouble { .. } => ("account_trouble", 4, Failed),
            Self::DiskLow { .. } => ("disk_low", 4, Failed),
            Self::NothingToSelect { .. } => ("nothing_to_select", 4, Failed),
            Self::Aborted => ("aborted", 5, Terminated),
        }
    }
}

/// A story that cannot be started, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    pub story: StoryId,
    pub because: Because,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Because {
    /// Its question waits for an answer.
    Parked,
    /// It depends on a skipped story.
    WaitsForSkipped { on: StoryId },
    /// It depends on a parked story.
    WaitsForParked { on: StoryId },
    /// It depends on a story that could start, but `--story` excludes it.
    WaitsForOpen { on: StoryId },
    /// It depends on a story that waits too.
    WaitsFor { on: StoryId },
}

/// Why nothing can start, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub what: WaitFor,
    /// The reason, in words.
    pub error: String,
    /// Milliseconds since the Unix epoch.
    pub until: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// The end of the account's usage limit.
    Limit,
    /// The service to recover.
    Service,
    /// The next try, after a failure.
    Retry,
    /// The end of the breaker's pause.
    CoolDown,
    /// The throttle's pause.
    Budget,
}
