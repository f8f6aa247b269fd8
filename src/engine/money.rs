//! What an attempt may cost, what it did, and what others spent meanwhile.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::core::budget::{Purse, Today};
use crate::core::event::Event;
use crate::core::id::StoryId;
use crate::core::money::Usd;
use crate::core::spending::Bill;
use crate::store::books::{Books, UserBooks, UserBooksError};

use super::Engine;
use super::attempt::Report;
use super::error::EngineError;
use super::ports::Notice;

/// What a crash kept from the user's books is still found after so long.
const LOOK_BACK: i64 = 7 * 24 * 60 * 60 * 1000;

/// Where it is written down.
pub struct Accounts {
    pub books: Books,
    /// None: there is none, or what is spent here is not real.
    pub user: Option<UserBooks>,
    /// What the user's books call this repository.
    pub repository: String,
}

impl Engine {
    /// Looked at before something is started, because others may spend at the same time.
    pub(super) fn today(&mut self, now: i64) -> Result<Today, EngineError> {
        let budgets = &self.orders.policy.budgets;
        let (day, user_day) = (budgets.per_day.is_some(), budgets.per_user_day.is_some());
        if !self.state.in_flight.is_empty() || !(day || user_day) {
            return Ok(self.today);
        }
        let began = start_of_day(now);
        let accounts = &self.parts.accounts;
        let repository = if day { accounts.books.spent_since(began)? } else { Usd::ZERO };
        let user = match &accounts.user {
            Some(user) if user_day => user.spent_since(began).map_err(EngineError::UserBooks)?,
            _ => Usd::ZERO,
        };
        self.today = Today { began, repository, user };
        Ok(self.today)
    }

    /// The most that the next attempt at the story may cost.
    pub(super) fn allowance(&self, story: &StoryId) -> Option<Usd> {
        let spent = self.state.story(story).map(|known| known.spent).unwrap_or_default();
        let budgets = &self.orders.policy.budgets;
        let purse = Purse { budgets, spending: &self.state.spending, today: self.today };
        purse.allowance(story, spent)
    }

    /// How much of its tightest budget is spent with an attempt that cost this.
    pub(super) fn share(&self, story: &StoryId, cost: Usd) -> Option<f64> {
        let spent = self.state.story(story).map(|known| known.spent).unwrap_or_default();
        let budgets = &self.orders.policy.budgets;
        let purse = Purse { budgets, spending: &self.state.spending, today: self.today };
        purse.share(story, spent, cost)
    }

    pub(super) fn bill(&self, report: &Report) -> Bill {
        let read = &report.read;
        Bill {
            counted: Some(self.state.spending.count(&read.usage, read.known)),
            subscription: read.subscription,
            models: read.models.clone(),
        }
    }

    /// Attempts whose driver died: nobody can say what they cost.
    pub(super) fn lost_attempts(&self) -> Vec<Event> {
        let counted = self.state.spending.assumed();
        let lost = self.state.in_flight.values().map(|started| Event::AttemptLost {
            attempt: started.attempt.clone(),
            story: started.story.clone(),
            counted,
        });
        lost.collect()
    }

    /// What is in the journal goes into the user's books too, also what a crash kept from it.
    pub(super) fn tell_user_books(&mut self) -> Result<(), EngineError> {
        let since = (self.parts.clock)().saturating_sub(LOOK_BACK);
        let accounts = &mut self.parts.accounts;
        let Some(user) = &mut accounts.user else { return Ok(()) };
        let told = user.take_over(&accounts.books, &accounts.repository, since);
        told.or_else(|error| self.without_user_books(error))
    }

    fn without_user_books(&mut self, error: UserBooksError) -> Result<(), EngineError> {
        if self.orders.policy.budgets.per_user_day.is_some() {
            return Err(EngineError::UserBooks(error));
        }
        self.parts.accounts.user = None;
        let text = format!("what you spend over all repositories is not kept: {error}");
        self.notice(Notice::Warning(text));
        Ok(())
    }

    /// Not every agent can be told what it may cost.
    pub(super) fn say_what_is_not_kept(&mut self) {
        let budgets = &self.orders.policy.budgets;
        let own = [budgets.per_iteration, budgets.per_story, budgets.per_day, budgets.per_user_day];
        let is_set = own.iter().any(Option::is_some)
            || (budgets.per_run.is_some() && !budgets.run_by_default);
        if is_set && !self.parts.agent.keeps_an_allowance() {
            let agent = self.parts.agent.label();
            let text = format!(
                "budgets are looked at between iterations: `{agent}` cannot be told what it may cost"
            );
            self.notice(Notice::Info(text));
        }
    }

    pub(super) fn say_what_was_too_dear(&mut self, counted: Usd) {
        let limit = self.orders.policy.budgets.per_iteration;
        // One that can keep it has said itself that it was too much.
        let limit =
            limit.filter(|limit| counted > *limit && !self.parts.agent.keeps_an_allowance());
        if let Some(limit) = limit {
            let text = format!(
                "the iteration cost {counted}, and {limit} is what one may cost \
                 (`--budget-iteration`)"
            );
            self.notice(Notice::Warning(text));
        }
    }
}

/// The day in the machine's time zone.
pub fn start_of_day(now: i64) -> i64 {
    let start = || {
        let moment = Timestamp::from_millisecond(now).ok()?.to_zoned(TimeZone::system());
        Some(moment.start_of_day().ok()?.timestamp().as_millisecond())
    };
    start().unwrap_or(now)
}
