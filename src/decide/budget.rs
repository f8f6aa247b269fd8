//! Budgets: alerts, throttling, allowances and the end.

use crate::decide::situation::Situation;
use crate::model::{
    Budget, BudgetLevel, Budgets, Escalation, EscalationKind, SpentToday, StoryId, Usd,
};
use crate::state::RunCosts;

/// The smallest allowance: an agent cannot be started with zero.
const LEAST: Usd = Usd::from_cents(1);

/// Everything that a decision about money depends on.
pub struct BudgetCheck<'a> {
    pub budgets: &'a Budgets,
    pub costs: &'a RunCosts,
    pub today: SpentToday,
    /// Allowances of attempts in flight.
    pub reserved: Usd,
}

impl<'a> BudgetCheck<'a> {
    pub fn of(now: &Situation<'a>) -> Self {
        let (budgets, costs) = (&now.policy.budgets, &now.state.costs);
        let (today, reserved) = (now.observed.today, now.state.attempts.reserved());
        Self { budgets, costs, today, reserved }
    }

    /// The budget that ends the run.
    pub fn used_up(&self) -> Option<BudgetLevel> {
        self.levels().find(|level| level.binding && level.is_used_up())
    }

    /// The next alert: once per limit; for a day's limit once a day.
    pub fn alert<'s>(&self, all: impl Iterator<Item = (&'s StoryId, Usd)>) -> Option<BudgetLevel> {
        let stories = all.filter_map(|(id, spent)| self.of_story(id, spent));
        let near = self.levels().chain(stories).filter(BudgetLevel::is_near);
        let mut due = near.filter(|level| !(level.binding && level.is_used_up()));
        due.find(|level| !self.was_told(level))
    }

    /// How long to pause before the next attempt.
    pub fn throttle(&self) -> Option<(BudgetLevel, i64)> {
        let near = self.levels().filter(|level| level.binding && level.is_near());
        let paused = near.map(|level| (level.pause(), level));
        let (pause, level) = paused.max_by_key(|(pause, _)| *pause)?;
        self.budgets.throttle.then_some((level, pause))
    }

    /// The rest is reserved for attempts in flight.
    pub fn is_reserved(&self) -> bool {
        let mut binding = self.levels().filter(|level| level.binding);
        self.reserved > Usd::ZERO
            && binding.any(|level| level.limit.rest_after(level.spent + self.reserved).is_none())
    }

    /// The most that the next attempt may cost: the smallest remaining budget, shared equally by the
    /// free lanes. None: no limit.
    pub fn allowance(&self, story: &StoryId, spent_on_it: Usd, free_lanes: u32) -> Option<Usd> {
        let binding = self.levels().filter(|level| level.binding);
        let rests = binding.map(|level| {
            let rest = level.limit.rest_after(level.spent + self.reserved);
            rest.map_or(LEAST, |rest| rest.split(free_lanes).max(LEAST.min(rest)))
        });
        let own = self.of_story(story, spent_on_it);
        let own = own.map(|level| level.limit.rest_after(level.spent).unwrap_or(LEAST));
        rests.chain(own).chain(self.budgets.per_iteration).min()
    }

    /// The share of the tightest budget that is spent, including `more`; None without a budget.
    pub fn share(&self, story: &StoryId, spent_on_it: Usd, more: Usd) -> Option<f64> {
        let binding = self.levels().filter(|level| level.binding);
        let levels = binding.chain(self.of_story(story, spent_on_it));
        let spent = levels.map(|level| (level.spent + more, level.limit));
        let all = spent.chain(self.budgets.per_iteration.map(|limit| (more, limit)));
        all.map(|(spent, limit)| spent.part_of(limit)).reduce(f64::max)
    }

    /// In the order in which they are reported.
    fn levels(&self) -> impl Iterator<Item = BudgetLevel> {
        let pays = self.costs.subscription != Some(true);
        [
            (Budget::Run, self.budgets.per_run, self.costs.spent),
            (Budget::Day, self.budgets.per_day, self.today.repository),
            (Budget::UserDay, self.budgets.per_user_day, self.today.user),
        ]
        .into_iter()
        .filter_map(move |(budget, limit, spent)| {
            let by_default = budget == Budget::Run && self.budgets.run_by_default;
            Some(BudgetLevel { budget, spent, limit: limit?, binding: pays || !by_default })
        })
    }

    fn of_story(&self, story: &StoryId, spent: Usd) -> Option<BudgetLevel> {
        let limit = self.budgets.per_story?;
        Some(BudgetLevel { budget: Budget::Story(story.clone()), spent, limit, binding: true })
    }

    fn was_told(&self, level: &BudgetLevel) -> bool {
        let is_daily = matches!(level.budget, Budget::Day | Budget::UserDay);
        self.costs.alerted.get(&level.budget).is_some_and(|(limit, at)| {
            *limit == level.limit && (!is_daily || *at >= self.today.began)
        })
    }
}

/// The question about a story that used up its budget.
pub fn story_question(story: &StoryId, spent: Usd, budgets: &Budgets) -> Option<Escalation> {
    let limit = budgets.per_story.filter(|limit| spent >= *limit)?;
    let options = [
        "Finish with the least work, and say what is missing",
        "First find out why it costs so much, then do the cheapest thing that works",
    ];
    let summary = format!("{story} has cost {spent}; the limit is {limit}");
    let context = format!(
        "If it continues, it may cost another {limit}. Change the limit with `--budget-story USD` \
         or `budget.per_story` in ralph.toml (`none`: no limit)."
    );
    let question = format!("May {story} cost another {limit}?");
    let (kind, options) = (EscalationKind::Stuck, options.map(str::to_owned).to_vec());
    Some(Escalation { kind, summary, context, options, question, unread: None })
}

#[cfg(test)]
mod tests;
