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

/// What follows from a stop reason: all of it, in one table.
pub struct Stop {
    pub exit_code: u8,
    pub result: RunResult,
    pub heading: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

// Remedies.
const FIX_AGENT: &str = "Fix `[agent]` in ralph.toml (`model`, `program`).";
const CONTINUE: &str = "Run `ralph run` to continue.";
const MORE_ITERATIONS: &str = "Raise the limit with --max-iterations N.";
const SEE_OUTPUT: &str = "See the agents' output in `.ralph/runs/`; `ralph run` starts a new run. \
     `cool_down` in ralph.toml (or RALPH_COOL_DOWN) sets the pause; `none` disables it.";
const START_AGENT: &str = "Start the agent yourself to see its error.";
const MORE_FAILING: &str = "Raise the limit with --max-failing N.";
const MORE_ERRORS: &str = "Raise the limit with --max-consecutive-errors N.";
const MORE_TIME: &str = "Raise the limit with --max-run-time TIME.";
const LONGER_ITERATIONS: &str = "Raise the limit with --max-average-iteration TIME.";
const WAIT: &str = "`--on-limit wait` waits until the limit resets.";
const CHECK_SERVICE: &str = "Check your connection and the service's status page.";
const LOG_IN: &str = "Log in again with the agent, or fix its API key or billing.";
const FREE_SPACE: &str = "Free some space, or lower `min_free_disk` in ralph.toml.";
const NEW_RUN: &str = "`ralph run` starts a new run with the open stories.";
const NEW_BUDGET: &str = "`ralph run` starts a new run with a new budget.";
const TOMORROW: &str = "Run `ralph run` again tomorrow.";

impl StopReason {
    /// As programs read it, in `status.json` and `report.json`: the one of the journal.
    pub fn word(&self) -> String {
        let stored = serde_json::to_value(self).unwrap_or_default();
        stored["reason"].as_str().unwrap_or_default().to_owned()
    }

    pub fn stop(&self) -> Stop {
        use RunResult::{Completed, Failed, Terminated};
        let budget = match self {
            Self::BudgetUsedUp { budget: Budget::Day | Budget::UserDay, .. } => TOMORROW,
            _ => NEW_BUDGET,
        };
        let (exit_code, result, heading, remedy) = match self {
            Self::AllDone => (0, Completed, "All tasks complete", ""),
            Self::StoryDone { .. } => (0, Completed, "", ""),
            Self::AgentUnusable { .. } => (1, Failed, "The agent cannot be used", FIX_AGENT),
            Self::Once => (3, Terminated, "One iteration done", CONTINUE),
            Self::BudgetUsedUp { .. } => (3, Terminated, "Budget used up", budget),
            Self::MaxIterations { .. } => (3, Terminated, "Out of iterations", MORE_ITERATIONS),
            Self::BreakerOpen { .. } => (3, Terminated, "Circuit breaker tripped", SEE_OUTPUT),
            Self::FailsAtOnce { .. } => (3, Failed, "The agent fails immediately", START_AGENT),
            Self::Failing { .. } => (3, Terminated, "Too many iterations failed", MORE_FAILING),
            Self::ConsecutiveErrors { .. } => {
                (3, Terminated, "Too many errors in a row", MORE_ERRORS)
            }
            Self::MaxRunTime { .. } => (3, Terminated, "Out of time", MORE_TIME),
            Self::SlowIterations { .. } => {
                (3, Terminated, "Iterations take too long", LONGER_ITERATIONS)
            }
            Self::UsageLimit { .. } => (3, Terminated, "Usage limit reached", WAIT),
            Self::ServiceDown { .. } => (4, Failed, "Service unavailable", CHECK_SERVICE),
            Self::AccountTrouble { .. } => (4, Failed, "Login or billing problem", LOG_IN),
            Self::DiskLow { .. } => (4, Failed, "Disk nearly full", FREE_SPACE),
            Self::NothingToSelect { .. } => (4, Failed, "You are needed", ""),
            Self::Aborted => (5, Terminated, "Aborted", NEW_RUN),
        };
        Stop { exit_code, result, heading, remedy }
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
    /// It was removed from the backlog during the run.
    Gone,
    /// It is closed, but its gate fails, and no later story is to blame.
    Red { gate: String },
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
