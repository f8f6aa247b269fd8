//! An agent's pipe → decode → scan → log, and the whole attempt of which that is a part.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ralph::agent::{StreamReader, any_decoder};
use ralph::model::{Event, Exit, StoryId};
use ralph::runner::transcript::Transcript;
use ralph::store::Journal;
use ralph::store::log::Log;
use ralph::text::signals::Scanner;
use tokio::io::AsyncReadExt;
use tokio::process::Command as AsyncCommand;

use crate::agent;
use crate::journal::store;
use crate::measure::{Times, contenders, cpu, ms, ralph, repository, stories};
use crate::scan::{CHUNK, recordings_once, times};

pub const WORD: &str = "print-recordings";

const ROUNDS: usize = 7;
/// As the driver has it.
const PIPE_BYTES: usize = 1024 * 1024;
const LOG_LIMIT: u64 = 256_000_000;

pub fn bench() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = folder.path().join("recorded");
    // A refused login would end the attempt at once.
    let events = recordings_once(|line| !line.contains("\"authentication_failed\""));
    fs::write(&recorded, &events).unwrap();
    let megabytes = (events.len() * times(&events)) as f64 / 1e6;
    let (mut floor, mut chain, mut whole) = (Times::default(), Times::default(), Times::default());
    for (name, program) in contenders() {
        let spent = cpu_of_stream(&program, &recorded);
        println!(
            "  {name}: {:.0} ms CPU of the driver more than for an agent without output (at most 400)",
            ms(spent)
        );
    }
    for round in 0..ROUNDS {
        floor.push(into_nothing(&recorded));
        let logs = tempfile::tempdir().unwrap();
        chain.push(into_a_log(&recorded, logs.path()));
        drop(logs);
        whole.push(attempt(&folder.path().join(round.to_string()), &recorded));
    }
    let tell = |what: &str, times: &Times| {
        let rate = |time: Duration| megabytes / time.as_secs_f64();
        let (best, median) = (rate(times.min()), rate(times.median()));
        println!("  {what:<58} {best:>6.0} MB/s best {median:>6.0} MB/s median");
    };
    println!("  {megabytes:.0} MB of recorded events");
    tell("pipe, decoder, scanner and log (at least 600)", &chain);
    tell("the whole attempt, with redaction (at least 400)", &whole);
    tell("floor: the same pipe into nothing", &floor);
}

/// Runs as the agent: the events again and again, as fast as a pipe takes them.
pub fn play(recorded: &str) {
    let events = fs::read(recorded).unwrap();
    let mut out = std::io::stdout().lock();
    for _ in 0..times(&events) {
        out.write_all(&events).unwrap();
    }
}

fn into_nothing(recorded: &Path) -> Duration {
    let start = Instant::now();
    let mut child = Command::new(agent::program());
    let mut child = child.arg(WORD).arg(recorded).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_BYTES);
    let mut chunk = vec![0; CHUNK];
    while pipe.read(&mut chunk).unwrap() > 0 {}
    assert!(child.wait().unwrap().success());
    start.elapsed()
}

/// The way through an attempt, without the supervisor and what is done to every secret.
fn into_a_log(recorded: &Path, folder: &Path) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let log = |name: &str| {
            let mut file = fs::File::options();
            file.read(true).write(true).create(true).truncate(true);
            Log::new(file.open(folder.join(name)), LOG_LIMIT)
        };
        let mut transcript = Transcript::begin(log("output"), Some(log("errors")));
        let start = Instant::now();
        let mut child = AsyncCommand::new(agent::program());
        let mut child = child.arg(WORD).arg(recorded).stdout(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdout.take().unwrap();
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_BYTES);
        let story = StoryId::try_from("US-001").unwrap();
        let scanner = || Scanner::new(&story, ralph::model::CompletionMarkers::default(), 0);
        let mut reading = StreamReader::new(any_decoder(), scanner, "prompt");
        let mut chunk = Vec::with_capacity(CHUNK);
        while pipe.read_buf(&mut chunk).await.unwrap() > 0 {
            reading.push(&chunk, &mut |_| {});
            transcript.output(chunk).await;
            chunk = transcript.buffer();
            chunk.reserve(CHUNK);
        }
        reading.finish(&Exit::Code(0), &mut |_| {});
        assert!(transcript.finish().await.is_none());
        assert!(child.wait().await.unwrap().success());
        start.elapsed()
    })
}

/// The driver's CPU for all events, without what a run costs anyway.
fn cpu_of_stream(program: &Path, recorded: &Path) -> Duration {
    let of = |command: &str| {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("repo");
        repository(&root, 10);
        fs::write(root.join("PRD.json"), stories(1)).unwrap();
        let mut run = Command::new(program);
        run.current_dir(&root).args(["run", "--quiet", "--once", "--agent-command", command]);
        cpu::of(&mut run.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let command = format!("{} {WORD} {}", agent::program().display(), recorded.display());
    let spent = Times::of_each(ROUNDS, || of(&command).saturating_sub(of("true")));
    spent.median()
}

/// What the journal says that the attempt took, from before its spawn to the proof of its end.
fn attempt(folder: &Path, recorded: &Path) -> Duration {
    let root = folder.join("repo");
    repository(&root, 10);
    fs::write(root.join("PRD.json"), stories(1)).unwrap();
    let command = format!("{} {WORD} {}", agent::program().display(), recorded.display());
    let status = ralph(&root)
        .args(["run", "--quiet", "--once", "--agent-command", &command])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
    let store = store(&root.join(".git/ralph"));
    let (events, _) = store.journal("PRD.json").unwrap().read(0).unwrap();
    let elapsed = events.iter().find_map(|recorded| match &recorded.event {
        Event::AttemptEnded(ended) => Some(ended.elapsed_ms),
        _ => None,
    });
    fs::remove_dir_all(folder).unwrap();
    Duration::from_millis(elapsed.unwrap())
}
