//! What was spent, for people.

use std::fmt::Write;

use crate::decide::efficiency::Efficiency;
use crate::model::{Usd, visible_line};
use crate::ui;

use super::LatestRun;
use super::sums::{CostGroup, CostKey, CostSums};

const NOTHING: &str = "no costs yet: no agent has run\n";

pub fn of_run(now: &LatestRun<'_>) -> String {
    let Some(run) = now.run else { return NOTHING.to_owned() };
    let all = &now.all;
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "run {} · {} spent{}", ui::short_run(run), all.cost, assumed(all));
    if now.state.costs.subscription == Some(true) {
        text.push_str("paid by a subscription; these are list prices\n");
    }
    let _ = writeln!(text, "{}", tokens(all));
    for line in [efficiency(all), now.outlook.as_ref().map(ui::to_go)].into_iter().flatten() {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{}", places(now));
    for groups in [&now.stories, &now.models] {
        if !groups.is_empty() {
            let _ = write!(text, "\n{}", table(groups));
        }
    }
    text
}

fn assumed(sums: &CostSums) -> String {
    match sums.assumed {
        0 => String::new(),
        1 => format!(", 1 of {} iterations estimated", sums.iterations),
        some => format!(", {some} of {} iterations estimated", sums.iterations),
    }
}

fn tokens(sums: &CostSums) -> String {
    let usage = &sums.usage;
    let [input, output, read, written, turns, calls] = [
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.turns,
        usage.tool_calls,
    ]
    .map(ui::count);
    format!(
        "tokens: {input} in, {output} out, {read} cache read, {written} cache written · turns: \
         {turns} · tool calls: {calls}"
    )
}

fn efficiency(sums: &CostSums) -> Option<String> {
    let found = Efficiency::of(&sums.figures());
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let parts = [
        found.cost_per_story_usd.map(|cost| format!("{} per story", Usd::of(cost))),
        found.tokens_per_tool_call.map(|count| format!("{count:.0} tokens per tool call")),
        found.cache_hit_rate.map(|share| format!("{} read from the cache", percent(share))),
        found.failed_share.map(|share| format!("{} on failed attempts", percent(share))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn places(now: &LatestRun<'_>) -> String {
    let yours = now.user_today.map(|usd| format!(", {usd} in all your repositories"));
    let yours = yours.unwrap_or_default();
    format!("today: {} in this repository{yours} · all time: {}", now.today, now.repository)
}

pub fn table(groups: &[CostGroup]) -> String {
    let Some(first) = groups.first() else { return NOTHING.to_owned() };
    let heading = match first.key {
        CostKey::Story { .. } => "Story",
        CostKey::Day(_) => "Day",
        CostKey::Model(_) => "Model",
    };
    let columns = ["Iterations", "Cost", "In", "Out", "Cache read", "Cache written"];
    let mut rows: Vec<(Vec<String>, String)> =
        vec![(std::iter::once(heading).chain(columns).map(str::to_owned).collect(), String::new())];
    rows.extend(groups.iter().map(row));
    if groups.len() > 1 && heading != "Model" {
        let mut all = CostSums::default();
        groups.iter().for_each(|group| all.join(&group.sums));
        rows.push((cells("Total", &all), String::new()));
    }
    aligned(&rows)
}

fn row(group: &CostGroup) -> (Vec<String>, String) {
    let (name, remark) = match &group.key {
        CostKey::Story { story, title, .. } => (story, title.as_str()),
        CostKey::Day(name) | CostKey::Model(name) => (name, ""),
    };
    (cells(name, &group.sums), visible_line(remark))
}

/// `~` where a part of the cost is assumed.
fn cells(name: &str, sums: &CostSums) -> Vec<String> {
    let about = if sums.assumed > 0 { "~" } else { "" };
    let usage = &sums.usage;
    let counts = [
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    ]
    .map(ui::count);
    let first = [visible_line(name), sums.iterations.to_string(), format!("{about}{}", sums.cost)];
    first.into_iter().chain(counts).collect()
}

/// The first column stands left, figures right, and what comes after them as it is.
fn aligned(rows: &[(Vec<String>, String)]) -> String {
    let columns = rows.first().map_or(0, |(cells, _)| cells.len());
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|(cells, _)| cells.get(column));
        cells.map(|cell| ui::width(cell)).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (cells, remark) in rows {
        let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let space = " ".repeat(width.saturating_sub(ui::width(cell)));
            if column == 0 { format!("{cell}{space}") } else { format!("{space}{cell}") }
        });
        let line = format!("{}  {remark}", padded.collect::<Vec<_>>().join("  "));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
