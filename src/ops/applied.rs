//! The settings that apply, as the report has them.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::Backend;
use crate::decide::gates::Gates;
use crate::model::{Gate, StoryId};
use crate::report::{AppliedBudgets, AppliedGate, AppliedLimits, AppliedSettings, Waits};
use crate::settings::RunSettings;
use crate::text::redact::Rules;

pub fn settings(
    plan: &RunSettings,
    agent: &dyn Backend,
    gates: &Gates,
    branch: Option<&str>,
    secrets: &Arc<Rules>,
) -> AppliedSettings {
    let permission_mode = agent.permission_modes().and(plan.agent_settings.permission_mode);
    AppliedSettings {
        agent: agent.label(),
        permission_mode: permission_mode.map(|mode| mode.name.to_owned()),
        branch: branch.map(str::to_owned),
        max_iterations: plan.max_iterations,
        max_attempts: plan.max_attempts.get(),
        limits: limits(plan),
        stuck_threshold: plan.stuck_threshold.get(),
        once: plan.once,
        story: plan.story.clone(),
        on_escalation: Some(plan.on_escalation),
        on_limit: Some(plan.on_limit),
        waits: waits(plan),
        min_free_disk: plan.min_free_disk,
        budget: AppliedBudgets::from(&plan.budgets),
        log_limit: plan.log_limit,
        gates: applied(gates, secrets),
        protect: plan.protect.clone(),
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn limits(plan: &RunSettings) -> AppliedLimits {
    let limits = &plan.limits;
    AppliedLimits {
        max_consecutive_errors: limits.max_consecutive_errors,
        max_failing: limits.max_failing,
        max_run_time_ms: limits.max_run_time.map(ms),
        max_average_iteration_ms: limits.max_average_iteration.map(ms),
        cool_down_ms: limits.cool_down.map(ms),
        backoff_ms: limits.backoff.map(ms),
    }
}

fn waits(plan: &RunSettings) -> Waits {
    Waits {
        answer_ms: ms(plan.answer_timeout),
        first_event_ms: ms(plan.timeouts.first_event),
        idle_ms: ms(plan.timeouts.idle),
        iteration_ms: ms(plan.timeouts.iteration),
        result_ms: ms(plan.timeouts.after_result),
    }
}

/// The commands alone: what is in their environment may be secret. A dry run runs none.
fn applied(gates: &Gates, secrets: &Arc<Rules>) -> Vec<AppliedGate> {
    if gates.dry {
        return Vec::new();
    }
    let one = |story: Option<&StoryId>, gate: &Gate| AppliedGate {
        story: story.cloned(),
        run: secrets.redact(&gate.to_string()).into_owned(),
    };
    let all = gates.all.iter().map(|gate| one(None, gate));
    let of = gates.of.iter();
    all.chain(of.flat_map(|(id, gates)| gates.iter().map(move |gate| one(Some(id), gate))))
        .collect()
}
