//! From an agent's end to the next agent's start, commit included.

use std::fs;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::agent;
use crate::measure::{Times, commit_all, ms, ralph, repository, stories, tell};

const STORIES: usize = 30;
const ROUNDS: usize = 5;
/// Transactions of the journal between two agents: ended, closed, started.
const SYNCS: usize = 3;

pub fn bench() {
    let (mut gaps, mut spawns, mut commits, mut syncs) =
        (Times::default(), Times::default(), Times::default(), Times::default());
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir().unwrap();
        loop_gaps(folder.path(), &mut gaps);
        floor(folder.path(), &mut spawns, &mut commits, &mut syncs);
    }
    tell("agent's end to next agent's start, with commit", &gaps);
    tell("floor: supervisor + agent, spawn and wait", &spawns);
    tell("floor: one libgit2 commit", &commits);
    tell(&format!("floor: {SYNCS} appends with fdatasync"), &syncs);
    let floor = |of: fn(&Times) -> Duration| of(&spawns) + of(&commits) + of(&syncs);
    for (name, of) in [("min", Times::min as fn(&Times) -> Duration), ("median", Times::median)] {
        let ratio = of(&gaps).as_secs_f64() / floor(of).as_secs_f64();
        println!(
            "  {name}: {:.3} ms is {ratio:.2} x its floor of {:.3} ms (at most 1.5)",
            ms(of(&gaps)),
            ms(floor(of))
        );
    }
}

fn loop_gaps(folder: &Path, gaps: &mut Times) {
    let root = folder.join("repo");
    repository(&root);
    fs::write(root.join("PRD.json"), stories(STORIES)).unwrap();
    let log = folder.join("log");
    let command = format!("{} {}", agent::program().display(), agent::WORD);
    let status = ralph(&root)
        .args(["run", "--quiet", "--agent-command", &command])
        .env("RALPH_BENCH_LOG", &log)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let times = agent::read_log(&log);
    assert_eq!(times.len(), STORIES);
    for pair in times.windows(2) {
        let nanos = pair[1].0.saturating_sub(pair[0].1);
        gaps.push(Duration::from_nanos(u64::try_from(nanos).unwrap()));
    }
}

fn floor(folder: &Path, spawns: &mut Times, commits: &mut Times, syncs: &mut Times) {
    let root = folder.join("floor");
    let repo = repository(&root);
    let prompt = folder.join("prompt");
    fs::write(&prompt, "x".repeat(4096)).unwrap();
    let mut log = File::create(folder.join("sync")).unwrap();
    for number in 0..STORIES {
        let spawn = Times::of(1, || supervised(&root, &prompt));
        spawns.push(spawn.min());
        fs::write(root.join("none.txt"), number.to_string()).unwrap();
        fs::write(root.join("PRD.json"), stories(STORIES + number)).unwrap();
        commits.push(Times::of(1, || commit_all(&repo, "next")).min());
        let sync = Times::of(1, || {
            for _ in 0..SYNCS {
                log.write_all(&[b'x'; 4096]).unwrap();
                log.sync_data().unwrap();
            }
        });
        syncs.push(sync.min());
    }
}

fn supervised(root: &Path, prompt: &Path) {
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let output = ralph(root)
        .args(["supervise", "--input"])
        .arg(prompt)
        .arg("--")
        .arg(agent::program())
        .arg(agent::WORD)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .output()
        .unwrap();
    assert!(output.status.success());
}
