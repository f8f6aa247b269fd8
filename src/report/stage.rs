//! Where a run stands, in one word.

use serde::Serialize;

use crate::core::policy::StopReason;
use crate::core::state::{RunState, StoryState};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Before this process's first attempt: the baseline of the gates, looking around.
    #[default]
    Initializing,
    /// An agent is at work.
    Running,
    /// A limit's, an outage's or the breaker's end is waited for, or the human.
    Paused,
    /// Between two attempts.
    Handoff,
    /// A claim is checked or closed.
    Completing,
    /// Every story is settled, or the one that was asked for.
    Completed,
    /// It could not go on.
    Failed,
    /// A limit, the human or a signal ended it.
    Terminated,
}

impl Stage {
    /// `has_tried`: this process started an attempt.
    pub fn of(state: &RunState, has_tried: bool, now: i64) -> Self {
        if let Some(reason) = &state.ended {
            return Self::after(reason);
        }
        let any = |which: fn(&StoryState) -> bool| state.stories.values().any(which);
        if !state.in_flight.is_empty() {
            Self::Running
        } else if any(has_undecided_claim) {
            Self::Completing
        } else if state.wait(now).is_some() || state.questions().any(|(_, asked)| !asked.parked) {
            Self::Paused
        } else if has_tried {
            Self::Handoff
        } else {
            Self::Initializing
        }
    }

    fn after(reason: &StopReason) -> Self {
        match reason {
            StopReason::AllDone | StopReason::StoryDone { .. } => Self::Completed,
            StopReason::ServiceDown { .. }
            | StopReason::AccountTrouble { .. }
            | StopReason::AgentUnusable { .. }
            | StopReason::FailsAtOnce { .. }
            | StopReason::DiskLow { .. }
            | StopReason::NothingToSelect { .. } => Self::Failed,
            StopReason::Once
            | StopReason::BreakerOpen { .. }
            | StopReason::Failing { .. }
            | StopReason::ConsecutiveErrors { .. }
            | StopReason::BudgetUsedUp { .. }
            | StopReason::MaxIterations { .. }
            | StopReason::MaxRunTime { .. }
            | StopReason::SlowIterations { .. }
            | StopReason::UsageLimit { .. }
            | StopReason::Aborted => Self::Terminated,
        }
    }
}

/// One in question waits for the human instead.
fn has_undecided_claim(story: &StoryState) -> bool {
    story.closing.is_some() || (story.claim.is_some() && story.question.is_none())
}
