//! The dispatcher, for whole nights.

use std::collections::BTreeSet;

#[path = "../nights/mod.rs"]
mod simulated;

use ralph::model::{Event, Recorded, StopReason};
use simulated::Play;

/// The bench plays more. Nights with more lanes have more to go wrong.
const SAMPLES: [(u32, u64); 4] = [(1, 100), (2, 80), (4, 80), (8, 40)];
/// Ralph died while the work of a claim came to the human's tree.
const DIED_WHILE_LANDING: [u64; 2] = [338, 352];
/// Ralph died before it could take an attack back.
const DIED_UNDER_ATTACK: u64 = 410;

#[test]
fn every_night_ends_within_its_limits() {
    let mut reasons = BTreeSet::new();
    let (mut done_under_attack, mut closed_under_attack) = (0, 0);
    for (lanes, nights) in SAMPLES {
        let (mut attempts, mut processes, mut attacks, mut at_once) = (0, 0, 0, 0);
        for night in 0..nights {
            let seed = u64::from(lanes) * 1000 + night;
            let play = Play { seed, lanes, thorough: true };
            let played = simulated::play(play);
            attempts += played.attempts;
            processes += played.processes;
            attacks += u64::from(played.attacks);
            at_once = at_once.max(played.at_once);
            assert!(played.events.len() > 1, "{play:?}");
            let text = serde_json::to_value(&played.reason).unwrap();
            if played.attacks > 0 {
                let is_close = |one: &&Recorded| matches!(one.event, Event::StoryClosed(_));
                closed_under_attack += played.events.iter().filter(is_close).count();
                done_under_attack += u32::from(played.reason == StopReason::AllDone);
            }
            reasons.insert(text["reason"].as_str().unwrap().to_owned());
        }
        assert!(attempts > 5 * u32::try_from(nights).unwrap(), "{lanes} lanes: {attempts}");
        assert!(2 * attacks > nights, "{lanes} lanes: {attacks} attacks");
        assert!(u64::from(processes) > nights, "no process ever ended before its run");
        assert!(at_once >= usize::try_from(lanes).unwrap(), "{at_once} of {lanes} lanes");
    }
    assert!(done_under_attack > 0, "no attacked night ended well");
    assert!(closed_under_attack > 100, "{closed_under_attack} stories closed in attacked nights");
    for seed in DIED_WHILE_LANDING {
        simulated::play(Play { seed, lanes: 2, thorough: true });
    }
    simulated::play(Play { seed: DIED_UNDER_ATTACK, lanes: 1, thorough: true });
    let expected = [
        "all_done",
        "breaker_open",
        "budget_used_up",
        "consecutive_errors",
        "disk_low",
        "failing",
        "max_iterations",
        "max_run_time",
        "nothing_to_select",
        "service_down",
        "usage_limit",
    ];
    for reason in expected {
        assert!(reasons.contains(reason), "{reason} never came, only {reasons:?}");
    }
}
