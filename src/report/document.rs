//! The fields of status.json and report.json, as docs/files.md describes them.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::decide::figures::{Efficiency, Forecast};
use crate::model::{
    Because, Blocked, Budgets, Event, Limits, OnEscalation, OnLimit, RunResult, StopReason,
    StoryId, Tokens, Usd, shorten,
};
use crate::state::{BreakerPhase, RunState, StoryState};

/// Increases when a field changes its meaning or is removed; fields may be added at any time.
pub const VERSION: u32 = 1;
/// The longest detail of a stop, in characters.
const LONGEST: usize = 2000;

/// Milliseconds since the Unix epoch; written as RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReportTime(pub i64);

impl ReportTime {
    pub fn ms_since(self, start: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(start.0)).unwrap_or_default()
    }
}

impl Serialize for ReportTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = Timestamp::from_millisecond(self.0).unwrap_or_default();
        serializer.collect_str(&format_args!("{time:.3}"))
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    pub version: u32,
    pub run: String,
    pub backlog: String,
    pub state: RunPhase,
    pub stop: Option<StopRecord>,
    pub goal: Goal,
    pub started_at: ReportTime,
    pub updated_at: ReportTime,
    pub ended_at: Option<ReportTime>,
    pub waits_until: Option<ReportTime>,
    pub breaker: BreakerState,
    pub settings: AppliedSettings,
    pub stories: StoryCounts,
    pub totals: RunTotals,
    pub efficiency: Efficiency,
    pub forecast: Option<Forecast>,
    pub metrics: Metrics,
    pub notices: Vec<NoticeRecord>,
}

/// An event as it is in the journal.
#[derive(Clone, Debug, Serialize)]
pub struct NoticeRecord {
    pub at: ReportTime,
    #[serde(flatten)]
    pub event: Event,
}

/// The phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// Before this process's first attempt: checks, the baseline.
    #[default]
    Initializing,
    /// An agent is running.
    Running,
    /// Waits for a limit, an outage, the breaker or the human.
    Paused,
    /// Between two attempts.
    Handoff,
    /// A claim is checked or closed.
    Completing,
    /// Every story is settled, or the one that was asked for.
    Completed,
    /// It could not continue.
    Failed,
    /// A limit, the human or a signal ended it.
    Terminated,
}

impl RunPhase {
    /// `has_tried`: this process started an attempt.
    pub fn of(state: &RunState, has_tried: bool, now: i64) -> Self {
        if let Some(reason) = &state.ended {
            return match reason.stop().result {
                RunResult::Completed => Self::Completed,
                RunResult::Failed => Self::Failed,
                RunResult::Terminated => Self::Terminated,
            };
        }
        // A claim in question waits for the human instead.
        let is_claimed = |story: &StoryState| story.stage.is_claimed();
        if !state.attempts.is_idle() {
            Self::Running
        } else if state.stories.values().any(is_claimed) {
            Self::Completing
        } else if state.wait(now).is_some() || state.questions().any(|(_, asked)| !asked.parked) {
            Self::Paused
        } else if has_tried {
            Self::Handoff
        } else {
            Self::Initializing
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StopRecord {
    pub reason: String,
    pub detail: Option<String>,
}

impl StopRecord {
    pub fn new(reason: impl Into<String>, detail: Option<String>) -> Self {
        Self { reason: reason.into(), detail: detail.map(|text| shorten(&text, LONGEST)) }
    }

    pub fn of(reason: &StopReason) -> Self {
        Self::new(reason.word(), detail(reason))
    }
}

fn detail(reason: &StopReason) -> Option<String> {
    Some(match reason {
        StopReason::AllDone | StopReason::Once | StopReason::Aborted => return None,
        StopReason::StoryDone { story } => story.to_string(),
        StopReason::BudgetUsedUp { budget, spent, limit } => {
            format!("{spent} of {limit} spent {}", budget.place())
        }
        StopReason::MaxIterations { limit } => limit.to_string(),
        StopReason::BreakerOpen { why, error } => format!("{why}; then: {error}"),
        StopReason::MaxRunTime { limit_ms, .. } => format!("{limit_ms} ms"),
        StopReason::SlowIterations { average_ms, .. } => format!("{average_ms} ms on average"),
        StopReason::FailsAtOnce { error, .. }
        | StopReason::Failing { error, .. }
        | StopReason::ConsecutiveErrors { error, .. }
        | StopReason::UsageLimit { error, .. }
        | StopReason::ServiceDown { error }
        | StopReason::AccountTrouble { error }
        | StopReason::AgentUnusable { error } => error.clone(),
        StopReason::DiskLow { place, .. } => place.clone(),
        StopReason::NothingToSelect { blocked } if blocked.is_empty() => return None,
        StopReason::NothingToSelect { blocked } => list(blocked),
    })
}

/// `US-002 is parked; US-003 waits for US-002`.
fn list(blocked: &[Blocked]) -> String {
    let one = |blocked: &Blocked| match &blocked.because {
        Because::Parked => format!("{} is parked", blocked.story),
        Because::Gone => format!("{} was removed from the backlog", blocked.story),
        Because::Red { gate } => format!("`{gate}` of {} fails", blocked.story),
        Because::WaitsForSkipped { on }
        | Because::WaitsForParked { on }
        | Because::WaitsForOpen { on }
        | Because::WaitsFor { on } => format!("{} waits for {on}", blocked.story),
    };
    blocked.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The run's circuit breaker.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BreakerState {
    state: &'static str,
    /// Why it opened.
    why: Option<String>,
}

impl From<&BreakerPhase> for BreakerState {
    fn from(phase: &BreakerPhase) -> Self {
        let (state, why) = match phase {
            BreakerPhase::Closed => ("closed", None),
            BreakerPhase::Open { why, .. } | BreakerPhase::Failed { why } => ("open", Some(why)),
            BreakerPhase::HalfOpen { why, .. } => ("half_open", Some(why)),
        };
        Self { state, why: why.cloned() }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Goal {
    pub project: String,
    pub description: String,
}

/// The settings of this process. Nothing in here comes from the environment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AppliedSettings {
    pub agent: String,
    pub permission_mode: Option<String>,
    pub branch: Option<String>,
    pub max_iterations: Option<u32>,
    pub max_attempts: u32,
    pub limits: Limits,
    pub stuck_threshold: u32,
    pub once: bool,
    pub story: Option<StoryId>,
    pub on_escalation: Option<OnEscalation>,
    pub on_limit: Option<OnLimit>,
    pub waits: Waits,
    pub min_free_disk: Option<u64>,
    pub budget: Budgets,
    pub log_limit: u64,
    pub gates: Vec<AppliedGate>,
    pub protect: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Waits {
    pub answer_ms: u64,
    pub first_event_ms: u64,
    pub idle_ms: u64,
    pub iteration_ms: u64,
    pub result_ms: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct AppliedGate {
    /// None: for every story.
    pub story: Option<StoryId>,
    pub run: String,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct StoryCounts {
    pub total: usize,
    pub passing: usize,
    pub skipped: usize,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct RunTotals {
    pub agent_ms: u64,
    pub cost_usd: Option<f64>,
    pub without_cost: u32,
    pub counted_usd: Usd,
    pub tokens: Tokens,
    pub turns: u64,
    pub tool_calls: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Metrics {
    pub iterations: u32,
    pub attempts: u32,
    pub successes: u32,
    pub failures: u32,
    pub errors: u32,
    pub checkpoints: u32,
    pub rollbacks: u32,
    pub success_rate: Option<f64>,
    pub ruts: u32,
    pub errors_in_a_row: u32,
    pub worked_ms: u64,
    pub elapsed_ms: u64,
}
