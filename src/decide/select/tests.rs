use crate::decide::samples::{Told, backlog, id, story};
use crate::model::{Because, Blocked};

use super::*;

fn selected(stories: Vec<Story>, parked: &[&str], only: Option<&str>) -> String {
    let backlog = backlog(stories);
    match select(&backlog, &|id| parked.contains(&id.as_str()), only.map(id).as_ref()) {
        Selection::Next(story) => story.id.to_string(),
        Selection::AllSettled => "all settled".to_owned(),
        Selection::Blocked(blocked) => blocked.iter().map(why).collect::<Vec<_>>().join(", "),
    }
}

fn why(blocked: &Blocked) -> String {
    let reason = match &blocked.because {
        Because::Parked => "is parked".to_owned(),
        Because::WaitsForSkipped { on } => format!("needs {on}, skipped"),
        Because::WaitsForParked { on } => format!("needs {on}, parked"),
        Because::WaitsForOpen { on } => format!("needs {on}, open"),
        Because::WaitsFor { on } => format!("needs {on}"),
        Because::Gone => "gone".to_owned(),
        Because::Red { gate } => format!("red: {gate}"),
    };
    format!("{} {reason}", blocked.story)
}

#[test]
fn the_first_that_can_be_started_is_next() {
    let a = || story("A");
    let b = || story("B");
    for (rule, stories, expected) in [
        ("the file's order", vec![b(), a()], "B"),
        ("settled ones are passed over", vec![a().passing(), b().skipped(), story("C")], "C"),
        ("a lower priority first", vec![a().ranked(2.0), b().ranked(-1.5)], "B"),
        ("any priority before none", vec![a(), b().ranked(9.0)], "B"),
        ("equal priorities: the file's order", vec![b().ranked(1.0), a().ranked(1.0)], "B"),
        ("not before its dependency", vec![a().after(&["B"]).ranked(0.0), b().ranked(5.0)], "B"),
        ("after its dependency", vec![a().after(&["B"]), b().passing()], "A"),
        ("all of its dependencies", vec![a().after(&["B", "C"]), b().passing(), story("C")], "C"),
        ("nothing is left", vec![a().passing(), b().skipped()], "all settled"),
        ("nothing at all", vec![], "all settled"),
    ] {
        assert_eq!(selected(stories, &[], None), expected, "{rule}");
    }
}

#[test]
fn with_only_one_wanted_it_is_that_one_or_none() {
    let stories = || vec![story("A"), story("B"), story("C").after(&["A"]), story("D").passing()];
    for (only, expected) in
        [("B", "B"), ("C", "C needs A, open"), ("D", "all settled"), ("X", "all settled")]
    {
        assert_eq!(selected(stories(), &[], Some(only)), expected, "{only}");
    }
}

#[test]
fn what_cannot_be_started_says_what_it_waits_for() {
    let waiting = |on: &[&str]| story("A").after(on);
    for (stories, parked, expected) in [
        (vec![story("A")], &["A"][..], "A is parked"),
        (vec![waiting(&["S"]), story("S").skipped()], &[], "A needs S, skipped"),
        (vec![waiting(&["P"]), story("P")], &["P"], "A needs P, parked, P is parked"),
        (
            vec![waiting(&["B"]), story("B").after(&["P"]), story("P")],
            &["P"],
            "A needs B, B needs P, parked, P is parked",
        ),
        // Its own question first, then what no answer helps with, then what one does.
        (vec![waiting(&["S"]), story("S").skipped()], &["A"], "A is parked"),
        (
            vec![waiting(&["P", "S"]), story("P"), story("S").skipped()],
            &["P"],
            "A needs S, skipped, P is parked",
        ),
        (
            vec![waiting(&["B", "P"]), story("B").after(&["P"]), story("P")],
            &["P"],
            "A needs P, parked, B needs P, parked, P is parked",
        ),
        // A dependency that passes is none, even if it was skipped or parked before.
        (vec![waiting(&["P"]), story("P").passing().skipped()], &["P"], "A"),
    ] {
        assert_eq!(selected(stories, parked, None), expected);
    }
}

#[test]
fn ready_is_what_could_be_selected() {
    let all = backlog([
        story("A").passing(),
        story("B").skipped(),
        story("C"),
        story("D").after(&["C"]),
        story("E"),
    ]);
    let ready: Vec<&str> = all
        .stories
        .iter()
        .filter(|story| is_ready(story, &all, &|id| id.as_str() == "E"))
        .map(|story| story.id.as_str())
        .collect();
    assert_eq!(ready, ["C"]);
}
