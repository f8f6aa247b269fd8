//! What may be spent, and what follows when it nearly is or quite is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::decide::Moment;
use super::id::StoryId;
use super::money::Usd;
use super::policy::Policy;
use super::signal::{Escalation, EscalationKind};
use super::spending::Spending;
use super::state::RunState;

/// Told once, and throttled from here on.
const ALERT: u64 = 80;
const MINUTE: i64 = 60_000;
/// The least that an agent is allowed where nothing is left: it cannot be told "nothing".
const LEAST: Usd = Usd::from_cents(1);

/// None: no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    pub per_iteration: Option<Usd>,
    pub per_story: Option<Usd>,
    pub per_run: Option<Usd>,
    /// Nobody asked for the run's: where a subscription pays, it only alerts.
    pub run_by_default: bool,
    /// All runs of the repository.
    pub per_day: Option<Usd>,
    /// All repositories of the user.
    pub per_user_day: Option<Usd>,
    /// Longer and longer pauses from the alert on.
    pub throttle: bool,
}

/// What was spent since the day began, in runs of any process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Today {
    /// Milliseconds since the Unix epoch.
    pub began: i64,
    pub repository: Usd,
    pub user: Usd,
}

/// Which of them.
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

/// How much of a budget is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    pub budget: Budget,
    pub spent: Usd,
    pub limit: Usd,
    /// It stops what it is about when it is used up; else it only tells.
    pub binding: bool,
}

/// `$8.00 of $10.00 spent in this run`.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} spent {}", self.spent, self.limit, self.budget.place())
    }
}

impl Level {
    pub fn is_used_up(&self) -> bool {
        self.spent >= self.limit
    }

    fn is_near(&self) -> bool {
        self.spent.is_percent_of(ALERT, self.limit)
    }

    /// 1, 2, 4 and 8 minutes, in steps of five hundredths.
    fn pause(&self) -> i64 {
        let steps = [85, 90, 95].iter().filter(|step| self.spent.is_percent_of(**step, self.limit));
        MINUTE << steps.count()
    }
}

/// Everything that a decision about money depends on.
pub struct Purse<'a> {
    pub budgets: &'a Budgets,
    pub spending: &'a Spending,
    pub today: Today,
}

impl<'a> Purse<'a> {
    pub fn of(state: &'a RunState, policy: &'a Policy, moment: &Moment) -> Self {
        Self { budgets: &policy.budgets, spending: &state.spending, today: moment.today }
    }

    /// What ends the run.
    pub fn used_up(&self) -> Option<Level> {
        self.levels().find(|level| level.binding && level.is_used_up())
    }

    /// What is to be told, once for each limit; a day's, once a day.
    pub fn alert<'s>(&self, stories: impl Iterator<Item = (&'s StoryId, Usd)>) -> Option<Level> {
        let stories = stories.filter_map(|(id, spent)| self.of_story(id, spent));
        let near = self.levels().chain(stories).filter(Level::is_near);
        let mut due = near.filter(|level| !(level.binding && level.is_used_up()));
        due.find(|level| !self.was_told(level))
    }

    /// How long to pause before the next attempt.
    pub fn throttle(&self) -> Option<(Level, i64)> {
        let near = self.levels().filter(|level| level.binding && level.is_near());
        let paused = near.map(|level| (level.pause(), level));
        let (pause, level) = paused.max_by_key(|(pause, _)| *pause)?;
        self.budgets.throttle.then_some((level, pause))
    }

    /// The most that the next attempt may cost: the smallest rest of all. None: no limit.
    pub fn allowance(&self, story: &StoryId, spent_on_it: Usd) -> Option<Usd> {
        let binding = self.levels().filter(|level| level.binding);
        let rests = binding.chain(self.of_story(story, spent_on_it));
        let rests = rests.map(|level| level.limit.rest_after(level.spent).unwrap_or(LEAST));
        rests.chain(self.budgets.per_iteration).min()
    }

    /// The part of the tightest budget that is spent when `more` is; None without any.
    pub fn share(&self, story: &StoryId, spent_on_it: Usd, more: Usd) -> Option<f64> {
        let binding = self.levels().filter(|level| level.binding);
        let levels = binding.chain(self.of_story(story, spent_on_it));
        let spent = levels.map(|level| (level.spent + more, level.limit));
        let all = spent.chain(self.budgets.per_iteration.map(|limit| (more, limit)));
        all.map(|(spent, limit)| spent.part_of(limit)).reduce(f64::max)
    }

    /// In the order in which they are told.
    fn levels(&self) -> impl Iterator<Item = Level> {
        let pays = self.spending.subscription != Some(true);
        [
            (Budget::Run, self.budgets.per_run, self.spending.spent),
            (Budget::Day, self.budgets.per_day, self.today.repository),
            (Budget::UserDay, self.budgets.per_user_day, self.today.user),
        ]
        .into_iter()
        .filter_map(move |(budget, limit, spent)| {
            let by_default = budget == Budget::Run && self.budgets.run_by_default;
            Some(Level { budget, spent, limit: limit?, binding: pays || !by_default })
        })
    }

    fn of_story(&self, story: &StoryId, spent: Usd) -> Option<Level> {
        let limit = self.budgets.per_story?;
        Some(Level { budget: Budget::Story(story.clone()), spent, limit, binding: true })
    }

    fn was_told(&self, level: &Level) -> bool {
        let is_daily = matches!(level.budget, Budget::Day | Budget::UserDay);
        self.spending.alerted.get(&level.budget).is_some_and(|(limit, at)| {
            *limit == level.limit && (!is_daily || *at >= self.today.began)
        })
    }
}

/// The question about a story that has used up what it may cost.
pub fn story_question(story: &StoryId, spent: Usd, budgets: &Budgets) -> Option<Escalation> {
    let limit = budgets.per_story.filter(|limit| spent >= *limit)?;
    let options = [
        "Finish with the least that is needed, and say what is missing",
        "Find out first why it takes so much, then do the cheapest thing that works",
    ];
    Some(Escalation {
        kind: EscalationKind::Stuck,
        summary: format!("{spent} spent on {story}, and {limit} is what a story may cost"),
        context: format!(
            "`--budget-story USD` (or `budget.per_story` in ralph.toml, `none`: no limit) allows more. \
             Whatever goes on gets another {limit}."
        ),
        options: options.map(str::to_owned).to_vec(),
        question: format!("May {story} cost as much again?"),
        unread: None,
    })
}

#[cfg(test)]
mod tests;
