//! Thousands of nights of decisions, and the same events folded without deciding anything.

use std::hint::black_box;
use std::time::Instant;

use ralph::state::RunState;

#[path = "../../tests/nights/mod.rs"]
mod simulated;

use simulated::Play;

const NIGHTS: u64 = 1000;
/// Iterations per second.
const LEAST: f64 = 10_000.0;

pub fn bench() {
    for lanes in [1, 2, 4, 8] {
        bench_lanes(lanes);
    }
}

fn bench_lanes(lanes: u32) {
    let start = Instant::now();
    let played: Vec<_> =
        (0..NIGHTS).map(|seed| simulated::play(Play { seed, lanes, thorough: false })).collect();
    let seconds = start.elapsed().as_secs_f64();
    let iterations: u32 = played.iter().map(|night| night.attempts).sum();
    let processes: u32 = played.iter().map(|night| night.processes).sum();
    let attacks: u32 = played.iter().map(|night| night.attacks).sum();
    let at_once = played.iter().map(|night| night.at_once).max().unwrap_or_default();
    let kinds = played.iter().map(|night| std::mem::discriminant(&night.reason));
    let kinds = kinds.collect::<std::collections::HashSet<_>>().len();
    let speed = f64::from(iterations) / seconds;
    println!(
        "  {NIGHTS} nights with {lanes} lanes ({at_once} used), {iterations} iterations, \
         {processes} processes, {attacks} attacks, {kinds} reasons to stop"
    );
    println!(
        "  {:<52} {speed:>9.0} a second (at least {LEAST})",
        "iterations, dispatched and checked"
    );
    assert!(speed >= LEAST, "too slow");
    let start = Instant::now();
    for night in &played {
        let mut state = RunState::default();
        night.events.iter().for_each(|recorded| state.apply(recorded));
        black_box(&state);
    }
    let floor = f64::from(iterations) / start.elapsed().as_secs_f64();
    println!("  {:<52} {floor:>9.0} a second", "floor: their events, only folded");
}
