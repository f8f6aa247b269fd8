//! The fields of status.json and report.json, as docs/files.md describes them.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::decide::figures::{Efficiency, Forecast};
use crate::model::{AttemptReason, Budgets, OnEscalation, OnLimit, StoryId, Usage, Usd, Verdict};
use crate::state::{BreakerPhase, Health};

use super::phase::{IterationPhase, RunPhase, StopRecord};

/// Increases when a field changes its meaning or is removed; fields may be added at any time.
pub const VERSION: u32 = 1;

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

/// The whole document, with some or all iterations.
#[derive(Serialize)]
pub struct ReportPage<'a> {
    #[serde(flatten)]
    pub summary: &'a Summary,
    pub iterations_left_out: usize,
    pub iterations: &'a [Iteration],
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
    pub limits: AppliedLimits,
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

/// Limits other than iterations and money.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct AppliedLimits {
    pub max_consecutive_errors: Option<u32>,
    pub max_failing: Option<u32>,
    pub max_run_time_ms: Option<u64>,
    pub max_average_iteration_ms: Option<u64>,
    pub cool_down_ms: Option<u64>,
    pub backoff_ms: Option<u64>,
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

impl StoryCounts {
    pub fn left(&self) -> usize {
        self.total.saturating_sub(self.passing + self.skipped)
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct RunTotals {
    pub agent_ms: u64,
    pub cost_usd: Option<f64>,
    pub without_cost: u32,
    pub counted_usd: Usd,
    pub tokens: TokenTotals,
    pub turns: u64,
    pub tool_calls: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TokenTotals {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl From<&Usage> for TokenTotals {
    fn from(usage: &Usage) -> Self {
        Self {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cache_read: usage.cache_read_tokens,
            cache_write: usage.cache_write_tokens,
        }
    }
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

#[derive(Clone, Debug, Serialize)]
pub struct Iteration {
    pub iteration: u32,
    pub attempt: String,
    pub story: StoryId,
    pub title: String,
    pub agent: String,
    pub why: AttemptReason,
    pub phase: IterationPhase,
    pub outcome: Option<IterationResult>,
    pub agent_end: Option<String>,
    pub started_at: ReportTime,
    pub ended_at: Option<ReportTime>,
    pub elapsed_ms: Option<u64>,
    pub tokens: TokenTotals,
    pub cost_usd: Option<f64>,
    pub counted_usd: Option<Usd>,
    pub model: Option<String>,
    pub turns: u64,
    pub tool_calls: u64,
    pub health: Health,
    pub errors: Vec<String>,
    pub checkpoint: Option<String>,
}

/// The outcome of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationResult {
    /// It claims its story; the claim is not decided yet.
    Claimed,
    Closed,
    Rejected,
    Progress,
    Escalated,
    Failed,
    PromptTooLong,
    ServiceTrouble,
    Interrupted,
    /// ralph itself ended before the agent's end was recorded.
    CutOff,
}

impl IterationResult {
    pub fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Done => Self::Claimed,
            Verdict::Progress => Self::Progress,
            Verdict::Escalated { .. } => Self::Escalated,
            Verdict::Failed { .. } => Self::Failed,
            Verdict::NotTheStory { .. } => Self::ServiceTrouble,
            Verdict::PromptTooLong { .. } => Self::PromptTooLong,
            Verdict::Interrupted => Self::Interrupted,
        }
    }

    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Rejected | Self::PromptTooLong)
    }

    /// It was ended by neither the service nor the human, so it says something about the run.
    pub fn says_something(self) -> bool {
        !matches!(self, Self::ServiceTrouble | Self::Interrupted | Self::CutOff)
    }
}
