//! What can be typed about money.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::settings::BudgetFlags;

#[derive(Clone, Debug, Args)]
pub struct BudgetArgs {
    /// Stop when the run has cost so many dollars, `none` for no limit [env: RALPH_BUDGET]
    /// [default: 25; only told where a subscription pays]
    #[arg(long, value_name = "USD")]
    pub budget: Option<String>,
    /// The most that one iteration may cost; Claude Code ends itself there
    #[arg(long, value_name = "USD")]
    pub budget_iteration: Option<String>,
    /// The most that one story may cost: then you are asked, and the others go on
    #[arg(long, value_name = "USD")]
    pub budget_story: Option<String>,
    /// The most that all runs of this repository may cost in a day
    #[arg(long, value_name = "USD")]
    pub budget_day: Option<String>,
    /// The most that all your runs may cost in a day, in any repository
    #[arg(long, value_name = "USD")]
    pub budget_user_day: Option<String>,
}

impl From<BudgetArgs> for BudgetFlags {
    fn from(args: BudgetArgs) -> Self {
        Self {
            per_iteration: args.budget_iteration,
            per_story: args.budget_story,
            per_run: args.budget,
            per_day: args.budget_day,
            per_user_day: args.budget_user_day,
        }
    }
}

#[derive(Debug, Args)]
#[command(
    about = "Show what was spent",
    long_about = "Show what was spent.\n\n\
        The latest run of the backlog: its cost, tokens, turns and tool calls, what it made of \
        them, what is probably still to come, and its stories. With `--by` it is everything that \
        was ever run in this repository, by story, by day or by model. Costs are what agents say; \
        where one was killed before it could, the larger of what was seen and the run's median \
        counts, and such rows say so. Changes nothing, and works while a run goes on.",
    after_help = "Examples:\n  \
        ralph cost\n  \
        ralph cost plans/auth.json --json\n  \
        ralph cost --by day\n  \
        ralph cost --by story --csv > cost.csv"
)]
pub struct CostArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// All runs of the repository, summed up by this
    #[arg(long, value_name = "WHAT")]
    pub by: Option<By>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// As comma-separated values with a heading
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Story,
    /// In the machine's time zone
    Day,
    Model,
}
