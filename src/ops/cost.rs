//! `ralph cost`: what was spent, for people, as JSON or as CSV.

mod csv;
mod sums;
mod text;

use std::path::Path;

use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sums::{CostGroup, CostSums};

use crate::decide::efficiency::Efficiency;
use crate::decide::forecast::{Forecast, forecast};
use crate::model::Usd;
use crate::runner::start_of_day;
use crate::state::RunState;
use crate::store::prd::PrdFile;
use crate::store::{Costs, state_folder, user_spent_since};
use crate::ui;

use super::error::CommandError;
use super::place::{fold, now, open_tree, place_of, store_of};
use super::print;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostGrouping {
    Story,
    Day,
    Model,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostFormat {
    Text,
    Json,
    Csv,
}

/// What people ask for without a word: the latest run, and what is round it.
struct LatestRun<'a> {
    state: &'a RunState,
    run: Option<&'a str>,
    all: CostSums,
    stories: Vec<CostGroup>,
    models: Vec<CostGroup>,
    outlook: Option<Forecast>,
    repository: Usd,
    today: Usd,
    /// None: nobody keeps it.
    user_today: Option<Usd>,
}

/// `by`: all runs of the repository, grouped by this; else the latest run.
pub fn cost(prd: &Path, by: Option<CostGrouping>, format: CostFormat) -> Result<(), CommandError> {
    let loaded = PrdFile::new(prd).load()?;
    let tree = open_tree(prd)?;
    let store = store_of(&tree);
    let costs = if store.exists() { Some(store.costs()?) } else { None };
    let text = match by {
        Some(by) => grouped(format, &groups(costs.as_ref(), by)?),
        None => {
            let state = fold(&store, &place_of(&tree, prd)?)?;
            let left = loaded.backlog.remaining();
            run(format, &latest(&state, left, costs.as_ref())?)
        }
    };
    print(&text)
}

fn groups(costs: Option<&Costs>, by: CostGrouping) -> Result<Vec<CostGroup>, CommandError> {
    let Some(costs) = costs else { return Ok(Vec::new()) };
    Ok(match by {
        CostGrouping::Story => sums::by_story(&costs.attempts(None)?),
        CostGrouping::Day => sums::by_day(&costs.attempts(None)?, &TimeZone::system()),
        CostGrouping::Model => sums::by_model(&costs.by_model(None)?),
    })
}

fn latest<'a>(
    state: &'a RunState,
    left: usize,
    costs: Option<&Costs>,
) -> Result<LatestRun<'a>, CommandError> {
    let run = state.run.as_ref().map(|run| run.run.as_str());
    let (mut attempts, mut by_model, mut repository, mut today) =
        (Vec::new(), Vec::new(), Usd::ZERO, Usd::ZERO);
    let began = start_of_day(now());
    if let Some(costs) = costs {
        repository = costs.spent_since(i64::MIN)?;
        today = costs.spent_since(began)?;
        if run.is_some() {
            attempts = costs.attempts(run)?;
            by_model = costs.by_model(run)?;
        }
    }
    let state_folder = state_folder(&ui::env_var);
    Ok(LatestRun {
        state,
        run,
        all: CostSums::of(&attempts),
        stories: sums::by_story(&attempts),
        models: sums::by_model(&by_model),
        outlook: forecast(state, left).filter(|_| state.is_open()),
        repository,
        today,
        user_today: state_folder.and_then(|folder| user_spent_since(&folder, began)),
    })
}

fn grouped(format: CostFormat, groups: &[CostGroup]) -> String {
    match format {
        CostFormat::Json => {
            format!("{:#}\n", Value::Array(groups.iter().map(CostGroup::as_json).collect()))
        }
        CostFormat::Csv => csv::text(groups),
        CostFormat::Text => text::table(groups),
    }
}

fn run(format: CostFormat, now: &LatestRun<'_>) -> String {
    match format {
        CostFormat::Json => format!("{:#}\n", as_json(now)),
        CostFormat::Csv => csv::text(&now.stories),
        CostFormat::Text => text::of_run(now),
    }
}

fn as_json(now: &LatestRun<'_>) -> Value {
    let list = |groups: &[CostGroup]| groups.iter().map(CostGroup::as_json).collect::<Vec<_>>();
    json!({
        "run": now.run,
        "total": now.all.as_json(),
        "efficiency": Efficiency::of(&now.all.figures()),
        "forecast": now.outlook.map(|outlook| json!({
            "cost_usd": outlook.cost,
            "agent_ms": outlook.time_ms,
        })),
        "subscription": now.state.costs.subscription,
        "today_usd": now.today,
        "user_today_usd": now.user_today,
        "repository_usd": now.repository,
        "stories": list(&now.stories),
        "models": list(&now.models),
    })
}
