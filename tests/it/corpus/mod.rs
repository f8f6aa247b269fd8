//! The hostile corpus: what an agent, a gate or the baseline can do to pass for the human, played
//! with real processes in a real repository, however they end. `tests/hostile` has the scripts.
//!
//! One property over all: exit 0 means that each story of the run's start passes its gates on a
//! clean checkout of the branch, and each mark has its commit. A control plays each script where
//! nothing guards, and has to find damage. `cargo test` plays a sample; CONTRIBUTING.md says how to play all.

mod attack;
mod check;
mod play;
mod scene;
mod unguarded;

use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use attack::{Actor, Attack, Case, End, Then};
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
    let (start, count, scenes) = (Instant::now(), cases.len(), Scenes::default());
    let (mut times, failed) = for_each(cases, Case::name, |case| play::play(&scenes, case));
    let elapsed = start.elapsed().as_secs();
    times.sort_unstable_by(|one, other| other.cmp(one));
    let (longest, name) = &times[0];
    let longest = longest.as_secs_f32();
    say(&format!("hostile corpus, {label}: {count} cases in {elapsed} s, {name} in {longest} s"));
    assert!(failed.is_empty(), "{} of {count} failed:\n{}", failed.len(), failed.join("\n\n"));
}

/// Otherwise a run in which nothing is wrong would say nothing about the guard.
#[test]
fn where_nothing_guards_every_attack_succeeds() {
    let scenes = Scenes::default();
    for then in [Then::Work, Then::Lie] {
        unguarded::is_well(&scenes.any(), then);
    }
    let (cases, _) = chosen(attack::cases());
    let mut attacks: Vec<Attack> = cases.into_iter().map(|case| case.attack).collect();
    attacks.dedup_by(|one, other| one.name == other.name);
    let control = |attack: &Attack| unguarded::control(&scenes.any(), attack);
    let (_, failed) = for_each(attacks, |attack| attack.name.clone(), control);
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
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
        let is_whole = one.by.len() == Actor::ALL.len() && one.ends.len() == End::ALL.len();
        assert_eq!(is_whole, one.why.is_empty(), "{}: why are cases left out?", one.name);
    }
    for actor in Actor::ALL {
        for end in End::ALL {
            let is_there = |case: &Case| (case.actor, case.end) == (actor, end);
            assert!(cases.iter().any(is_there), "no script of {actor:?} that ends like {end:?}");
        }
    }
}

/// All, one of each script and actor, those whose name contains a word of `RALPH_HOSTILE`, or a sample.
fn chosen(cases: Vec<Case>) -> (Vec<Case>, String) {
    let seed = seed();
    match std::env::var("RALPH_HOSTILE").as_deref() {
        Ok("all") => (cases, "all".to_owned()),
        Ok("each") => {
            let label = format!("each script and actor, RALPH_HOSTILE_SEED={seed}");
            let is_of = |one: &Case| (one.attack.name.clone(), one.actor);
            let each = cases.chunk_by(|one, other| is_of(one) == is_of(other));
            (each.enumerate().map(|(n, of)| of[(seed + n) % of.len()].clone()).collect(), label)
        }
        Ok(words) => {
            let words: Vec<&str> = words.split(',').map(str::trim).collect();
            let is_named = |case: &Case| words.iter().any(|word| case.name().contains(word));
            (cases.into_iter().filter(is_named).collect(), words.join(", "))
        }
        Err(_) => {
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
fn for_each<T: Send>(
    all: Vec<T>,
    name: impl Fn(&T) -> String + Sync,
    play: impl Fn(&T) -> String + Sync,
) -> (Vec<(Duration, String)>, Vec<String>) {
    let (times, failed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let all = Mutex::new(all.into_iter());
    let next = || all.lock().unwrap().next();
    let work = || {
        while let Some(one) = next() {
            let start = Instant::now();
            let played = std::panic::AssertUnwindSafe(|| play(&one));
            let wrong = std::panic::catch_unwind(played).unwrap_or_else(|_| "it panicked".into());
            times.lock().unwrap().push((start.elapsed(), name(&one)));
            if !wrong.is_empty() {
                failed.lock().unwrap().push(format!("{}: {wrong}", name(&one)));
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
