//! A thousand nights of decisions, and the same events folded without deciding anything.

use std::hint::black_box;
use std::time::Instant;

use ralph::core::state::RunState;

#[path = "../../tests/nights/mod.rs"]
mod core_alone;

const NIGHTS: u64 = 1000;
/// Iterations per second.
const LEAST: f64 = 10_000.0;

pub fn bench() {
    let start = Instant::now();
    let played: Vec<_> = (0..NIGHTS).map(core_alone::play).collect();
    let seconds = start.elapsed().as_secs_f64();
    let iterations: u32 = played.iter().map(|night| night.attempts).sum();
    let kinds = played.iter().map(|night| std::mem::discriminant(&night.reason));
    let kinds = kinds.collect::<std::collections::HashSet<_>>().len();
    let speed = f64::from(iterations) / seconds;
    println!("  {NIGHTS} nights, {iterations} iterations, {kinds} reasons to stop");
    println!(
        "  {:<52} {speed:>9.0} a second (at least {LEAST})",
        "iterations, decided and checked"
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
