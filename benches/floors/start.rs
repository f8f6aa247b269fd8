//! From the start of `ralph run` to the start of its first agent.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ralph::model::{Event, StopReason, StoryId};
use ralph::store::Journal;
use ralph::workspace::WorkTree;

use crate::agent;
use crate::journal::store;
use crate::measure::{Run, Times, commit_all, contenders, repository, stories, tell};
use crate::report::iteration;

const ROUNDS: usize = 15;
const PRD: &str = "PRD.json";
const EARLIER_RUN: &str = "0199a8b0-5c1d-7000-8000-000000000000";

pub fn bench() {
    for (name, program) in contenders() {
        let fresh = Times::of_each(ROUNDS, || {
            let folder = tempfile::tempdir().unwrap();
            scene(folder.path());
            first_agent(&program, folder.path())
        });
        tell(&format!("{name}: the first run in a repository (15 ms)"), &fresh);
        let folder = tempfile::tempdir().unwrap();
        scene(folder.path());
        first_agent(&program, folder.path());
        let again = Times::of_each(ROUNDS, || first_agent(&program, folder.path()));
        tell(&format!("{name}: with a journal (8 ms)"), &again);
        for iterations in [300, 1_000, 3_000] {
            let folder = tempfile::tempdir().unwrap();
            scene(folder.path());
            history(folder.path(), iterations);
            // The first start packs the refs.
            first_agent(&program, folder.path());
            let times = Times::of_each(ROUNDS, || first_agent(&program, folder.path()));
            let events = iterations * 4;
            tell(
                &format!("{name}: {events} events, {iterations} kept refs (3,000: 60 ms)"),
                &times,
            );
        }
    }
    let floor = Times::of(ROUNDS, || {
        let status =
            Command::new(crate::measure::RALPH).arg("--version").stdout(Stdio::null()).status();
        assert!(status.unwrap().success());
    });
    tell("included: `ralph --version`", &floor);
}

fn scene(folder: &Path) {
    let root = folder.join("repo");
    let repo = repository(&root, 10);
    fs::write(root.join(PRD), stories(20)).unwrap();
    commit_all(&repo, "backlog");
}

/// An earlier run that ended.
fn history(folder: &Path, iterations: u32) {
    let root = folder.join("repo");
    let mut tree = WorkTree::open(&root).unwrap();
    tree.serve(EARLIER_RUN, PRD);
    let (base, story) = (tree.base().unwrap(), StoryId::try_from("US-001").unwrap());
    for number in 1..=iterations {
        let name = tree.snapshot_name(number).unwrap();
        tree.keep_snapshot(&name, &story, number, &base).unwrap();
    }
    let mut journal = store(&root.join(".git/ralph")).journal(PRD).unwrap();
    let events: Vec<Event> =
        (1..=iterations).flat_map(|n| iteration(n).into_iter().map(|one| one.event)).collect();
    journal.append(EARLIER_RUN, 1, &events).unwrap();
    journal.append(EARLIER_RUN, 2, &[Event::RunEnded { reason: StopReason::Aborted }]).unwrap();
}

fn first_agent(program: &Path, folder: &Path) -> Duration {
    let log = folder.join("log");
    let _ = fs::remove_file(&log);
    let start = agent::now();
    Run::new(program, &folder.join("repo")).args(["--once"]).env(agent::LOG, &log).status();
    let first = agent::read_log(&log)[0].0;
    Duration::from_nanos(u64::try_from(first - start).unwrap())
}
