//! Costs as text, JSON and CSV.

use std::fmt::Write;

use serde_json::Value;

use crate::decide::figures::Efficiency;
use crate::model::{Usage, Usd, visible_line};
use crate::ops::output;
use crate::ui;

use super::LatestRun;
use super::sums::{CostGroup, CostGrouping, CostSums};

const NOTHING: &str = "no costs yet: no agent has run\n";
const COLUMNS: usize = 7;

pub fn run(now: &LatestRun<'_>) -> String {
    let Some(run) = now.run else { return NOTHING.to_owned() };
    let (all, cost) = (&now.all, now.all.figures.cost);
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "run {} · {cost} spent{}", ui::short_run(run), assumed(all));
    if now.state.costs.subscription == Some(true) {
        text.push_str("paid by a subscription; these are list prices\n");
    }
    let _ = writeln!(text, "{}", usage(&all.figures.usage));
    for line in [efficiency(all), now.outlook.as_ref().map(ui::to_go)].into_iter().flatten() {
        let _ = writeln!(text, "{line}");
    }
    let yours = now.user_today.map(|usd| format!(", {usd} in all your repositories"));
    let (today, yours, ever) = (now.today, yours.unwrap_or_default(), now.repository);
    let _ = writeln!(text, "today: {today} in this repository{yours} · all time: {ever}");
    for groups in [&now.stories, &now.models] {
        if !groups.is_empty() {
            let _ = write!(text, "\n{}", table(groups, all));
        }
    }
    text
}

fn assumed(sums: &CostSums) -> String {
    match sums.assumed {
        0 => String::new(),
        some => format!(", {some} of {} iterations estimated", sums.iterations),
    }
}

fn usage(usage: &Usage) -> String {
    let [input, output, read, written] = tokens(usage);
    let (turns, calls) = (ui::count(usage.turns), ui::count(usage.tool_calls));
    format!(
        "tokens: {input} in, {output} out, {read} cache read, {written} cache written · turns: \
         {turns} · tool calls: {calls}"
    )
}

fn tokens(usage: &Usage) -> [String; 4] {
    let (read, written) = (usage.cache_read_tokens, usage.cache_write_tokens);
    [usage.input_tokens, usage.output_tokens, read, written].map(ui::count)
}

fn efficiency(sums: &CostSums) -> Option<String> {
    let found = Efficiency::of(&sums.figures);
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

/// `all`: the sums of all groups. Models have no total: an attempt can use several.
pub fn table(groups: &[CostGroup], all: &CostSums) -> String {
    let Some(first) = groups.first() else { return NOTHING.to_owned() };
    let name = match first.by {
        CostGrouping::Story => "Story",
        CostGrouping::Day => "Day",
        CostGrouping::Model => "Model",
    };
    let heading = [name, "Iterations", "Cost", "In", "Out", "Cache read", "Cache written"];
    let mut rows = vec![(heading.map(str::to_owned), String::new())];
    rows.extend(
        groups.iter().map(|group| (cells(&group.name, &group.sums), visible_line(&group.title))),
    );
    if groups.len() > 1 && first.by != CostGrouping::Model {
        rows.push((cells("Total", all), String::new()));
    }
    let mut figures = [true; COLUMNS];
    figures[0] = false;
    output::table(&rows, figures)
}

/// `~` where a part of the cost is assumed.
fn cells(name: &str, sums: &CostSums) -> [String; COLUMNS] {
    let about = if sums.assumed > 0 { "~" } else { "" };
    let cost = format!("{about}{}", sums.figures.cost);
    let [input, output, read, written] = tokens(&sums.figures.usage);
    [visible_line(name), sums.iterations.to_string(), cost, input, output, read, written]
}

pub fn json(groups: &[CostGroup]) -> String {
    format!("{:#}\n", Value::Array(groups.iter().map(CostGroup::as_json).collect()))
}

/// With a heading; nothing at all without groups.
pub fn csv(groups: &[CostGroup]) -> String {
    let Some(first) = groups.first() else { return String::new() };
    let line = |cells: Vec<String>| format!("{}\n", cells.join(","));
    let heading = first.fields().iter().map(|(name, _)| (*name).to_owned()).collect();
    let rows = groups.iter().map(|group| group.fields().iter().map(|(_, v)| cell(v)).collect());
    std::iter::once(heading).chain(rows).map(line).collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(&visible_line(text)),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A spreadsheet would run a text that begins like a formula; a `'` before it prevents that.
fn quoted(text: &str) -> String {
    let guard = if text.trim_start().starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    if guard.is_empty() && !text.contains(['"', ',', '\n', '\r', ' ', '\t']) {
        return text.to_owned();
    }
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_never_a_formula() {
        for (text, written) in [
            ("US-001", "US-001"),
            ("Add an item", "\"Add an item\""),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("+1", "\"'+1\""),
            ("-2", "\"'-2\""),
            ("@cmd", "\"'@cmd\""),
            ("  =1", "\"'  =1\""),
            ("a=b", "a=b"),
            ("", ""),
        ] {
            assert_eq!(quoted(text), written, "{text}");
        }
    }

    #[test]
    fn control_characters_are_made_visible() {
        let written = cell(&Value::String("a\x1b[2Jb\nc".into()));
        assert!(!written.contains(['\x1b', '\n']), "{written}");
    }
}
