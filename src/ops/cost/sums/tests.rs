use super::*;
use crate::model::{Usage, Usd};

fn entry(story: &str, at: i64, dollars: u64, result: &str) -> AttemptCosts {
    AttemptCosts {
        backlog: "PRD.json".into(),
        story: story.into(),
        title: format!("{story} at {at}"),
        at,
        result: result.into(),
        elapsed_ms: 10,
        stated: Some(Usd::from_cents(100 * dollars)),
        counted: Usd::from_cents(100 * dollars),
        usage: Usage { input_tokens: 5, tool_calls: 2, ..Usage::default() },
        model: String::new(),
    }
}

fn names_and_costs(groups: &[CostGroup]) -> Vec<(&str, Usd)> {
    groups.iter().map(|group| (group.name.as_str(), group.sums.figures.cost)).collect()
}

#[test]
fn a_story_is_one_group_even_if_its_title_changed() {
    let entries = [
        entry("B", 1, 1, "failed"),
        entry("A", 2, 2, "closed"),
        entry("B", 3, 4, "closed"),
        AttemptCosts { backlog: "other.json".into(), ..entry("B", 4, 8, "progress") },
    ];
    let groups = grouped(&entries, CostGrouping::Story, &TimeZone::UTC);
    let expected =
        [("B", Usd::from_cents(500)), ("A", Usd::from_cents(200)), ("B", Usd::from_cents(800))];
    assert_eq!(names_and_costs(&groups), expected);
    assert_eq!(groups[0].title, "B at 3");
    let CostSums { iterations, elapsed_ms, figures, .. } = &groups[0].sums;
    assert_eq!((*iterations, figures.closed, figures.failed), (2, 1, Usd::from_cents(100)));
    let usage = &figures.usage;
    assert_eq!((usage.input_tokens, usage.tool_calls, *elapsed_ms), (10, 4, 20));
}

#[test]
fn a_day_is_one_of_the_given_time_zone() {
    let hour = 3_600_000;
    let entries = [entry("A", 25 * hour, 1, "x"), entry("A", 23 * hour, 2, "x")];
    let days = |zone: &TimeZone| {
        let groups = grouped(&entries, CostGrouping::Day, zone);
        groups.into_iter().map(|group| group.name).collect::<Vec<_>>()
    };
    assert_eq!(days(&TimeZone::UTC), ["1970-01-01", "1970-01-02"]);
    assert_eq!(days(&TimeZone::fixed(jiff::tz::offset(2))), ["1970-01-02"]);
}

#[test]
fn the_most_expensive_model_is_first_and_a_nameless_one_is_unknown() {
    let of =
        |model: &str, dollars| AttemptCosts { model: model.into(), ..entry("A", 1, dollars, "x") };
    let entries = [of("small", 1), of("", 3), of("large", 5), of("small", 1)];
    let groups = grouped(&entries, CostGrouping::Model, &TimeZone::UTC);
    let expected = [
        ("large", Usd::from_cents(500)),
        ("unknown", Usd::from_cents(300)),
        ("small", Usd::from_cents(200)),
    ];
    assert_eq!(names_and_costs(&groups), expected);
}

#[test]
fn a_cost_that_was_not_reported_is_assumed_unless_the_attempt_runs() {
    let silent = |result| AttemptCosts { stated: None, ..entry("A", 1, 2, result) };
    let sums =
        CostSums::of(&[silent("interrupted"), silent("running"), entry("A", 1, 1, "closed")]);
    assert_eq!((sums.assumed, sums.iterations), (1, 3));
}
