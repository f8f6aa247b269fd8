//! Why a run's process ended, as a word and a text.

use serde::Serialize;

use crate::core::policy::StopReason;
use crate::core::select::{Because, Blocked};
use crate::core::text::shorten;

/// The longest text.
const LONGEST: usize = 2000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stop {
    pub reason: &'static str,
    pub detail: Option<String>,
}

impl Stop {
    pub fn signal(signal: i32) -> Self {
        Self { reason: "signal", detail: Some(signal.to_string()) }
    }

    pub fn error(error: &str) -> Self {
        Self { reason: "error", detail: Some(shorten(error, LONGEST)) }
    }

    pub fn of(reason: &StopReason) -> Self {
        let (reason, detail) = match reason {
            StopReason::AllDone => ("all_done", None),
            StopReason::StoryDone { story } => ("story_done", Some(story.to_string())),
            StopReason::Once => ("once", None),
            StopReason::BudgetUsedUp { budget, spent, limit } => {
                let detail = format!("{spent} of {limit} spent {}", budget.place());
                ("budget_used_up", Some(detail))
            }
            StopReason::MaxIterations { limit } => ("max_iterations", Some(limit.to_string())),
            StopReason::BreakerOpen { why, error } => {
                ("breaker_open", Some(format!("{why}; then: {error}")))
            }
            StopReason::FailsAtOnce { error, .. } => ("fails_at_once", Some(error.clone())),
            StopReason::Failing { error, .. } => ("failing", Some(error.clone())),
            StopReason::ConsecutiveErrors { error, .. } => {
                ("consecutive_errors", Some(error.clone()))
            }
            StopReason::MaxRunTime { limit_ms, .. } => {
                ("max_run_time", Some(format!("{limit_ms} ms")))
            }
            StopReason::SlowIterations { average_ms, .. } => {
                ("slow_iterations", Some(format!("{average_ms} ms on average")))
            }
            StopReason::UsageLimit { error, .. } => ("usage_limit", Some(error.clone())),
            StopReason::ServiceDown { error } => ("service_down", Some(error.clone())),
            StopReason::AccountTrouble { error } => ("account_trouble", Some(error.clone())),
            StopReason::AgentUnusable { error } => ("agent_unusable", Some(error.clone())),
            StopReason::DiskLow { place, .. } => ("disk_low", Some(place.clone())),
            StopReason::NothingToSelect { blocked } => ("nothing_to_select", list(blocked)),
            StopReason::Aborted => ("aborted", None),
        };
        Self { reason, detail: detail.map(|text| shorten(&text, LONGEST)) }
    }
}

/// `US-002 is parked; US-003 waits for US-002`.
fn list(blocked: &[Blocked]) -> Option<String> {
    let one = |blocked: &Blocked| match &blocked.because {
        Because::Parked => format!("{} is parked", blocked.story),
        Because::WaitsForSkipped { on }
        | Because::WaitsForParked { on }
        | Because::WaitsForOpen { on }
        | Because::WaitsFor { on } => format!("{} waits for {on}", blocked.story),
    };
    let all: Vec<String> = blocked.iter().map(one).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
