use super::*;

fn entry(story: &str, at: i64, dollars: u64, result: &str) -> AttemptCosts {
    AttemptCosts {
        attempt: String::new(),
        run: "r".into(),
        backlog: "PRD.json".into(),
        story: story.into(),
        title: format!("{story} at {at}"),
        agent: "claude".into(),
        at,
        result: result.into(),
        elapsed_ms: 10,
        stated: Some(Usd::dollars(dollars)),
        counted: Usd::dollars(dollars),
        usage: Usage { input_tokens: 5, tool_calls: 2, ..Usage::default() },
        model: String::new(),
    }
}

#[test]
fn a_story_is_one_group_whatever_its_title_became() {
    let entries = [
        entry("B", 1, 1, "failed"),
        entry("A", 2, 2, "closed"),
        entry("B", 3, 4, "closed"),
        AttemptCosts { backlog: "other.json".into(), ..entry("B", 4, 8, "progress") },
    ];
    let groups = by_story(&entries);
    let found: Vec<_> = groups.iter().map(|group| (name(group), group.sums.cost)).collect();
    assert_eq!(found, [("B", Usd::dollars(5)), ("A", Usd::dollars(2)), ("B", Usd::dollars(8))]);
    let CostKey::Story { title, .. } = &groups[0].key else { panic!("a story") };
    assert_eq!(title, "B at 3");
    let b = &groups[0].sums;
    assert_eq!((b.iterations, b.closed, b.failed), (2, 1, Usd::dollars(1)));
    assert_eq!((b.usage.input_tokens, b.usage.tool_calls, b.elapsed_ms), (10, 4, 20));
}

#[test]
fn a_day_is_one_of_the_machines_time_zone() {
    let hour = 3_600_000;
    let entries = [entry("A", 25 * hour, 1, "x"), entry("A", 23 * hour, 2, "x")];
    let days = |zone: &TimeZone| {
        let groups = by_day(&entries, zone);
        groups.iter().map(|group| name(group).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(days(&TimeZone::UTC), ["1970-01-01", "1970-01-02"]);
    assert_eq!(days(&TimeZone::fixed(jiff::tz::offset(2))), ["1970-01-02"]);
}

#[test]
fn the_dearest_model_comes_first_and_a_nameless_one_is_named() {
    let of =
        |model: &str, dollars| AttemptCosts { model: model.into(), ..entry("A", 1, dollars, "x") };
    let groups = by_model(&[of("small", 1), of("", 3), of("large", 5), of("small", 1)]);
    let found: Vec<_> = groups.iter().map(name).collect();
    assert_eq!(found, ["large", "unknown", "small"]);
    assert_eq!(groups[2].sums.cost, Usd::dollars(2));
}

#[test]
fn what_was_not_stated_is_assumed_but_not_of_one_that_runs() {
    let silent = |result| AttemptCosts { stated: None, ..entry("A", 1, 2, result) };
    let sums =
        CostSums::of(&[silent("interrupted"), silent("running"), entry("A", 1, 1, "closed")]);
    assert_eq!((sums.assumed, sums.iterations), (1, 3));
}
