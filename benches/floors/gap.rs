//! From an agent's end to the next agent's start, with the commit and everything journalled.
//!
//! The floor is the least that any such loop does: start the agent, scan the work tree, write PRD.json in
//! one piece, make one commit with libgit2. It has no journal, snapshot, supervisor or sync.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::agent;
use crate::load::closed_before;
use crate::measure::{Run, Times, commit_all, contenders, ms, repository, stories, tell};

const ROUNDS: usize = 5;
/// So that what is prepared while an agent works is ready; real agents work for minutes.
const LIFE: Duration = Duration::from_millis(100);

pub fn bench() {
    small();
    for count in [1_000, 3_000, 10_000] {
        let scene = Scene { stories: count, files: 10, agents: 10, life: LIFE, deed: "" };
        compare(&format!("{count} stories"), &scene, 2);
    }
    for count in [1_000, 3_000, 10_000] {
        let scene = Scene { stories: 20, files: count, agents: 10, life: LIFE, deed: "" };
        compare(&format!("{count} files"), &scene, 2);
    }
}

/// A thousand iterations: the last hundred must not take longer than the first. The agents edit one
/// file, because a tree that grows takes longer to commit for anybody.
pub fn growth() {
    for (name, program) in contenders() {
        let life = Duration::from_millis(10);
        let scene = Scene { stories: 1_100, files: 10, agents: 1_000, life, deed: "edit" };
        let folder = tempfile::tempdir().unwrap();
        let gaps = scene.of_ralph(folder.path(), &program);
        let (first, last) = (gaps.part(0..100), gaps.part(900..999));
        tell(&format!("{name}: iterations 1 to 100"), &first);
        tell(&format!("{name}: iterations 900 to 1,000"), &last);
        let growth = last.median().as_secs_f64() / first.median().as_secs_f64() - 1.0;
        println!("  {name}: {:+.1}% in the median (within 5%)", growth * 100.0);
    }
}

/// Late in a run: of ten thousand stories so many are closed.
pub fn iterations() {
    for closed in [1_000, 3_000, 9_970] {
        for (name, program) in contenders() {
            let folder = tempfile::tempdir().unwrap();
            let scene = Scene { stories: 10_000, files: 10, agents: 20, life: LIFE, deed: "edit" };
            let gaps = scene.of_ralph_after(folder.path(), &program, closed);
            tell(&format!("{name}: after {closed} iterations"), &gaps);
        }
    }
}

fn small() {
    let scene = Scene { stories: 20, files: 10, agents: 20, life: LIFE, deed: "" };
    let (floor, all) = compare("20 stories", &scene, ROUNDS);
    for (name, gaps) in all {
        let ratio = |of: fn(&Times) -> Duration| of(&gaps).as_secs_f64() / of(&floor).as_secs_f64();
        println!(
            "  {name}: {:.2} x its floor in the minimum (at most 2), {:.2} x in the median (at most 2.5)",
            ratio(Times::min),
            ratio(Times::median)
        );
    }
}

fn compare(what: &str, scene: &Scene, rounds: usize) -> (Times, Vec<(&'static str, Times)>) {
    let mut floor = Times::default();
    let mut all: Vec<_> =
        contenders().into_iter().map(|(name, at)| (name, at, Times::default())).collect();
    for _ in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        floor.extend(scene.of_floor(&folder.path().join("floor")));
        for (name, program, gaps) in &mut all {
            gaps.extend(scene.of_ralph(&folder.path().join(name), program));
        }
    }
    for (name, _, gaps) in &all {
        tell(&format!("{what}: {name}"), gaps);
    }
    tell(&format!("{what}: floor"), &floor);
    (floor, all.into_iter().map(|(name, _, gaps)| (name, gaps)).collect())
}

struct Scene {
    stories: usize,
    files: usize,
    agents: usize,
    life: Duration,
    deed: &'static str,
}

impl Scene {
    fn of_ralph(&self, folder: &Path, program: &Path) -> Times {
        self.of_ralph_after(folder, program, 0)
    }

    /// In a run that has closed so many stories before.
    fn of_ralph_after(&self, folder: &Path, program: &Path, closed: usize) -> Times {
        let root = folder.join("repo");
        let repo = repository(&root, self.files);
        let text = stories(self.stories);
        let text = text.replacen("\"passes\": false", "\"passes\": true", closed);
        fs::write(root.join("PRD.json"), text).unwrap();
        commit_all(&repo, "backlog");
        if closed > 0 {
            closed_before(&root, u32::try_from(closed).unwrap());
        }
        let log = folder.join("log");
        let mut run = Run::new(program, &root);
        run.args(["--max-iterations", &(closed + self.agents).to_string(), "--budget", "none"]);
        run.args(["--max-run-time", "none"]).env(agent::LOG, &log);
        run.env(agent::LIFE, ms(self.life).to_string()).env(agent::DEED, self.deed).status();
        self.gaps(&log)
    }

    fn of_floor(&self, root: &Path) -> Times {
        let repo = repository(root, self.files);
        let mut text = stories(self.stories);
        fs::write(root.join("PRD.json"), &text).unwrap();
        commit_all(&repo, "backlog");
        let log = root.with_extension("log");
        for number in 1..=self.agents {
            let status = Command::new(agent::program())
                .arg(agent::WORD)
                .current_dir(root)
                .env("RALPH_STORY", format!("US-{number:05}"))
                .env(agent::LOG, &log)
                .env(agent::LIFE, ms(self.life).to_string())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status();
            assert!(status.unwrap().success());
            text = text.replacen("\"passes\": false", "\"passes\": true", 1);
            let mut file = tempfile::NamedTempFile::new_in(root).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.persist(root.join("PRD.json")).unwrap();
            commit_all(&repo, "next");
        }
        self.gaps(&log)
    }

    fn gaps(&self, log: &Path) -> Times {
        let times = agent::read_log(log);
        assert_eq!(times.len(), self.agents);
        let mut gaps = Times::default();
        for pair in times.windows(2) {
            let nanos = pair[1].0.saturating_sub(pair[0].1);
            gaps.push(Duration::from_nanos(u64::try_from(nanos).unwrap()));
        }
        gaps
    }
}
