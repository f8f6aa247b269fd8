//! Budgets.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::id::StoryId;
use super::money::Usd;

/// The percentage from which ralph warns and throttles.
const ALERT: u64 = 80;

pub const MINUTE: i64 = 60_000;

/// None: no limit. Serialized for reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Budgets {
    pub per_iteration: Option<Usd>,
    pub per_story: Option<Usd>,
    pub per_run: Option<Usd>,
    /// The run's is the default: with a subscription it only warns.
    #[serde(skip)]
    pub run_by_default: bool,
    /// All runs of the repository.
    pub per_day: Option<Usd>,
    /// All repositories of the user.
    pub per_user_day: Option<Usd>,
    /// Pauses that grow from the alert on.
    pub throttle: bool,
}

/// What was spent since the day began, in runs of any process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpentToday {
    /// Milliseconds since the Unix epoch.
    pub began: i64,
    pub repository: Usd,
    pub user: Usd,
}

/// One of the budgets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    Story(StoryId),
    Run,
    Day,
    UserDay,
}

impl Budget {
    /// As in ralph.toml.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::Story(_) => "budget.per_story",
            Self::Run => "budget.per_run",
            Self::Day => "budget.per_day",
            Self::UserDay => "budget.per_user_day",
        }
    }

    pub fn flag(&self) -> &'static str {
        match self {
            Self::Story(_) => "--budget-story",
            Self::Run => "--budget",
            Self::Day => "--budget-day",
            Self::UserDay => "--budget-user-day",
        }
    }

    /// Where the money went: `$5 of $20 spent …`.
    pub fn place(&self) -> String {
        match self {
            Self::Story(story) => format!("on {story}"),
            Self::Run => "in this run".to_owned(),
            Self::Day => "in this repository today".to_owned(),
            Self::UserDay => "in all your repositories today".to_owned(),
        }
    }
}

/// How much of a budget is spent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLevel {
    pub budget: Budget,
    pub spent: Usd,
    pub limit: Usd,
    /// It stops its subject when it is used up; otherwise it only warns.
    pub binding: bool,
}

/// `$8.00 of $10.00 spent in this run`.
impl fmt::Display for BudgetLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} spent {}", self.spent, self.limit, self.budget.place())
    }
}

impl BudgetLevel {
    pub fn is_used_up(&self) -> bool {
        self.spent >= self.limit
    }

    pub fn is_near(&self) -> bool {
        self.spent.is_percent_of(ALERT, self.limit)
    }

    /// 1, 2, 4 or 8 minutes: from 80, 85, 90 or 95 percent on.
    pub fn pause(&self) -> i64 {
        let steps = [85, 90, 95].iter().filter(|step| self.spent.is_percent_of(**step, self.limit));
        MINUTE << steps.count()
    }
}
