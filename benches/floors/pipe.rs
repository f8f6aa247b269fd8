//! An agent's pipe → decode → scan → log: the whole attempt, with its supervisor.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ralph::core::event::Event;
use ralph::store::journal::{Journal, Scope, SqliteJournal};

use crate::agent;
use crate::measure::{Times, ralph, repository, stories};
use crate::scan::recordings;

pub const WORD: &str = "print-recordings";

const ROUNDS: usize = 7;
/// As the driver has them.
const PIPE_BYTES: usize = 1024 * 1024;
const CHUNK: usize = 256 * 1024;

pub fn bench() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = folder.path().join("recorded");
    // A refused login would end the attempt at once.
    let events = recordings(|line| !line.contains("\"authentication_failed\""));
    fs::write(&recorded, &events).unwrap();
    let megabytes = events.len() as f64 / 1e6;
    drop(events);
    let (mut ours, mut floor) = (Times::default(), Times::default());
    for round in 0..ROUNDS {
        floor.push(into_nothing(&recorded));
        ours.push(attempt(&folder.path().join(round.to_string()), &recorded));
    }
    let rate = |time: Duration| megabytes / time.as_secs_f64();
    println!(
        "  {megabytes:.0} MB through pipe, decoder, scanner and log: {:.0} MB/s best, {:.0} MB/s median (at least 600)",
        rate(ours.min()),
        rate(ours.median())
    );
    println!(
        "  floor: the same pipe into nothing: {:.0} MB/s best, {:.0} MB/s median",
        rate(floor.min()),
        rate(floor.median())
    );
}

/// Runs as the agent: the file as fast as a pipe takes it.
pub fn play(recorded: &str) {
    let mut file = fs::File::open(recorded).unwrap();
    let mut out = std::io::stdout().lock();
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = file.read(&mut chunk).unwrap();
        if count == 0 {
            return;
        }
        out.write_all(&chunk[..count]).unwrap();
    }
}

fn into_nothing(recorded: &Path) -> Duration {
    let start = Instant::now();
    let mut child = Command::new(agent::program())
        .arg(WORD)
        .arg(recorded)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_BYTES);
    let mut chunk = vec![0; CHUNK];
    while pipe.read(&mut chunk).unwrap() > 0 {}
    assert!(child.wait().unwrap().success());
    start.elapsed()
}

/// What the journal says that the attempt took, from before its spawn to the proof of its end.
fn attempt(folder: &Path, recorded: &Path) -> Duration {
    let root = folder.join("repo");
    repository(&root);
    fs::write(root.join("PRD.json"), stories(1)).unwrap();
    let command = format!("{} {WORD} {}", agent::program().display(), recorded.display());
    let status = ralph(&root)
        .args(["run", "--quiet", "--once", "--agent-command", &command])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
    let scope = Scope { backlog: "PRD.json".to_owned(), work_tree: String::new() };
    let journal = SqliteJournal::open(&root.join(".git/ralph/journal.db"), scope).unwrap();
    let (events, _) = journal.read(0).unwrap();
    let elapsed = events.iter().find_map(|recorded| match &recorded.event {
        Event::AttemptEnded(ended) => Some(ended.elapsed_ms),
        _ => None,
    });
    fs::remove_dir_all(folder).unwrap();
    Duration::from_millis(elapsed.unwrap())
}
