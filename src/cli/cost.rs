//! `ralph cost`: what was spent, for people, as JSON or as CSV.

mod csv;
mod sums;
mod text;

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::core::efficiency::Efficiency;
use crate::core::forecast::{Forecast, forecast};
use crate::core::money::Usd;
use crate::core::state::RunState;
use crate::engine::start_of_day;
use crate::store::books::{Books, UserBooks, state_folder};
use crate::store::prd::PrdFile;
use crate::ui;

use super::budget_args::{By, CostArgs};
use super::error::CliError;
use super::print;
use super::run::{open_tree, place_of};
use super::session::{fold, now};
use sums::{Group, Sums};

/// What people ask for without a word: the latest run, and what is round it.
struct Now<'a> {
    state: &'a RunState,
    run: Option<&'a str>,
    all: Sums,
    stories: Vec<Group>,
    models: Vec<Group>,
    outlook: Option<Forecast>,
    repository: Usd,
    today: Usd,
    /// None: nobody keeps it.
    user_today: Option<Usd>,
}

pub fn cost(args: &CostArgs) -> Result<u8, CliError> {
    let loaded = PrdFile::new(&args.prd).load()?;
    let tree = open_tree(&args.prd)?;
    let path = tree.common_dir().join("ralph/journal.db");
    let books = if path.exists() { Some(Books::open(&path)?) } else { None };
    let text = match args.by {
        Some(by) => grouped(args, &groups(books.as_ref(), by)?),
        None => {
            let state = fold(&tree, &place_of(&tree, &args.prd)?)?;
            let left = loaded.backlog.remaining();
            run(args, &latest(&state, left, books.as_ref())?)
        }
    };
    print(&text)?;
    Ok(0)
}

fn groups(books: Option<&Books>, by: By) -> Result<Vec<Group>, CliError> {
    let Some(books) = books else { return Ok(Vec::new()) };
    Ok(match by {
        By::Story => sums::by_story(&books.attempts(None)?),
        By::Day => sums::by_day(&books.attempts(None)?, &TimeZone::system()),
        By::Model => sums::by_model(&books.by_model(None)?),
    })
}

fn latest<'a>(
    state: &'a RunState,
    left: usize,
    books: Option<&Books>,
) -> Result<Now<'a>, CliError> {
    let run = state.run.as_ref().map(|run| run.run.as_str());
    let (mut attempts, mut by_model, mut repository, mut today) =
        (Vec::new(), Vec::new(), Usd::ZERO, Usd::ZERO);
    let began = start_of_day(now());
    if let Some(books) = books {
        repository = books.spent_since(i64::MIN)?;
        today = books.spent_since(began)?;
        if run.is_some() {
            attempts = books.attempts(run)?;
            by_model = books.by_model(run)?;
        }
    }
    let user = state_folder(&ui::env_var).and_then(|folder| UserBooks::look(&folder));
    Ok(Now {
        state,
        run,
        all: Sums::of(&attempts),
        stories: sums::by_story(&attempts),
        models: sums::by_model(&by_model),
        outlook: forecast(state, left).filter(|_| state.is_open()),
        repository,
        today,
        user_today: user.and_then(|user| user.spent_since(began).ok()),
    })
}

fn grouped(args: &CostArgs, groups: &[Group]) -> String {
    if args.json {
        let rows = groups.iter().map(Group::as_json).collect();
        format!("{:#}\n", Value::Array(rows))
    } else if args.csv {
        csv::text(groups)
    } else {
        text::table(groups)
    }
}

fn run(args: &CostArgs, now: &Now<'_>) -> String {
    if args.json {
        format!("{:#}\n", as_json(now))
    } else if args.csv {
        csv::text(&now.stories)
    } else {
        text::of_run(now)
    }
}

fn as_json(now: &Now<'_>) -> Value {
    let list = |groups: &[Group]| groups.iter().map(Group::as_json).collect::<Vec<_>>();
    json!({
        "run": now.run,
        "total": now.all.as_json(),
        "efficiency": Efficiency::of(&now.all.figures()),
        "forecast": now.outlook.map(|outlook| json!({
            "cost_usd": outlook.cost,
            "agent_ms": outlook.time_ms,
        })),
        "subscription": now.state.spending.subscription,
        "today_usd": now.today,
        "user_today_usd": now.user_today,
        "repository_usd": now.repository,
        "stories": list(&now.stories),
        "models": list(&now.models),
    })
}
