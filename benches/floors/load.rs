//! Backlogs of ten thousand stories in the ways that used to be quadratic, and an agent that does nothing.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use ralph::model::Event;
use ralph::store::Journal;

use crate::agent;
use crate::journal::store;
use crate::measure::{Run, commit_all, contenders, cpu, ms, read_bytes, repository, stories};
use crate::report::iteration;

const COUNTS: [usize; 3] = [1_000, 3_000, 10_000];
/// How long an idle driver is watched.
const WATCHED: Duration = Duration::from_secs(5);

pub fn bench() {
    for (name, program) in contenders() {
        for count in COUNTS {
            let spent = chain(&program, count);
            println!(
                "  {name}: a chain of {count}, each iteration fails: {spent:.1} ms CPU per iteration (10,000: 20)"
            );
        }
        for count in COUNTS {
            let gap = flipped(&program, count);
            println!(
                "  {name}: an agent flips {count} marks: {gap:.0} ms to the next agent (10,000: 200)"
            );
        }
        for closed in [0, 9_990] {
            let (spent, read) = idle(&program, closed);
            println!(
                "  {name}: idle agent, 10,000 stories, {closed} closed: {spent:.2} ms CPU (1.5) and {read} bytes read per second"
            );
        }
    }
}

fn scene(folder: &Path, text: &str) -> std::path::PathBuf {
    let root = folder.join("repo");
    let repo = repository(&root, 10);
    fs::write(root.join("PRD.json"), text).unwrap();
    commit_all(&repo, "backlog");
    root
}

/// CPU of one more failing iteration. Half of the chain passes.
fn chain(program: &Path, count: usize) -> f64 {
    let cpu_of = |iterations: usize| {
        let folder = tempfile::tempdir().unwrap();
        let root = scene(folder.path(), &chained(count));
        let mut run = Run::new(program, &root);
        run.args(["--max-iterations", &iterations.to_string(), "--on-escalation", "park"]);
        run.env("STUCK_THRESHOLD", "99").env(agent::DEED, "fail").env(agent::LIFE, "300");
        cpu::of(&mut run.args(["--max-consecutive-errors", "none"]).spawn())
    };
    let (few, many) = (cpu_of(1), cpu_of(3));
    ms(many.saturating_sub(few)) / 2.0
}

fn chained(count: usize) -> String {
    let mut text = stories(count);
    for number in (2..=count).rev() {
        let id = format!("\"id\": \"US-{number:05}\",");
        let on = format!("{id}\n      \"depends_on\": [\"US-{:05}\"],", number - 1);
        text = text.replacen(&id, &on, 1);
    }
    text.replacen("\"passes\": false", "\"passes\": true", count / 2)
}

fn flipped(program: &Path, count: usize) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let root = scene(folder.path(), &stories(count));
    let log = folder.path().join("log");
    let mut run = Run::new(program, &root);
    run.args(["--max-iterations", "2"]).env(agent::LOG, &log);
    run.env(agent::DEED, "flip").env(agent::LIFE, "100").status();
    let times = agent::read_log(&log);
    (times[1].0 - times[0].1) as f64 / 1e6
}

/// `closed`: so many stories were closed before, in the same run.
fn idle(program: &Path, closed: u32) -> (f64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let count = usize::try_from(closed).unwrap();
    let text = stories(10_000).replacen("\"passes\": false", "\"passes\": true", count);
    let root = scene(folder.path(), &text);
    if closed > 0 {
        closed_before(&root, closed);
    }
    let mut run = Run::new(program, &root);
    run.args([
        "--max-iterations",
        &(closed + 1).to_string(),
        "--max-run-time",
        "none",
        "--budget",
        "none",
    ]);
    run.env(agent::LIFE, "12000");
    let mut child = run.spawn();
    // It has long settled.
    sleep(Duration::from_secs(3));
    let before = (cpu::now(child.id()), read_bytes(child.id()));
    sleep(WATCHED);
    let after = (cpu::now(child.id()), read_bytes(child.id()));
    assert!(child.try_wait().unwrap().is_none(), "its agent still works");
    child.wait().unwrap();
    let seconds = WATCHED.as_secs_f64();
    let read = (after.1 - before.1) as f64 / seconds;
    (ms(after.0 - before.0) / seconds, read as u64)
}

/// In a run that was interrupted.
pub fn closed_before(root: &Path, closed: u32) {
    let run = r#"{ "kind": "run_started", "run": "r", "backlog": "PRD.json", "project": "bench",
        "agent": "a", "branch": null }"#;
    let iterations = (1..=closed).flat_map(iteration).map(|recorded| recorded.event);
    let events: Vec<Event> = std::iter::once(serde_json::from_str(run).unwrap())
        .chain(iterations)
        .chain([Event::RunInterrupted { signal: 2 }])
        .collect();
    let mut journal = store(&root.join(".git/ralph")).journal("PRD.json").unwrap();
    journal.append("r", 1, &events).unwrap();
}
