//! Times, and how they are told.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

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

    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
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

/// A repository with an identity, ten files and one commit.
pub fn repository(root: &Path) -> git2::Repository {
    let repo = git2::Repository::init(root).unwrap();
    let mut config = repo.config().unwrap();
    config.set_str("user.name", "Bench").unwrap();
    config.set_str("user.email", "bench@example.org").unwrap();
    for number in 0..10 {
        std::fs::write(root.join(format!("file-{number}.txt")), format!("{number}\n")).unwrap();
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
