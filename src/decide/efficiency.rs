//! Efficiency figures.

use serde::Serialize;

use crate::model::{Usage, Usd};

/// The input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub usage: Usage,
    /// The counted cost, including estimates.
    pub cost: Usd,
    /// The part spent on failed and rejected attempts.
    pub failed: Usd,
    /// Stories that were closed.
    pub closed: u32,
}

/// None if the divisor is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Efficiency {
    pub cost_per_story_usd: Option<f64>,
    pub tokens_per_tool_call: Option<f64>,
    /// Share of read tokens that came from the cache, 0 to 1.
    pub cache_hit_rate: Option<f64>,
    /// Share of the cost spent on failed attempts, 0 to 1.
    pub failed_share: Option<f64>,
}

impl Efficiency {
    pub fn of(figures: &Figures) -> Self {
        let usage = &figures.usage;
        let read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
        let cost = figures.cost.as_f64();
        let per_story = ratio(cost, f64::from(figures.closed));
        Self {
            cost_per_story_usd: per_story.filter(|_| figures.cost > Usd::ZERO),
            tokens_per_tool_call: ratio(
                (read + usage.output_tokens) as f64,
                usage.tool_calls as f64,
            ),
            cache_hit_rate: ratio(usage.cache_read_tokens as f64, read as f64),
            failed_share: ratio(figures.failed.as_f64(), cost),
        }
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!(Efficiency::of(&Figures::default()), Efficiency::default());
        let unpaid = Figures { closed: 3, ..Figures::default() };
        assert_eq!(Efficiency::of(&unpaid).cost_per_story_usd, None, "nobody said what it cost");
    }

    #[test]
    fn each_figure_is_what_its_name_says() {
        let usage = Usage {
            cost_usd: None,
            input_tokens: 100,
            output_tokens: 50,
            cache_read_tokens: 800,
            cache_write_tokens: 100,
            turns: 9,
            tool_calls: 5,
        };
        let figures = Figures { usage, cost: Usd::dollars(10), failed: Usd::of(2.5), closed: 4 };
        assert_eq!(
            Efficiency::of(&figures),
            Efficiency {
                cost_per_story_usd: Some(2.5),
                tokens_per_tool_call: Some(210.0),
                cache_hit_rate: Some(0.8),
                failed_share: Some(0.25),
            }
        );
    }
}
