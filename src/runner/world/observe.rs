//! What is known before each decision: progress, free disk space, money.

use std::time::Duration;

use crate::decide::budget::BudgetCheck;
use crate::decide::situation::{FreeDisk, Observed, Tasks};
use crate::files::atomic::free_space;
use crate::model::{ConfigNotice, Event, Notice, SpentToday, StoryId, Usd, millis};
use crate::runner::error::{Result, RunnerError};
use crate::runner::log::RunLog;
use crate::store::{Costs, StoreError, UserCosts};

use super::World;

impl World {
    pub(super) fn look_around(&mut self, log: &mut RunLog) -> Result<Observed> {
        let policy = self.config.settings.stuck;
        self.running.values_mut().for_each(|running| running.scan_if_due(&policy));
        let agents: Duration = self.running.values().map(|running| running.busy()).sum();
        let gates: Duration = self.gates.iter().map(|(.., since)| since.elapsed()).sum();
        // After low disk space ended an agent it stays low: the next agent would fill the disk
        // again.
        let disk = self.disk_was_low.clone().or_else(|| self.free_disk());
        let floor = self.config.policy.min_free_disk.unwrap_or_default();
        let runs = !self.running.is_empty() || !self.gates.is_empty();
        if runs && disk.as_ref().is_some_and(|disk| disk.bytes < floor) {
            self.disk_was_low.clone_from(&disk);
        }
        Ok(Observed {
            now: log.now(),
            busy_ms: millis(agents + gates),
            disk,
            stuck: self.stuck_dues(),
            today: self.spent_today(log)?,
            backlog_usable: self.env.backlog.problem().is_none(),
            tasks: Tasks::default(),
        })
    }

    /// Agents write to the work tree, ralph to the git folder.
    fn free_disk(&self) -> Option<FreeDisk> {
        self.config.policy.min_free_disk?;
        let places = [self.env.home.root(), self.env.home.common_dir()];
        let measured = places.into_iter().filter_map(|place| {
            Some(FreeDisk { bytes: free_space(place)?, place: place.display().to_string() })
        });
        measured.min_by_key(|disk| disk.bytes)
    }
}

/// The stores that have costs.
pub struct CostStores {
    pub repository: Costs,
    /// None: it cannot be opened, or the costs are not real.
    pub user: Option<UserCosts>,
}

impl World {
    /// Checked before each start, because other runs may spend at the same time.
    pub(super) fn spent_today(&mut self, log: &RunLog) -> Result<SpentToday> {
        let budgets = &self.config.policy.budgets;
        let (day, user_day) = (budgets.per_day.is_some(), budgets.per_user_day.is_some());
        let lanes = usize::try_from(self.config.policy.lanes.get()).unwrap_or(usize::MAX);
        if log.state.attempts.count() >= lanes || !(day || user_day) {
            return Ok(self.today);
        }
        let began = self.env.clock.start_of_day();
        let costs = &self.env.costs;
        let repository = if day { costs.repository.spent_since(began)? } else { Usd::ZERO };
        let user = match &costs.user {
            Some(user) if user_day => user.spent_since(began).map_err(RunnerError::UserCosts)?,
            _ => Usd::ZERO,
        };
        self.today = SpentToday { began, repository, user };
        Ok(self.today)
    }

    /// The most that the next attempt at the story may cost.
    pub(super) fn allowance(&self, log: &RunLog, story: &StoryId) -> Option<Usd> {
        let spent = log.state.story(story).map(|known| known.spent).unwrap_or_default();
        let policy = &self.config.policy;
        let in_flight = u32::try_from(log.state.attempts.count()).unwrap_or(u32::MAX);
        let check = BudgetCheck {
            budgets: &policy.budgets,
            costs: &log.state.costs,
            today: self.today,
            reserved: log.state.attempts.reserved(),
        };
        check.allowance(story, spent, policy.lanes.get().saturating_sub(in_flight))
    }

    /// Attempts whose driver died, with estimated costs.
    pub(super) fn lost_attempts(log: &RunLog) -> Vec<Event> {
        let counted = log.state.costs.assumed();
        let lost = log.state.attempts.iter().map(|flight| Event::AttemptLost {
            attempt: flight.start.attempt.clone(),
            story: flight.start.story.clone(),
            counted,
        });
        lost.collect()
    }

    /// Copies new costs from the journal to the user's costs, including those missed by a crash.
    pub(super) fn copy_user_costs(&mut self, log: &mut RunLog) -> Result<()> {
        let Some(user) = &self.env.costs.user else { return Ok(()) };
        let is_needed = self.config.policy.budgets.per_user_day.is_some();
        let copied = if is_needed { user.take_over_now() } else { user.take_over() };
        copied.or_else(|error| self.without_user_costs(log, error))
    }

    fn without_user_costs(&mut self, log: &mut RunLog, error: StoreError) -> Result<()> {
        if self.config.policy.budgets.per_user_day.is_some() {
            return Err(RunnerError::UserCosts(error));
        }
        self.env.costs.user = None;
        log.notice(Notice::Config(ConfigNotice::UserCostsNotKept { problem: error.to_string() }));
        Ok(())
    }

    /// Warns if the agent cannot enforce its allowance.
    pub(super) fn warn_unkept_budgets(&self, log: &mut RunLog) {
        let budgets = &self.config.policy.budgets;
        let own = [budgets.per_iteration, budgets.per_story, budgets.per_day, budgets.per_user_day];
        let is_set = own.iter().any(Option::is_some)
            || (budgets.per_run.is_some() && !budgets.run_by_default);
        if is_set && !self.config.agent_keeps_allowance {
            let agent = self.env.agent.label();
            log.notice(Notice::Config(ConfigNotice::BudgetsBetweenIterations { agent }));
        }
    }
}
