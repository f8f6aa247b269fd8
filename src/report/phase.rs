//! The phases of a run and of an iteration, and why a process ended, each in one word.

use serde::Serialize;

use crate::model::{Because, Blocked, RunResult, StopReason, shorten};
use crate::state::{RunState, Stage, StoryState};

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
            return match reason.result() {
                RunResult::Completed => Self::Completed,
                RunResult::Failed => Self::Failed,
                RunResult::Terminated => Self::Terminated,
            };
        }
        // A claim in question waits for the human instead.
        let is_claimed =
            |story: &StoryState| matches!(story.stage, Stage::Accepted { .. } | Stage::Claimed(_));
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

/// The longest text.
const LONGEST: usize = 2000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StopRecord {
    pub reason: &'static str,
    pub detail: Option<String>,
}

impl StopRecord {
    pub fn signal(signal: i32) -> Self {
        Self { reason: "signal", detail: Some(signal.to_string()) }
    }

    pub fn error(error: &str) -> Self {
        Self { reason: "error", detail: Some(shorten(error, LONGEST)) }
    }

    pub fn of(reason: &StopReason) -> Self {
        let detail = detail(reason).map(|text| shorten(&text, LONGEST));
        Self { reason: reason.word(), detail }
    }
}

fn detail(reason: &StopReason) -> Option<String> {
    match reason {
        StopReason::AllDone | StopReason::Once | StopReason::Aborted => None,
        StopReason::StoryDone { story } => Some(story.to_string()),
        StopReason::BudgetUsedUp { budget, spent, limit } => {
            Some(format!("{spent} of {limit} spent {}", budget.place()))
        }
        StopReason::MaxIterations { limit } => Some(limit.to_string()),
        StopReason::BreakerOpen { why, error } => Some(format!("{why}; then: {error}")),
        StopReason::MaxRunTime { limit_ms, .. } => Some(format!("{limit_ms} ms")),
        StopReason::SlowIterations { average_ms, .. } => {
            Some(format!("{average_ms} ms on average"))
        }
        StopReason::FailsAtOnce { error, .. }
        | StopReason::Failing { error, .. }
        | StopReason::ConsecutiveErrors { error, .. }
        | StopReason::UsageLimit { error, .. }
        | StopReason::ServiceDown { error }
        | StopReason::AccountTrouble { error }
        | StopReason::AgentUnusable { error } => Some(error.clone()),
        StopReason::DiskLow { place, .. } => Some(place.clone()),
        StopReason::NothingToSelect { blocked } => list(blocked),
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

/// The phase of an iteration, guessed from what its agent does. Only for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationPhase {
    /// It has not changed anything yet.
    Planning,
    Implementing,
    /// Its tests or ralph's gates run.
    Testing,
    /// It looks at its own changes, or ralph checks its claim.
    Reviewing,
    /// Over, with something left for the next one.
    Handoff,
    /// Its story is closed.
    Complete,
}

const EDITORS: [&str; 5] = ["Edit", "MultiEdit", "Write", "NotebookEdit", "Update"];
/// Words of commands that test something.
const TESTS: [&str; 18] = [
    "test", "tests", "check", "clippy", "lint", "eslint", "pytest", "jest", "vitest", "mocha",
    "rspec", "phpunit", "ctest", "nextest", "tsc", "mypy", "ruff", "tox",
];
/// git commands that show changes.
const REVIEWS: [&str; 4] = ["diff", "status", "show", "log"];

impl IterationPhase {
    /// `doing` is one line such as `Edit src/a.rs` or `Bash cargo test`. Anything else, for example
    /// reading, does not change the phase.
    pub fn after(self, doing: &str) -> Self {
        let (tool, subject) = doing.split_once(' ').unwrap_or((doing, ""));
        if EDITORS.contains(&tool) {
            return Self::Implementing;
        }
        if tool != "Bash" {
            return self;
        }
        let has_begun = self != Self::Planning;
        if words(subject).any(|word| TESTS.contains(&word)) {
            Self::Testing
        } else if has_begun && looks_at_changes(subject) {
            Self::Reviewing
        } else {
            self
        }
    }
}

fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

fn looks_at_changes(command: &str) -> bool {
    let mut words = words(command).skip_while(|word| *word != "git").skip(1);
    words.any(|word| REVIEWS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_follows_the_tools() {
        use IterationPhase::{Implementing, Planning, Reviewing, Testing};
        for (before, doing, after) in [
            (Planning, "Read src/a.rs", Planning),
            (Planning, "Grep test", Planning),
            (Planning, "Bash ls -la", Planning),
            (Planning, "Bash git log --oneline", Planning),
            (Planning, "Edit src/a.rs", Implementing),
            (Planning, "Write src/tests.rs", Implementing),
            (Planning, "Bash cargo test", Testing),
            (Implementing, "Read src/a.rs", Implementing),
            (Implementing, "Bash mkdir x", Implementing),
            (Implementing, "Bash cd web && npm run test:unit", Testing),
            (Implementing, "Bash python -m pytest -q", Testing),
            (Implementing, "Bash cat latest.txt", Implementing),
            (Testing, "Bash ./mvnw -q test", Testing),
            (Testing, "MultiEdit src/a.rs", Implementing),
            (Testing, "Bash git diff", Reviewing),
            (Implementing, "Bash git -C sub status", Reviewing),
            (Implementing, "Bash diff a b", Implementing),
            (Reviewing, "Edit src/a.rs", Implementing),
            (Reviewing, "retry 1 of 10: overloaded", Reviewing),
            (Testing, "", Testing),
            (Testing, "Bash", Testing),
        ] {
            assert_eq!(before.after(doing), after, "{before:?} {doing}");
        }
    }
}
