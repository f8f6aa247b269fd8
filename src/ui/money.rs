//! Budgets in words.

use super::figures::stories;
use super::line::{Line, Text, Tone};
use super::progress::Counts;
use crate::core::budget::{Budget, Level};
use crate::core::money::Usd;

/// Told once, before it is used up.
pub fn near(at: i64, level: &Level) -> Line {
    let Level { budget, limit, .. } = level;
    let then = match budget {
        _ if !level.binding => format!("a subscription pays, so nothing stops at {limit}"),
        Budget::Story(_) => format!("at {limit} you are asked"),
        _ => format!("at {limit} the run stops"),
    };
    Text::at(at)
        .with(Tone::Warning, level.to_string())
        .plain(format!("; {then} ({} changes that)", budget.flag()))
        .into()
}

/// Why the run stopped, and what changes that.
pub fn used_up(budget: &Budget, spent: Usd, limit: Usd, counts: &Counts) -> Vec<Line> {
    let (left, place) = (stories(counts.remaining()), budget.place());
    let stopped = Text::new()
        .with(Tone::Warning, format!("Stopped: {spent} of {limit} spent {place}, {left} left."))
        .plain(format!(
            " {} USD (or `{}` in ralph.toml, `none`: no limit) allows more.",
            budget.flag(),
            budget.setting()
        ));
    let next = match budget {
        Budget::Run | Budget::Story(_) => "`ralph run` goes on with a new run and a new budget.",
        Budget::Day | Budget::UserDay => "`ralph run` goes on tomorrow.",
    };
    vec![stopped.into(), Text::new().with(Tone::Dim, next).into()]
}
