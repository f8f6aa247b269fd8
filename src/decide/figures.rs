//! Figures about a run: what the rest will cost and take, and how efficient it was.

use serde::Serialize;

use crate::model::{Usage, Usd};
use crate::state::{RunState, Stage, StoryState};

/// Finished stories needed for a forecast.
const ENOUGH: usize = 2;

/// Ranges from the better to the worse stories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// None if agents do not report their cost.
    #[serde(rename = "cost_usd")]
    pub cost: Option<(Usd, Usd)>,
    /// How long agents work.
    #[serde(rename = "agent_ms")]
    pub time_ms: (u64, u64),
}

/// `left`: stories that are neither done nor skipped.
pub fn forecast(state: &RunState, left: usize) -> Option<Forecast> {
    let of_this_run = || state.stories.values().filter(|story| story.totals.attempts > 0);
    let is_closed = |story: &&StoryState| matches!(story.stage, Stage::Closed { .. });
    let finished: Vec<&StoryState> = of_this_run().filter(is_closed).collect();
    if finished.len() < ENOUGH || left == 0 {
        return None;
    }
    let begun: Vec<&StoryState> =
        of_this_run().filter(|story| !story.stage.is_settled()).take(left).collect();
    let range = |figure: fn(&StoryState) -> u64| {
        let (low, high) = quartiles(finished.iter().map(|story| figure(story)).collect());
        let paid: Vec<u64> = begun.iter().map(|story| figure(story)).collect();
        (rest(low, left, &paid), rest(high, left, &paid))
    };
    let has_cost = finished.iter().any(|story| story.totals.cost > Usd::ZERO);
    let (low, high) = range(|story| story.totals.cost.micros());
    Some(Forecast {
        cost: has_cost.then_some((Usd::from_micros(low), Usd::from_micros(high))),
        time_ms: range(|story| story.totals.elapsed_ms),
    })
}

/// The middle half of the values; of two, both.
fn quartiles(mut seen: Vec<u64>) -> (u64, u64) {
    seen.sort_unstable();
    let last = seen.len().saturating_sub(1);
    let at = |index: usize| seen.get(index).copied().unwrap_or_default();
    (at(last / 4), at(last - last / 4))
}

/// The estimate per remaining story, minus what it has already used.
fn rest(each: u64, left: usize, paid: &[u64]) -> u64 {
    let untouched = u64::try_from(left.saturating_sub(paid.len())).unwrap_or(u64::MAX);
    let begun = paid.iter().map(|paid| each.saturating_sub(*paid));
    begun.fold(each.saturating_mul(untouched), u64::saturating_add)
}

/// What efficiency is computed from.
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

/// Each is None if its divisor is zero.
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
        let read = usage.tokens_read();
        let used = read.saturating_add(usage.output_tokens);
        let cost = figures.cost.as_f64();
        let per_story = ratio(cost, f64::from(figures.closed));
        Self {
            cost_per_story_usd: per_story.filter(|_| figures.cost > Usd::ZERO),
            tokens_per_tool_call: ratio(used as f64, usage.tool_calls as f64),
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
    use crate::decide::samples::{History, failed};
    use crate::model::Verdict;

    fn costing(dollars: f64) -> Usage {
        Usage { cost_usd: Some(dollars), ..Usage::default() }
    }

    fn closed(history: History, story: &str, dollars: f64) -> History {
        history.started(story).ended(Verdict::Done, costing(dollars)).planned(story).closed(story)
    }

    fn cost(history: &History, left: usize) -> Option<(f64, f64)> {
        let (low, high) = forecast(&history.state, left)?.cost?;
        Some((low.as_f64(), high.as_f64()))
    }

    #[test]
    fn the_second_finished_story_is_enough_and_the_first_is_not() {
        let one = closed(History::new(), "A", 1.0);
        assert_eq!(forecast(&one.state, 5), None);
        let failing = one.clone().started("B").ended(failed("x"), costing(9.0));
        assert_eq!(forecast(&failing.state, 5), None, "it is not finished");
        let two = closed(one, "B", 3.0);
        assert_eq!(cost(&two, 4), Some((4.0, 12.0)));
        assert_eq!(forecast(&two.state, 4).unwrap().time_ms, (400, 400));
        assert_eq!(forecast(&two.state, 0), None, "nothing is left");
    }

    #[test]
    fn stories_of_an_earlier_run_say_nothing() {
        let two = closed(closed(History::new(), "A", 1.0), "B", 3.0);
        assert_eq!(forecast(&two.run(&[]).state, 4), None);
    }

    #[test]
    fn what_a_story_took_already_is_not_to_come() {
        let two = closed(closed(History::new(), "A", 1.0), "B", 3.0);
        let begun = two.started("C").ended(Verdict::Progress, costing(2.0));
        // C is dearer than the better half already; the worse half leaves it one dollar.
        assert_eq!(cost(&begun, 2), Some((1.0, 4.0)));
    }

    #[test]
    fn one_story_that_went_wild_is_left_out_of_the_range() {
        let dollars = [1.0, 1.0, 1.0, 2.0, 90.0];
        let history = dollars
            .iter()
            .zip(["A", "B", "C", "D", "E"])
            .fold(History::new(), |history, (cost, story)| closed(history, story, *cost));
        assert_eq!(cost(&history, 10), Some((10.0, 20.0)));
    }

    #[test]
    fn agents_that_do_not_say_what_they_cost_leave_the_time() {
        let silent = |history: History, story| {
            history.tried(story, Verdict::Done).planned(story).closed(story)
        };
        let two = silent(silent(History::new(), "A"), "B");
        let found = forecast(&two.state, 3).unwrap();
        assert_eq!((found.cost, found.time_ms), (None, (300, 300)));
    }

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
        let figures =
            Figures { usage, cost: Usd::from_cents(1000), failed: Usd::of(2.5), closed: 4 };
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
