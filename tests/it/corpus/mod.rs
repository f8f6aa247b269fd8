//! The hostile corpus: what an agent, a gate or the baseline can do to pass for the human, played
//! with real processes in a real repository, however they end. `tests/hostile` has the scripts.
//!
//! One property over all: exit 0 means that each story of the run's start passes its gates on a
//! clean checkout of the branch, and each mark has its commit. A control plays each script without
//! ralph, where it has to succeed. `cargo test` plays a sample; CONTRIBUTING.md says how to play all.

mod attack;
mod check;
mod play;
mod scene;

use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use attack::Case;
use scene::Scenes;

/// How many cases `cargo test` plays.
const SAMPLE: usize = 12;
/// How many scripts there are at least.
const LEAST: usize = 60;
/// Most of a case's time is waiting.
const THREADS_PER_CORE: usize = 2;

#[test]
fn no_attack_succeeds() {
    let (cases, label) = chosen(attack::cases());
    assert!(!cases.is_empty(), "{label}: no case has such a name");
    let (start, count) = (Instant::now(), cases.len());
    let (mut times, failed) = play_all(cases);
    let elapsed = start.elapsed().as_secs();
    times.sort_unstable_by(|one, other| other.cmp(one));
    let (longest, name) = &times[0];
    let longest = longest.as_secs_f32();
    say(&format!("hostile corpus, {label}: {count} cases in {elapsed} s, {name} in {longest} s"));
    assert!(failed.is_empty(), "{} of {count} failed:\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn the_corpus_is_complete() {
    let attacks = attack::attacks();
    assert!(attacks.len() >= LEAST, "only {} scripts", attacks.len());
    let cases = attack::cases();
    let mut names: Vec<&str> = attacks.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), attacks.len(), "a name is there twice");
    for one in &attacks {
        let is_whole =
            one.by.len() == attack::Actor::ALL.len() && one.ends.len() == attack::End::ALL.len();
        assert_eq!(is_whole, one.why.is_empty(), "{}: why are cases left out?", one.name);
    }
    for actor in attack::Actor::ALL {
        for end in attack::End::ALL {
            let is_there = |case: &Case| (case.actor, case.end) == (actor, end);
            assert!(cases.iter().any(is_there), "no script of {actor:?} that ends like {end:?}");
        }
    }
}

/// All, those whose name contains a word of `RALPH_HOSTILE`, or a sample.
fn chosen(cases: Vec<Case>) -> (Vec<Case>, String) {
    match std::env::var("RALPH_HOSTILE").as_deref() {
        Ok("all") => (cases, "all".to_owned()),
        Ok(words) => {
            let words: Vec<&str> = words.split(',').map(str::trim).collect();
            let is_named = |case: &Case| words.iter().any(|word| case.name().contains(word));
            (cases.into_iter().filter(is_named).collect(), words.join(", "))
        }
        Err(_) => {
            let seed = seed();
            let step = (cases.len() / SAMPLE).max(1);
            let sample = cases.into_iter().skip(seed % step).step_by(step).take(SAMPLE);
            (sample.collect(), format!("RALPH_HOSTILE_SEED={seed}"))
        }
    }
}

fn seed() -> usize {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let given = std::env::var("RALPH_HOSTILE_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| usize::try_from(seconds).unwrap_or_default())
}

/// How long each takes, and what is wrong.
fn play_all(cases: Vec<Case>) -> (Vec<(Duration, String)>, Vec<String>) {
    let (scenes, times) = (Scenes::default(), Mutex::new(Vec::new()));
    let (cases, failed) = (Mutex::new(cases.into_iter()), Mutex::new(Vec::new()));
    let next = || cases.lock().unwrap().next();
    let work = || {
        while let Some(case) = next() {
            let start = Instant::now();
            let played = std::panic::AssertUnwindSafe(|| play::play(&scenes, &case));
            let wrong = std::panic::catch_unwind(played).unwrap_or_else(|_| "it panicked".into());
            times.lock().unwrap().push((start.elapsed(), case.name()));
            if !wrong.is_empty() {
                failed.lock().unwrap().push(format!("{}: {wrong}", case.name()));
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores * THREADS_PER_CORE {
            scope.spawn(work);
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort();
    (times.into_inner().unwrap(), failed)
}

fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
