//! What a run has spent so far, with estimates for unknown costs.

use std::collections::BTreeMap;

use crate::model::{
    AttemptCost, Budget, BudgetLevel, CostCertainty, Event, Recorded, Usage, Usd, Wait, WaitFor,
};

/// A run's costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCosts {
    /// The sum over all attempts.
    pub spent: Usd,
    /// Attempts that did not report their cost.
    pub unknown: u32,
    pub subscription: Option<bool>,
    /// Alerts that were given, with the limit and the time.
    pub alerted: BTreeMap<Budget, (Usd, i64)>,
    /// The pause before the next attempt.
    pub pause: Option<ThrottlePause>,
    /// Reported costs above zero, sorted.
    stated: Vec<Usd>,
    paid: Usd,
    /// Tokens read by those attempts, cache included.
    tokens: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ThrottlePause {
    /// Milliseconds since the Unix epoch.
    pub until: i64,
    pub level: BudgetLevel,
    /// The human skipped it.
    pub cut_short: bool,
}

impl RunCosts {
    pub fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::AttemptStarted(_) => self.pause = None,
            Event::AttemptEnded(end) => self.add(&end.usage, &end.cost),
            Event::AttemptLost { counted, .. } => self.lose(*counted),
            Event::BudgetNear { level } => {
                self.alerted.insert(level.budget.clone(), (level.limit, recorded.at));
            }
            Event::Throttled { level, until } => {
                let (until, level) = (*until, level.clone());
                self.pause = Some(ThrottlePause { until, level, cut_short: false });
            }
            Event::WaitCutShort => self.pause.iter_mut().for_each(|pause| pause.cut_short = true),
            _ => {}
        }
    }

    /// The pause that makes a budget last.
    pub fn wait(&self, now: i64) -> Option<Wait> {
        let pause = self.pause.as_ref().filter(|pause| !pause.cut_short && now < pause.until)?;
        let error = format!("{}; pausing to make it last", pause.level);
        Some(Wait { what: WaitFor::Budget, error, until: pause.until })
    }

    /// What an attempt with this end counts as.
    pub fn count(&self, usage: &Usage, known: CostCertainty) -> Usd {
        let stated = usage.cost_usd.map(Usd::of);
        match (known, stated) {
            (CostCertainty::Whole, Some(stated)) => stated,
            (CostCertainty::Nothing, stated) => stated.unwrap_or_default(),
            (_, stated) => {
                let seen = stated.unwrap_or_default().max(self.price_of(usage.tokens_read()));
                seen.max(self.median().unwrap_or_default())
            }
        }
    }

    /// What an attempt counts as if only its start is known.
    pub fn assumed(&self) -> Usd {
        self.count(&Usage::default(), CostCertainty::Part)
    }

    fn add(&mut self, usage: &Usage, cost: &AttemptCost) {
        self.subscription = cost.subscription.or(self.subscription);
        let counted = cost.counted(usage);
        self.spent += counted;
        let stated = usage.cost_usd.map(Usd::of);
        self.unknown += u32::from(stated != Some(counted));
        if let Some(stated) = stated.filter(|stated| *stated == counted && *stated > Usd::ZERO) {
            let place = self.stated.partition_point(|cost| *cost <= stated);
            self.stated.insert(place, stated);
            self.paid += stated;
            self.tokens = self.tokens.saturating_add(usage.tokens_read());
        }
    }

    fn lose(&mut self, counted: Usd) {
        self.spent += counted;
        self.unknown += 1;
    }

    fn median(&self) -> Option<Usd> {
        self.stated.get(self.stated.len() / 2).copied()
    }

    /// At the run's price per token so far.
    fn price_of(&self, tokens: u64) -> Usd {
        if self.tokens == 0 {
            return Usd::ZERO;
        }
        Usd::of(self.paid.as_f64() * tokens as f64 / self.tokens as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cost_usd: Option<f64>, tokens: u64) -> Usage {
        Usage { cost_usd, input_tokens: tokens, ..Usage::default() }
    }

    fn spent(costs: &[f64]) -> RunCosts {
        let mut spending = RunCosts::default();
        for cost in costs {
            spending.add(&usage(Some(*cost), 1000), &AttemptCost::default());
        }
        spending
    }

    #[test]
    fn what_is_not_known_counts_as_the_larger_of_what_was_seen_and_the_median() {
        for (before, ended, known, counted) in [
            (&[][..], usage(Some(0.5), 0), CostCertainty::Whole, 0.5),
            (&[9.0], usage(Some(0.5), 0), CostCertainty::Whole, 0.5),
            (&[9.0], usage(Some(0.0), 0), CostCertainty::Whole, 0.0),
            (&[], usage(None, 5000), CostCertainty::Part, 0.0),
            (&[1.0, 2.0, 9.0], usage(None, 0), CostCertainty::Part, 2.0),
            (&[1.0, 2.0, 9.0], usage(Some(5.0), 0), CostCertainty::Part, 5.0),
            (&[1.0, 2.0, 9.0], usage(Some(0.5), 0), CostCertainty::Part, 2.0),
            // 12 dollars for 3,000 tokens.
            (&[1.0, 2.0, 9.0], usage(None, 2000), CostCertainty::Part, 8.0),
            (&[1.0, 2.0, 9.0], usage(None, 100), CostCertainty::Part, 2.0),
            // Attempts without cost say nothing about the others.
            (&[0.0, 0.0, 0.0, 3.0], usage(None, 0), CostCertainty::Part, 3.0),
            (&[1.0, 2.0, 9.0], usage(None, 0), CostCertainty::Nothing, 0.0),
        ] {
            let found = spent(before).count(&ended, known);
            assert_eq!(found, Usd::of(counted), "{before:?} {ended:?} {known:?}");
        }
    }

    #[test]
    fn what_was_assumed_is_spent_and_no_measure_for_the_next() {
        let mut spending = spent(&[1.0]);
        let cost = AttemptCost { counted: Some(Usd::from_cents(700)), ..AttemptCost::default() };
        spending.add(&usage(None, 0), &cost);
        spending.add(&usage(Some(2.0), 0), &cost);
        spending.lose(Usd::from_cents(100));
        assert_eq!((spending.spent, spending.unknown), (Usd::from_cents(1600), 3));
        assert_eq!(spending.assumed(), Usd::from_cents(100));
    }

    #[test]
    fn a_journal_without_attempt_costs_counts_the_stated_costs() {
        let cost: AttemptCost = serde_json::from_str("{}").unwrap();
        assert_eq!(cost.counted(&usage(Some(0.25), 0)), Usd::of(0.25));
        assert_eq!(cost.counted(&usage(None, 0)), Usd::ZERO);
    }

    #[test]
    fn who_pays_is_known_from_the_last_one_who_could_tell() {
        let mut spending = RunCosts::default();
        for (said, known) in
            [(None, None), (Some(true), Some(true)), (None, Some(true)), (Some(false), Some(false))]
        {
            let cost = AttemptCost { subscription: said, ..AttemptCost::default() };
            spending.add(&usage(None, 0), &cost);
            assert_eq!(spending.subscription, known);
        }
    }
}
