//! The example of docs/files.md: a gate fails once, then the story is closed.

use std::time::Duration;

use crate::decide::samples::id;
use crate::model::{
    AgentSignals, AttemptCost, AttemptEnded, AttemptReason, AttemptStarted, Base, Budgets,
    DiffStat, Event, Footprint, LaneId, Limits, OnEscalation, OnLimit, Outcome, Recorded, Role,
    RunStarted, StopReason, StoryChange, StoryClosed, Usage, Usd, Verdict,
};
use crate::report::{AppliedGate, AppliedSettings, RunReport, Waits};

const START: i64 = 1_763_287_200_000;

fn attempt(iteration: u32) -> String {
    format!("019a8b0c-7f00-7000-8000-00000000000{iteration}")
}

fn started(iteration: u32, why: AttemptReason) -> Event {
    Event::AttemptStarted(Box::new(AttemptStarted {
        lane: LaneId::HOME,
        allowance: None,
        attempt: attempt(iteration),
        iteration,
        role: Role::Implement,
        story: id("US-001"),
        title: "Add an item".into(),
        agent: "claude".into(),
        base: Base { commit: None, tree: String::new() },
        criteria: None,
        before: None,
        snapshot: None,
        guided: false,
        why,
        stable: None,
        held: None,
    }))
}

fn ended(iteration: u32, elapsed_ms: u64, cost_usd: f64) -> Event {
    Event::AttemptEnded(Box::new(AttemptEnded {
        attempt: attempt(iteration),
        story: id("US-001"),
        outcome: Outcome::Completed,
        signals: AgentSignals::default(),
        verdict: Verdict::Done,
        usage: Usage {
            cost_usd: Some(cost_usd),
            input_tokens: 310,
            output_tokens: 5400,
            cache_read_tokens: 96_000,
            cache_write_tokens: 8200,
            turns: 14,
            tool_calls: 11,
        },
        elapsed_ms,
        head: None,
        concerns: vec![],
        agent_version: None,
        model: Some("claude-opus-5-5".into()),
        footprint: Footprint::default(),
        cost: AttemptCost { counted: Some(Usd::of(cost_usd)), ..AttemptCost::default() },
        said: None,
        context: None,
        triggers: vec![],
        denied: [("WebFetch".to_owned(), 2)].into(),
    }))
}

fn settings() -> AppliedSettings {
    AppliedSettings {
        agent: "claude".into(),
        permission_mode: Some("acceptEdits".into()),
        branch: Some("ralph".into()),
        max_iterations: Some(50),
        max_attempts: 10,
        limits: Limits {
            max_consecutive_errors: Some(5),
            max_failing: Some(8),
            max_run_time: Some(Duration::from_hours(12)),
            max_average_iteration: None,
            cool_down: Some(Duration::from_mins(30)),
            backoff: Some(Duration::from_secs(1)),
        },
        stuck_threshold: 3,
        once: false,
        story: None,
        on_escalation: Some(OnEscalation::Ask),
        on_limit: Some(OnLimit::Wait),
        waits: Waits {
            answer_ms: 600_000,
            first_event_ms: 180_000,
            idle_ms: 900_000,
            iteration_ms: 5_400_000,
            result_ms: 10_000,
        },
        min_free_disk: Some(1_000_000_000),
        budget: Budgets { per_run: Some(Usd::from_cents(2500)), ..Budgets::default() },
        log_limit: 256_000_000,
        gates: vec![AppliedGate { story: None, run: "cargo test".into() }],
        protect: vec!["tests/**".into()],
    }
}

fn events() -> Vec<(i64, Event)> {
    let story = || id("US-001");
    let failed = "`cargo test` failed with exit code 101".to_owned();
    let commit = "4b2a9d1c0f7e6a5b4c3d2e1f0a9b8c7d6e5f4a3b".to_owned();
    let stat = DiffStat { files: 3, added: 40, removed: 2 };
    let change = Some(StoryChange::new(stat, None));
    vec![
        (
            0,
            Event::RunStarted(RunStarted {
                run: "019a8b0c-7f00-7000-8000-000000000000".into(),
                backlog: "PRD.json".into(),
                project: "demo".into(),
                description: "A list of things to do.".into(),
                agent: "claude".into(),
                branch: Some("ralph".into()),
                allow_dirty: false,
                boot: None,
                carried: vec![],
            }),
        ),
        (9_000, started(1, AttemptReason::FirstTry)),
        (191_500, ended(1, 182_000, 0.41)),
        (
            203_000,
            Event::ClaimRejected {
                story: story(),
                error: failed,
                fingerprint: String::new(),
                unfounded: false,
            },
        ),
        (203_020, started(2, AttemptReason::GateFailed)),
        (284_300, ended(2, 81_000, 0.19)),
        (296_100, Event::ClosePlanned { attempt: attempt(2), story: story() }),
        (
            296_150,
            Event::StoryClosed(StoryClosed { attempt: attempt(2), story: story(), commit, change }),
        ),
        (296_160, Event::RunEnded { reason: StopReason::StoryDone { story: story() } }),
    ]
}

pub fn text() -> String {
    let mut report = RunReport::new(settings());
    for (at, event) in events() {
        report.apply(&Recorded { at: START + at, event });
    }
    report.set_stories(5);
    String::from_utf8(report.render(START + 296_165, None).unwrap()).unwrap()
}
