//! The cheapest agent that does something: this program itself.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{Write, copy, sink, stdin};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const WORD: &str = "play-the-agent";
/// Where each agent notes its start and its end.
pub const LOG: &str = "RALPH_BENCH_LOG";
/// How long each agent works, in milliseconds.
pub const LIFE: &str = "RALPH_BENCH_LIFE";
/// How each agent works: `fail` at its story, `flip` every mark besides, `edit` one file instead of making
/// one, or nothing special.
pub const DEED: &str = "RALPH_BENCH_DEED";

pub fn play() {
    let start = now();
    copy(&mut stdin(), &mut sink()).unwrap();
    let life = env::var(LIFE).ok().and_then(|life| life.parse().ok()).unwrap_or_default();
    sleep(Duration::from_millis(life));
    let story = env::var("RALPH_STORY").unwrap_or_else(|_| "none".to_owned());
    let deed = env::var(DEED).unwrap_or_default();
    if deed == "flip" {
        let text = fs::read_to_string("PRD.json").unwrap();
        fs::write("PRD.json", text.replace("\"passes\": false", "\"passes\": true")).unwrap();
    }
    let file = if deed == "edit" { "work.txt" } else { &format!("{story}.txt") };
    File::create(file).unwrap().write_all(story.as_bytes()).unwrap();
    if deed == "fail" {
        println!("something is in the way");
    } else {
        println!("Task {story} complete");
    }
    if let Some(log) = env::var_os(LOG) {
        let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        writeln!(log, "{start} {}", now()).unwrap();
    }
    if deed == "fail" {
        std::process::exit(1);
    }
}

pub fn program() -> PathBuf {
    env::current_exe().unwrap()
}

/// The command line of the agent, for `--agent-command`.
pub fn command() -> String {
    format!("{} {WORD}", program().display())
}

/// Start and end of every agent, in nanoseconds.
pub fn read_log(path: &Path) -> Vec<(u128, u128)> {
    let text = fs::read_to_string(path).unwrap();
    let parse = |line: &str| {
        let (start, end) = line.split_once(' ')?;
        Some((start.parse().ok()?, end.parse().ok()?))
    };
    text.lines().map(|line| parse(line).unwrap()).collect()
}

pub fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}
