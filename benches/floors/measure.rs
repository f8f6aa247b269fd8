//! Times, and how they are told.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::agent;

pub const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
/// Another `ralph` to measure next to this one, such as an earlier release.
const BEFORE: &str = "RALPH_BENCH_BEFORE";

/// This `ralph`, and the one to compare it with, if any.
pub fn contenders() -> Vec<(&'static str, PathBuf)> {
    let before = std::env::var_os(BEFORE).map(|path| ("before", PathBuf::from(path)));
    before.into_iter().chain([("ralph", PathBuf::from(RALPH))]).collect()
}

/// Several measurements of one thing.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn of(rounds: usize, mut what: impl FnMut()) -> Self {
        let mut times = Self::default();
        for _ in 0..rounds {
            let start = Instant::now();
            what();
            times.push(start.elapsed());
        }
        times
    }

    /// Of something that measures itself.
    pub fn of_each(rounds: usize, mut what: impl FnMut() -> Duration) -> Self {
        Self((0..rounds).map(|_| what()).collect())
    }

    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub fn part(&self, range: Range<usize>) -> Self {
        Self(self.0.get(range).unwrap_or_default().to_vec())
    }

    pub fn min(&self) -> Duration {
        self.0.iter().min().copied().unwrap_or_default()
    }

    pub fn median(&self) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

pub fn tell(what: &str, times: &Times) {
    println!("  {what:<52} {:>9.3} ms min {:>9.3} ms median", ms(times.min()), ms(times.median()));
}

pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A repository with an identity, some files and one commit.
pub fn repository(root: &Path, files: usize) -> git2::Repository {
    let repo = git2::Repository::init(root).unwrap();
    let mut config = repo.config().unwrap();
    config.set_str("user.name", "Bench").unwrap();
    config.set_str("user.email", "bench@example.org").unwrap();
    for number in 0..files {
        let folder = root.join(format!("folder-{}", number / 100));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("file-{number}.txt")), format!("{number}\n")).unwrap();
    }
    commit_all(&repo, "first");
    repo
}

/// The cheapest commit of everything that libgit2 can make.
pub fn commit_all(repo: &git2::Repository, message: &str) {
    let mut index = repo.index().unwrap();
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
    index.write().unwrap();
    let tree = repo.find_tree(index.write_tree().unwrap()).unwrap();
    let who = git2::Signature::now("Bench", "bench@example.org").unwrap();
    let parent = repo.head().ok().and_then(|head| head.peel_to_commit().ok());
    let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
    repo.commit(Some("HEAD"), &who, &who, message, &tree, &parents).unwrap();
}

pub fn stories(count: usize) -> String {
    let story = |number: usize| {
        format!(
            "    {{\n      \"id\": \"US-{number:05}\",\n      \"title\": \"Story {number}\",\n      \
             \"description\": \"As a user I want what story {number} is about, so that the work \
             goes on and nobody has to wait for it any longer than needed.\",\n      \"criteria\": \
             [\n        \"The first criterion of story {number} is met\",\n        \"The tests \
             cover it and pass\"\n      ],\n      \"passes\": false,\n      \"priority\": {number}\n    }}"
        )
    };
    let all: Vec<String> = (1..=count).map(story).collect();
    format!(
        "{{\n  \"project\": \"bench\",\n  \"description\": \"\",\n  \"userStories\": [\n{}\n  ]\n}}\n",
        all.join(",\n")
    )
}

pub fn ralph(folder: &Path) -> Command {
    let mut command = Command::new(RALPH);
    command.current_dir(folder).env_remove("MAX_ITERATIONS");
    command
}

/// `ralph run` with the bench's own agent.
pub struct Run(Command);

impl Run {
    pub fn new(program: &Path, root: &Path) -> Self {
        let mut command = Command::new(program);
        command.current_dir(root).env_remove("MAX_ITERATIONS");
        command.args(["run", "--quiet", "--agent-command", &agent::command()]);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        Self(command)
    }

    pub fn args<'a>(&mut self, args: impl IntoIterator<Item = &'a str>) -> &mut Self {
        self.0.args(args);
        self
    }

    pub fn env(&mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> &mut Self {
        self.0.env(name, value);
        self
    }

    pub fn spawn(&mut self) -> std::process::Child {
        self.0.spawn().unwrap()
    }

    pub fn status(&mut self) -> ExitStatus {
        self.0.status().unwrap()
    }
}

/// What a process read from files and pipes.
pub fn read_bytes(pid: u32) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// The time that processes spend on a core, without their children.
pub mod cpu {
    use std::fs;
    use std::process::Child;
    use std::time::Duration;

    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    /// Ticks per second of `/proc/<pid>/stat`.
    const TICK: Duration = Duration::from_millis(10);

    /// Until now, of all threads that live.
    pub fn now(pid: u32) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let spent = tasks.filter_map(|task| {
            let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
            stat.split_ascii_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(spent.sum())
    }

    /// Waits for the process.
    pub fn of(child: &mut Child) -> Duration {
        let pid = Pid::from_child(child);
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let ticks = fields.split_ascii_whitespace().skip(11).take(2);
        let ticks: u32 = ticks.map(|ticks| ticks.parse::<u32>().unwrap()).sum();
        child.wait().unwrap();
        TICK * ticks
    }
}
