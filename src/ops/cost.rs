//! `ralph cost`: what was spent, for people, as JSON or as CSV.

mod sums;

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::decide::figures::{Efficiency, Forecast, forecast};
use crate::model::{Usage, Usd, visible_line};
use crate::ports::Clock;
use crate::state::RunState;
use crate::store::prd::PrdFile;
use crate::store::{Costs, state_folder, user_spent_since};
use crate::ui;

use super::error::Result;
use super::place::{open_tree, place_of, state_of, store_of};
use super::terminal::{print, print_json};

pub use sums::CostGrouping;
use sums::{CostGroup, CostSums, grouped};

const NOTHING: &str = "no costs yet: no agent has run\n";
/// The last one has a story's title, without a heading.
const COLUMNS: usize = 8;
const FIGURES: [bool; COLUMNS] = [false, true, true, true, true, true, true, false];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostFormat {
    Text,
    Json,
    Csv,
}

/// The latest run of the backlog, and today's and all costs of the repository.
struct LatestRun<'a> {
    state: &'a RunState,
    run: Option<&'a str>,
    all: CostSums,
    stories: Vec<CostGroup>,
    models: Vec<CostGroup>,
    outlook: Option<Forecast>,
    repository: Usd,
    today: Usd,
    /// None: they are not known.
    user_today: Option<Usd>,
}

/// `by`: all runs of the repository, grouped by this; else the latest run.
pub fn cost(prd: &Path, by: Option<CostGrouping>, format: CostFormat, clock: &Clock) -> Result<()> {
    let loaded = PrdFile::new(prd).load()?;
    let tree = open_tree(prd)?;
    let store = store_of(&tree);
    let costs = if store.exists() { Some(store.costs()?) } else { None };
    let (text, json, groups) = if let Some(by) = by {
        let entries = match (&costs, by) {
            (None, _) => Vec::new(),
            (Some(costs), CostGrouping::Model) => costs.by_model(None)?,
            (Some(costs), CostGrouping::Story | CostGrouping::Day) => costs.attempts(None)?,
        };
        let groups = grouped(&entries, by, &clock.zone);
        (table(&groups, &CostSums::of(&entries)), as_json(&groups), groups)
    } else {
        let state = state_of(&store, &place_of(&tree, prd)?)?;
        let run = LatestRun::of(&state, loaded.backlog.remaining(), costs.as_ref(), clock)?;
        (run.as_text(), run.as_json(), run.stories)
    };
    match format {
        CostFormat::Json => print_json(&json),
        CostFormat::Csv => print(&csv(&groups)),
        CostFormat::Text => print(&text),
    }
}

impl<'a> LatestRun<'a> {
    /// `left`: stories that are neither done nor skipped.
    fn of(state: &'a RunState, left: usize, costs: Option<&Costs>, clock: &Clock) -> Result<Self> {
        let run = state.run.as_ref().map(|run| run.run.as_str());
        let (attempts, by_model) = match costs {
            Some(costs) if run.is_some() => (costs.attempts(run)?, costs.by_model(run)?),
            _ => Default::default(),
        };
        let spent = |since| costs.map_or(Ok(Usd::ZERO), |costs| costs.spent_since(since));
        let (began, zone) = (clock.start_of_day(), &clock.zone);
        Ok(Self {
            state,
            run,
            all: CostSums::of(&attempts),
            stories: grouped(&attempts, CostGrouping::Story, zone),
            models: grouped(&by_model, CostGrouping::Model, zone),
            outlook: forecast(state, left).filter(|_| state.is_open()),
            repository: spent(i64::MIN)?,
            today: spent(began)?,
            user_today: state_folder(&ui::env_var)
                .and_then(|folder| user_spent_since(&folder, began)),
        })
    }

    fn as_json(&self) -> Value {
        json!({
            "run": self.run,
            "total": self.all.as_json(),
            "efficiency": Efficiency::of(&self.all.figures),
            "forecast": self.outlook,
            "subscription": self.state.costs.subscription,
            "today_usd": self.today,
            "user_today_usd": self.user_today,
            "repository_usd": self.repository,
            "stories": as_json(&self.stories),
            "models": as_json(&self.models),
        })
    }

    fn as_text(&self) -> String {
        let Some(run) = self.run else { return NOTHING.to_owned() };
        let (all, cost) = (&self.all, self.all.figures.cost);
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "run {} · {cost} spent{}", ui::short_run(run), assumed(all));
        if self.state.costs.subscription == Some(true) {
            text.push_str("a subscription pays; the costs are what the agents report\n");
        }
        let _ = writeln!(text, "{}", usage(&all.figures.usage));
        for line in [efficiency(all), self.outlook.as_ref().map(ui::to_go)].into_iter().flatten() {
            let _ = writeln!(text, "{line}");
        }
        let yours = self.user_today.map(|usd| format!(", {usd} in all your repositories"));
        let (today, yours, ever) = (self.today, yours.unwrap_or_default(), self.repository);
        let _ = writeln!(text, "today: {today} in this repository{yours} · all time: {ever}");
        for groups in [&self.stories, &self.models] {
            if !groups.is_empty() {
                let _ = write!(text, "\n{}", table(groups, all));
            }
        }
        text
    }
}

fn assumed(sums: &CostSums) -> String {
    match sums.assumed {
        0 => String::new(),
        some => format!(", estimated for {some} of {} iterations", sums.iterations),
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
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
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
fn table(groups: &[CostGroup], all: &CostSums) -> String {
    let Some(first) = groups.first() else { return NOTHING.to_owned() };
    let name = match first.by {
        CostGrouping::Story => "Story",
        CostGrouping::Day => "Day",
        CostGrouping::Model => "Model",
    };
    let heading = [name, "Iterations", "Cost", "In", "Out", "Cache read", "Cache written", ""];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(groups.iter().map(|group| cells(&group.name, &group.sums, &group.title)));
    if groups.len() > 1 && first.by != CostGrouping::Model {
        rows.push(cells("Total", all, ""));
    }
    format!("{}\n", ui::table(&rows, FIGURES).join("\n"))
}

/// `~` where a part of the cost is assumed.
fn cells(name: &str, sums: &CostSums, title: &str) -> [String; COLUMNS] {
    let about = if sums.assumed > 0 { "~" } else { "" };
    let cost = format!("{about}{}", sums.figures.cost);
    let [input, output, read, written] = tokens(&sums.figures.usage);
    let (iterations, title) = (sums.iterations.to_string(), visible_line(title));
    [visible_line(name), iterations, cost, input, output, read, written, title]
}

fn as_json(groups: &[CostGroup]) -> Value {
    groups.iter().map(CostGroup::as_json).collect()
}

/// With a heading; nothing at all without groups.
fn csv(groups: &[CostGroup]) -> String {
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

/// A `'` keeps spreadsheets from running text as a formula.
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
