//! Money: dollars, and what attempts use and cost.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MICROS: f64 = 1_000_000.0;
/// The largest amount; far from overflow.
const MOST: u64 = 1_000_000_000_000_000;

/// An amount of US dollars that is never negative: whole millionths, so that sums are exact. In JSON
/// it is a number of dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(u64);

impl Usd {
    pub const ZERO: Self = Self(0);

    pub const fn from_cents(cents: u64) -> Self {
        Self(cents * 10_000)
    }

    pub fn from_micros(micros: u64) -> Self {
        Self(micros.min(MOST))
    }

    pub fn micros(self) -> u64 {
        self.0
    }

    /// 1 if it is all of it.
    pub fn part_of(self, whole: Self) -> f64 {
        self.0 as f64 / whole.0.max(1) as f64
    }

    /// Dollars as an agent reports them. Negative and non-finite values count as zero.
    pub fn of(dollars: f64) -> Self {
        // The cast saturates; without the check infinity would be the highest amount.
        let micros = if dollars.is_finite() { (dollars * MICROS).round() as u64 } else { 0 };
        Self::from_micros(micros)
    }

    pub fn as_f64(self) -> f64 {
        self.0 as f64 / MICROS
    }

    /// The rest after subtracting; None if nothing is left.
    pub fn rest_after(self, spent: Self) -> Option<Self> {
        self.0.checked_sub(spent.0).filter(|rest| *rest > 0).map(Self)
    }

    pub fn split(self, parts: u32) -> Self {
        Self(self.0 / u64::from(parts.max(1)))
    }

    /// Whether it is at least `percent` percent of `limit`.
    pub fn is_percent_of(self, percent: u64, limit: Self) -> bool {
        self.0.saturating_mul(100) >= limit.0.saturating_mul(percent)
    }

    /// `25`, `0.50`, `$3`. None for zero or an invalid amount.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('$').unwrap_or(text);
        let is_plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
        let dollars: f64 = text.parse().ok().filter(|_| is_plain)?;
        Some(Self::of(dollars)).filter(|usd| *usd > Self::ZERO && usd.0 < MOST)
    }
}

/// `$0.31`, `$12.40`; more digits below a cent: `$0.0042`.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = (self.0 + 5_000) / 10_000;
        if (1..10_000).contains(&self.0) {
            let digits = format!("{:06}", self.0);
            return write!(f, "$0.{}", digits.trim_end_matches('0'));
        }
        write!(f, "${}.{:02}", cents / 100, cents % 100)
    }
}

impl Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::from_micros(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::of)
    }
}

/// What an attempt used, as reported by the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// None: not reported.
    pub cost_usd: Option<f64>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub turns: u64,
    /// Including sub-agents.
    pub tool_calls: u64,
}

impl Usage {
    pub fn add(&mut self, other: &Self) {
        if let Some(cost) = other.cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.turns = self.turns.saturating_add(other.turns);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
    }

    pub fn tokens(&self) -> Tokens {
        Tokens {
            input: self.input_tokens,
            output: self.output_tokens,
            cache_read: self.cache_read_tokens,
            cache_write: self.cache_write_tokens,
        }
    }

    /// Tokens that were sent to the model; an agent may report any number.
    pub fn tokens_read(&self) -> u64 {
        let cached = self.cache_read_tokens.saturating_add(self.cache_write_tokens);
        self.input_tokens.saturating_add(cached)
    }
}

/// Tokens by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// What an attempt costs, as far as budgets are concerned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptCost {
    /// The cost that budgets count: as reported, else an estimate. None in older journals.
    pub counted: Option<Usd>,
    /// Whether a subscription pays. None: unknown.
    pub subscription: Option<bool>,
    pub models: Vec<ModelUse>,
}

impl AttemptCost {
    pub fn counted(&self, usage: &Usage) -> Usd {
        self.counted.or(usage.cost_usd.map(Usd::of)).unwrap_or_default()
    }
}

/// One model's part of an attempt, sub-agents included.
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

/// How much of an attempt's cost is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostCertainty {
    /// The agent reported it at its end.
    Whole,
    /// The agent was ended before it could report all of it.
    Part,
    /// No request was made.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_amounts_are_none() {
        for (text, micros) in
            [("25", 25_000_000), ("0.50", 500_000), ("$3", 3_000_000), (".5", 500_000)]
        {
            assert_eq!(Usd::parse(text).map(Usd::micros), Some(micros), "{text}");
        }
        for bad in [
            "",
            "0",
            "0.0",
            "0.0000001",
            "-1",
            "+1",
            "nan",
            "NaN",
            "inf",
            "infinity",
            "1e3",
            "$",
            "1.2.3",
            "5 USD",
            "ten",
            "1,5",
            "$$5",
            "99999999999999999999",
        ] {
            assert_eq!(Usd::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn reported_costs_are_never_negative_or_infinite() {
        for (said, micros) in [
            (0.1 + 0.2, 300_000),
            (-3.0, 0),
            (f64::NAN, 0),
            (f64::INFINITY, 0),
            (f64::NEG_INFINITY, 0),
            (1e300, MOST),
        ] {
            assert_eq!(Usd::of(said).micros(), micros, "{said}");
        }
        assert_eq!((0..9).map(|_| Usd::of(1e300)).sum::<Usd>().micros(), MOST);
    }

    #[test]
    fn sums_are_exact_and_survive_json() {
        let sum: Usd = (0..1000).map(|_| Usd::of(0.1)).sum();
        assert_eq!(sum, Usd::from_cents(10000));
        for usd in [Usd::ZERO, Usd::of(0.000_001), Usd::of(24.999_999), Usd::of(123_456.789)] {
            let text = serde_json::to_string(&usd).unwrap();
            assert_eq!(serde_json::from_str::<Usd>(&text).unwrap(), usd, "{text}");
        }
        assert_eq!(serde_json::to_string(&Usd::of(0.31)).unwrap(), "0.31");
    }

    #[test]
    fn amounts_below_a_cent_show_more_digits() {
        for (usd, shown) in [
            (0.0, "$0.00"),
            (0.000_42, "$0.00042"),
            (0.01, "$0.01"),
            (0.312, "$0.31"),
            (0.315, "$0.32"),
            (12.4, "$12.40"),
            (24.999_9, "$25.00"),
        ] {
            assert_eq!(Usd::of(usd).to_string(), shown);
        }
    }

    #[test]
    fn an_empty_rest_is_none() {
        let five = Usd::from_cents(500);
        assert_eq!(five.rest_after(Usd::from_cents(200)), Some(Usd::from_cents(300)));
        assert_eq!(five.rest_after(five), None);
        assert_eq!(five.rest_after(Usd::from_cents(600)), None);
    }

    #[test]
    fn percentages_are_exact_at_the_border() {
        let ten = Usd::from_cents(1000);
        assert!(Usd::from_cents(800).is_percent_of(80, ten));
        assert!(!Usd::from_micros(7_999_999).is_percent_of(80, ten));
        assert!(ten.is_percent_of(100, ten));
    }

    #[test]
    fn absurd_figures_of_an_agent_do_not_overflow() {
        let absurd = Usage { input_tokens: u64::MAX, turns: u64::MAX, ..Usage::default() };
        let mut sum = absurd.clone();
        sum.add(&absurd);
        assert_eq!(sum, absurd);
    }
}
