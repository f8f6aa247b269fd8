//! The report of a long run: what the loop does per iteration, and what the writing thread does.

use ralph::model::{Event, Recorded};
use ralph::report::{AppliedSettings, RunReport};

use crate::measure::{Times, tell};

const ITERATIONS: u32 = 10_000;
const LATEST: usize = 100;
const ROUNDS: usize = 20;

pub fn bench() {
    let mut report = RunReport::new(AppliedSettings::default());
    let (mut first, mut last) = (Times::default(), Times::default());
    for number in 1..=ITERATIONS {
        let events = iteration(number);
        let apply = Times::of(1, || events.iter().for_each(|recorded| report.apply(recorded)));
        if number <= 100 {
            first.push(apply.min());
        } else if number > ITERATIONS - 100 {
            last.push(apply.min());
        }
        if number == 100 {
            tell("status rendered after 100 iterations", &rendering(&mut report));
        }
    }
    tell(&format!("status rendered after {ITERATIONS} iterations"), &rendering(&mut report));
    tell("events of one iteration folded, of the first 100", &first);
    tell(&format!("events of one iteration folded, of {ITERATIONS}"), &last);
    let whole = Times::of(3, || drop(report.render(0, None).unwrap()));
    tell("report rendered, once at the end", &whole);
}

fn rendering(report: &mut RunReport) -> Times {
    Times::of(ROUNDS, || drop(report.render(0, Some(LATEST)).unwrap()))
}

/// A story of its own that is closed at once.
pub fn iteration(number: u32) -> Vec<Recorded> {
    let (attempt, story) = (format!("attempt {number}"), format!("US-{number:05}"));
    let who = format!(r#""attempt": "{attempt}", "story": "{story}""#);
    let texts = [
        format!(
            r#"{{ "kind": "attempt_started", {who}, "iteration": {number}, "role": "implement",
                "title": "A story", "agent": "mock", "base": {{ "commit": null, "tree": "t" }},
                "guided": false }}"#
        ),
        format!(
            r#"{{ "kind": "attempt_ended", {who}, "outcome": {{ "class": "completed" }},
                "signals": {{ "claims_story": true, "claims_others": [], "promises_all": false,
                "escalation": null }}, "verdict": {{ "verdict": "done" }},
                "usage": {{ "cost_usd": 0.1 }}, "elapsed_ms": {number} }}"#
        ),
        format!(r#"{{ "kind": "close_planned", {who} }}"#),
        format!(r#"{{ "kind": "story_closed", {who}, "commit": "4b2a9d1c0f7e6a5b4c3d2e1f" }}"#),
    ];
    let event = |text: &String| serde_json::from_str::<Event>(text).unwrap();
    texts.iter().map(|text| Recorded { at: i64::from(number), event: event(text) }).collect()
}
