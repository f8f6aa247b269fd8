//! The core alone, for whole nights.

use std::collections::BTreeSet;

#[path = "../nights/mod.rs"]
mod core_alone;

/// The bench plays a thousand.
const SAMPLE: u64 = 200;

#[test]
fn every_night_ends_within_its_limits() {
    let mut reasons = BTreeSet::new();
    let mut attempts = 0;
    for seed in 0..SAMPLE {
        let played = core_alone::play(seed);
        attempts += played.attempts;
        let text = serde_json::to_value(&played.reason).unwrap();
        reasons.insert(text["reason"].as_str().unwrap().to_owned());
        assert!(!played.events.is_empty());
    }
    assert!(attempts > 1000, "these nights are too short to tell anything: {attempts}");
    let expected = [
        "all_done",
        "breaker_open",
        "budget_used_up",
        "consecutive_errors",
        "failing",
        "max_iterations",
        "max_run_time",
        "nothing_to_select",
    ];
    for reason in expected {
        assert!(reasons.contains(reason), "{reason} never came, only {reasons:?}");
    }
}
