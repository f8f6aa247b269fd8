//! What a run has spent so far, and what may be assumed where nobody can tell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::budget::{Budget, Level};
use super::event::Usage;
use super::money::Usd;

/// What an attempt costs, as far as budgets are concerned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bill {
    /// What it counts as: what the agent says, else what may be assumed. None in older journals.
    #[serde(default)]
    pub counted: Option<Usd>,
    /// A subscription pays and not the dollar. None: nobody can tell.
    #[serde(default)]
    pub subscription: Option<bool>,
    #[serde(default)]
    pub models: Vec<ModelUse>,
}

impl Bill {
    pub fn counted(&self, usage: &Usage) -> Usd {
        self.counted.or(usage.cost_usd.map(Usd::of)).unwrap_or_default()
    }
}

/// What one model did of an attempt, sub-agents included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUse {
    pub model: String,
    #[serde(default)]
    pub cost: Usd,
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    #[serde(default)]
    pub cache_read_tokens: u64,
    #[serde(default)]
    pub cache_write_tokens: u64,
}

/// How sure it is what an attempt cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Its agent said it at its end.
    Whole,
    /// It was ended before it could say all of it.
    Part,
    /// It never began: no request was made.
    Nothing,
}

/// The part of a run's state that is about money.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spending {
    /// What every attempt of the run counts as, together.
    pub spent: Usd,
    /// How many of them did not say what they cost.
    pub unknown: u32,
    pub subscription: Option<bool>,
    /// What was told to be nearly used up, with the limit and the time.
    pub alerted: BTreeMap<Budget, (Usd, i64)>,
    /// The pause before the next attempt.
    pub pause: Option<Pause>,
    /// What was paid for stated costs, sorted; what cost nothing says nothing.
    stated: Vec<Usd>,
    /// What those read, the cache included.
    tokens: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    /// Milliseconds since the Unix epoch.
    pub until: i64,
    pub level: Level,
    /// The human does not want to wait.
    pub cut_short: bool,
}

impl Pause {
    pub fn is_on(&self, now: i64) -> bool {
        !self.cut_short && now < self.until
    }

    pub fn describe(&self) -> String {
        format!("{}; pausing to make it last", self.level)
    }
}

impl Spending {
    /// What an attempt counts as that ends like this.
    pub fn count(&self, usage: &Usage, known: Known) -> Usd {
        let stated = usage.cost_usd.map(Usd::of);
        match (known, stated) {
            (Known::Whole, Some(stated)) => stated,
            (Known::Nothing, stated) => stated.unwrap_or_default(),
            (_, stated) => {
                let seen = stated.unwrap_or_default().max(self.price_of(read_tokens(usage)));
                seen.max(self.median().unwrap_or_default())
            }
        }
    }

    /// What an attempt counts as of which nothing is known but that it was started.
    pub fn assumed(&self) -> Usd {
        self.count(&Usage::default(), Known::Part)
    }

    pub fn add(&mut self, usage: &Usage, bill: &Bill) {
        self.subscription = bill.subscription.or(self.subscription);
        let counted = bill.counted(usage);
        self.spent += counted;
        let stated = usage.cost_usd.map(Usd::of);
        self.unknown += u32::from(stated != Some(counted));
        if let Some(stated) = stated.filter(|stated| *stated == counted && *stated > Usd::ZERO) {
            let place = self.stated.partition_point(|cost| *cost <= stated);
            self.stated.insert(place, stated);
            self.tokens += read_tokens(usage);
        }
    }

    pub fn lose(&mut self, counted: Usd) {
        self.spent += counted;
        self.unknown += 1;
    }

    fn median(&self) -> Option<Usd> {
        self.stated.get(self.stated.len() / 2).copied()
    }

    /// At the price that the run paid so far.
    fn price_of(&self, tokens: u64) -> Usd {
        if self.tokens == 0 {
            return Usd::ZERO;
        }
        let paid: Usd = self.stated.iter().copied().sum();
        Usd::of(paid.as_f64() * tokens as f64 / self.tokens as f64)
    }
}

/// What a request sends is seen before its answer is there.
fn read_tokens(usage: &Usage) -> u64 {
    usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cost_usd: Option<f64>, tokens: u64) -> Usage {
        Usage { cost_usd, input_tokens: tokens, ..Usage::default() }
    }

    fn spent(costs: &[f64]) -> Spending {
        let mut spending = Spending::default();
        for cost in costs {
            spending.add(&usage(Some(*cost), 1000), &Bill::default());
        }
        spending
    }

    #[test]
    fn what_is_not_known_counts_as_the_larger_of_what_was_seen_and_the_median() {
        for (before, ended, known, counted) in [
            (&[][..], usage(Some(0.5), 0), Known::Whole, 0.5),
            (&[9.0], usage(Some(0.5), 0), Known::Whole, 0.5),
            (&[9.0], usage(Some(0.0), 0), Known::Whole, 0.0),
            (&[], usage(None, 5000), Known::Part, 0.0),
            (&[1.0, 2.0, 9.0], usage(None, 0), Known::Part, 2.0),
            (&[1.0, 2.0, 9.0], usage(Some(5.0), 0), Known::Part, 5.0),
            (&[1.0, 2.0, 9.0], usage(Some(0.5), 0), Known::Part, 2.0),
            // 12 dollars for 3,000 tokens.
            (&[1.0, 2.0, 9.0], usage(None, 2000), Known::Part, 8.0),
            (&[1.0, 2.0, 9.0], usage(None, 100), Known::Part, 2.0),
            // A bad day costs nothing, and says nothing about a good one.
            (&[0.0, 0.0, 0.0, 3.0], usage(None, 0), Known::Part, 3.0),
            (&[1.0, 2.0, 9.0], usage(None, 0), Known::Nothing, 0.0),
        ] {
            let found = spent(before).count(&ended, known);
            assert_eq!(found, Usd::of(counted), "{before:?} {ended:?} {known:?}");
        }
    }

    #[test]
    fn what_was_assumed_is_spent_and_no_measure_for_the_next() {
        let mut spending = spent(&[1.0]);
        let bill = Bill { counted: Some(Usd::dollars(7)), ..Bill::default() };
        spending.add(&usage(None, 0), &bill);
        spending.add(&usage(Some(2.0), 0), &bill);
        spending.lose(Usd::dollars(1));
        assert_eq!((spending.spent, spending.unknown), (Usd::dollars(16), 3));
        assert_eq!(spending.assumed(), Usd::dollars(1));
    }

    #[test]
    fn a_journal_from_before_there_were_bills_counts_what_was_stated() {
        let bill: Bill = serde_json::from_str("{}").unwrap();
        assert_eq!(bill.counted(&usage(Some(0.25), 0)), Usd::of(0.25));
        assert_eq!(bill.counted(&usage(None, 0)), Usd::ZERO);
    }

    #[test]
    fn who_pays_is_known_from_the_last_one_who_could_tell() {
        let mut spending = Spending::default();
        for (said, known) in
            [(None, None), (Some(true), Some(true)), (None, Some(true)), (Some(false), Some(false))]
        {
            let bill = Bill { subscription: said, ..Bill::default() };
            spending.add(&usage(None, 0), &bill);
            assert_eq!(spending.subscription, known);
        }
    }
}
