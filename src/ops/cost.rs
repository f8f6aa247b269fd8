//! `ralph cost`: what was spent, for people, as JSON or as CSV.

mod render;
mod sums;

use std::path::Path;

use jiff::tz::TimeZone;
use serde_json::json;

use crate::decide::figures::{Efficiency, Forecast, forecast};
use crate::model::Usd;
use crate::runner::start_of_day;
use crate::state::RunState;
use crate::store::prd::PrdFile;
use crate::store::{Costs, state_folder, user_spent_since};
use crate::ui;

use super::error::CommandError;
use super::output::print;
use super::place::{now, open_tree, place_of, state_of, store_of};

pub use sums::CostGrouping;
use sums::{CostGroup, CostSums, grouped};

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
pub fn cost(prd: &Path, by: Option<CostGrouping>, format: CostFormat) -> Result<(), CommandError> {
    let loaded = PrdFile::new(prd).load()?;
    let tree = open_tree(prd)?;
    let store = store_of(&tree);
    let costs = if store.exists() { Some(store.costs()?) } else { None };
    if let Some(by) = by {
        return print(&all_runs(costs.as_ref(), by, format)?);
    }
    let state = state_of(&store, &place_of(&tree, prd)?)?;
    let run = LatestRun::of(&state, loaded.backlog.remaining(), costs.as_ref())?;
    print(&match format {
        CostFormat::Json => run.as_json(),
        CostFormat::Csv => render::csv(&run.stories),
        CostFormat::Text => render::run(&run),
    })
}

fn all_runs(
    costs: Option<&Costs>,
    by: CostGrouping,
    format: CostFormat,
) -> Result<String, CommandError> {
    let entries = match (costs, by) {
        (None, _) => Vec::new(),
        (Some(costs), CostGrouping::Model) => costs.by_model(None)?,
        (Some(costs), CostGrouping::Story | CostGrouping::Day) => costs.attempts(None)?,
    };
    let groups = grouped(&entries, by, &TimeZone::system());
    Ok(match format {
        CostFormat::Json => render::json(&groups),
        CostFormat::Csv => render::csv(&groups),
        CostFormat::Text => render::table(&groups, &CostSums::of(&entries)),
    })
}

impl<'a> LatestRun<'a> {
    /// `left`: stories that are neither done nor skipped.
    fn of(state: &'a RunState, left: usize, costs: Option<&Costs>) -> Result<Self, CommandError> {
        let run = state.run.as_ref().map(|run| run.run.as_str());
        let (attempts, by_model) = match costs {
            Some(costs) if run.is_some() => (costs.attempts(run)?, costs.by_model(run)?),
            _ => Default::default(),
        };
        let spent = |since| costs.map_or(Ok(Usd::ZERO), |costs| costs.spent_since(since));
        let (began, zone) = (start_of_day(now()), TimeZone::system());
        Ok(Self {
            state,
            run,
            all: CostSums::of(&attempts),
            stories: grouped(&attempts, CostGrouping::Story, &zone),
            models: grouped(&by_model, CostGrouping::Model, &zone),
            outlook: forecast(state, left).filter(|_| state.is_open()),
            repository: spent(i64::MIN)?,
            today: spent(began)?,
            user_today: state_folder(&ui::env_var)
                .and_then(|folder| user_spent_since(&folder, began)),
        })
    }

    fn as_json(&self) -> String {
        let value = json!({
            "run": self.run,
            "total": self.all.as_json(),
            "efficiency": Efficiency::of(&self.all.figures),
            "forecast": self.outlook,
            "subscription": self.state.costs.subscription,
            "today_usd": self.today,
            "user_today_usd": self.user_today,
            "repository_usd": self.repository,
            "stories": self.stories.iter().map(CostGroup::as_json).collect::<Vec<_>>(),
            "models": self.models.iter().map(CostGroup::as_json).collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }
}
