//! The cheapest agent that does something: this program itself.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{Write, copy, sink, stdin};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub const WORD: &str = "play-the-agent";

pub fn play() {
    let start = now();
    copy(&mut stdin(), &mut sink()).unwrap();
    let story = env::var("RALPH_STORY").unwrap_or_else(|_| "none".to_owned());
    let mut out = std::io::stdout();
    File::create(format!("{story}.txt")).unwrap().write_all(story.as_bytes()).unwrap();
    writeln!(out, "Task {story} complete").unwrap();
    if let Some(log) = env::var_os("RALPH_BENCH_LOG") {
        let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        writeln!(log, "{start} {}", now()).unwrap();
    }
}

pub fn program() -> PathBuf {
    env::current_exe().unwrap()
}

/// Start and end of every agent, in nanoseconds.
pub fn read_log(path: &Path) -> Vec<(u128, u128)> {
    let text = std::fs::read_to_string(path).unwrap();
    let parse = |line: &str| {
        let (start, end) = line.split_once(' ')?;
        Some((start.parse().ok()?, end.parse().ok()?))
    };
    text.lines().map(|line| parse(line).unwrap()).collect()
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}
