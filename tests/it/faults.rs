//! The worst agents there are. None leaves a process behind, none holds the run for longer than
//! its grace, and none makes the driver large.

use std::fs;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use ralph::model::{Event, Outcome};

use crate::support::world::{Ends, PATIENCE, RALPH, Runs, Said, signal};
use crate::support::{Prd, World};

/// What an agent that was told to end has, and a little for everything else.
const AT_MOST: Duration = Duration::from_secs(5 + 2);
/// In kB: what the driver may hold, and the longest line that it reads.
const MOST_MEMORY: u64 = 40 * 1000 + 64 * 1024;

struct Fault<'a> {
    script: &'a str,
    settings: &'a str,
    /// How long it may be as it is after its last word before it has to be ended.
    due: Duration,
}

impl Fault<'_> {
    /// One iteration with this agent. A machine that is busy with something else can hold up
    /// anything, so that the time is given three chances; everything else holds each time.
    fn befalls(&self) -> (World, Said) {
        let mut chances = 3;
        loop {
            let (world, said, took) = self.once();
            chances -= 1;
            assert!(took < AT_MOST || chances > 0, "{took:?} after it should have ended");
            if took < AT_MOST {
                return (world, said);
            }
        }
    }

    fn once(&self) -> (World, Said, Duration) {
        let world = World::scripted(&Prd::stories(1), self.script);
        world.write("ralph.toml", self.settings);
        let child = world.start(&["--once"]);
        let memory = watch_memory(&child);
        let said = child.ended();
        let left = world.processes();
        assert!(left.is_empty(), "{left:?}\n{}", said.err);
        let took = held(&world).saturating_sub(self.due);
        let most = memory.join().unwrap();
        assert!(most > 0 && most < MOST_MEMORY, "{most} kB");
        (world, said, took)
    }
}

/// The driver's peak, asked for as long as it lives.
fn watch_memory(driver: &Child) -> JoinHandle<u64> {
    let status = format!("/proc/{}/status", driver.id());
    std::thread::spawn(move || {
        let mut most = 0;
        loop {
            let status = fs::read_to_string(&status).unwrap_or_default();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let Some(peak) = peak else { return most };
            most = most.max(peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
    })
}

/// From the agent's last word (or its start, when it said nothing) to the end of its attempt.
fn held(world: &World) -> Duration {
    let mut times = world.journal().into_iter().filter_map(|recorded| match recorded.event {
        Event::AttemptStarted(_) | Event::AttemptEnded(_) => Some(recorded.at),
        _ => None,
    });
    let (started, ended) = (times.next().unwrap(), times.next().unwrap());
    let last_word = last_timestamp(&fs::read_to_string(world.iteration_file(".log")).unwrap());
    Duration::from_millis(u64::try_from(ended - last_word.unwrap_or(started)).unwrap())
}

fn last_timestamp(log: &str) -> Option<i64> {
    let event = log.lines().rev().find(|line| line.contains("\"timestamp\""))?;
    let event: serde_json::Value = serde_json::from_str(event).unwrap();
    let time: jiff::Timestamp = event["timestamp"].as_str()?.parse().unwrap();
    Some(time.as_millisecond())
}

/// Every claim comes with work, so that it can be true.
fn steps(steps: &str) -> String {
    format!("[default]\nsteps = [{{ write = \"${{STORY}}.txt\", text = \"work\" }}, {steps}]\n")
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_agent_that_ignores_sigterm() {
    let script = steps("{ say = \"no\" }, { hang = \"ignore-term\" }");
    let fault = Fault { script: &script, settings: "idle_timeout = \"1s\"\n", due: SECOND };
    let (_, said) = fault.befalls();
    assert!(said.err.contains("stopped printing"), "{}", said.err);
}

#[test]
fn an_agent_that_never_begins() {
    let script = "[default]\ninit = false\nsteps = [\"hang\"]\n";
    let fault = Fault { script, settings: "first_event_timeout = \"1s\"\n", due: SECOND };
    let (_, said) = fault.befalls();
    assert!(said.err.contains("printed nothing"), "{}", said.err);
}

#[test]
fn an_agent_that_does_not_exit_after_its_result() {
    let script = steps("\"complete\", \"hang_after_result\"");
    let fault = Fault { script: &script, settings: "result_grace = \"1s\"\n", due: SECOND };
    let (_, said) = fault.befalls();
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn a_child_in_a_session_of_its_own_or_without_a_parent_that_may_hold_the_pipe() {
    for kind in ["setsid", "double-fork"] {
        for holds in [false, true] {
            let script = steps(&format!(
                "{{ grandchild = \"{kind}\", holds_output = {holds} }}, \"complete\""
            ));
            let fault = Fault { script: &script, settings: "", due: Duration::ZERO };
            let (_, said) = fault.befalls();
            assert_eq!(said.code, 0, "{kind} {holds}: {}", said.err);
        }
    }
}

#[test]
fn a_thousand_processes() {
    for deaf in [false, true] {
        let script = steps(&format!(
            "{{ tree = 1000, ignore_term = {deaf} }}, {{ run = \"{COUNT}\" }}, \"complete\""
        ));
        let fault = Fault { script: &script, settings: "", due: Duration::ZERO };
        let (world, said) = fault.befalls();
        assert_eq!(said.code, 0, "{}", said.err);
        let count: u32 = world.read("count.txt").trim().parse().unwrap();
        assert!(count >= 1000, "{count} were there");
        assert!(said.err.contains("ended processes that the agent left running"), "{}", said.err);
        assert!(said.err.len() < 4000, "and not every one of them is named: {}", said.err);
    }
}

/// Processes that came from this world's script: the agent, its shell, and the tree.
const COUNT: &str = "grep -lzsx HOME=$HOME /proc/[0-9]*/environ | wc -l > count.txt";

/// `cargo bench -- memory` has lines of a gigabyte.
#[test]
fn a_line_of_200_megabytes() {
    // Plain text says nothing of when it was said.
    for (plain, due) in [(false, Duration::ZERO), (true, PATIENCE)] {
        let line = steps("{ output = { line_mb = 200 } }, \"complete\"");
        let script = format!("{line}plain = {plain}\n");
        let fault = Fault { script: &script, settings: "log_limit = \"8MB\"\n", due };
        let (world, said) = fault.befalls();
        assert_eq!(said.code, 0, "{}", said.err);
        is_capped(&world, 200_000_000);
    }
}

#[test]
fn events_of_200_megabytes() {
    let script = steps("{ output = { mb = 200 } }, \"complete\"");
    let fault = Fault { script: &script, settings: "log_limit = \"8MB\"\n", due: Duration::ZERO };
    let (world, said) = fault.befalls();
    assert_eq!(said.code, 0, "{}", said.err);
    is_capped(&world, 200_000_000);
}

/// Start and end of what was said are in the log, and how much is not.
fn is_capped(world: &World, said: usize) {
    let log = fs::read(world.iteration_file(".log")).unwrap();
    assert!(log.len() <= 8_000_000, "{} bytes", log.len());
    let log = String::from_utf8(log).unwrap();
    assert!(log.starts_with("{\"") || log.starts_with("xxx"));
    assert!(log.contains("Task US-001 complete"));
    let (_, number) = log.split_once("\n… ").unwrap();
    let (number, _) = number.split_once(" bytes left out …").unwrap();
    let left_out: usize = number.parse().unwrap();
    assert!(left_out + log.len() > said && left_out + log.len() < said + said / 50, "{left_out}");
}

#[test]
fn what_is_in_the_place_of_a_log_costs_nothing() {
    for plant in ["ln -s /dev/full 0002-US-002.log", "mkdir -p 0002-US-002.log/full"] {
        let script =
            steps(&format!("{{ run = \"cd .ralph/runs/*; {plant}; echo x > x\" }}, \"complete\""));
        let world = World::scripted(&Prd::stories(2), &script);
        let said = world.run(&[]);
        assert_eq!((said.code, world.passing().len()), (0, 2), "{plant}: {}", said.err);
        let log = fs::read_to_string(world.iteration_file("0002-US-002-2.log")).unwrap();
        assert!(log.contains("Task US-002 complete"), "{plant}: {log}");
    }
}

/// Faster than it can be read, so that there is always something to hear.
fn endless(settings: &str) -> (World, Child) {
    let world = World::with(&Prd::stories(1));
    world.write("ralph.toml", &format!("log_limit = \"2MB\"\n{settings}"));
    let agent = "sh -c 'echo y > began; exec yes'";
    let mut driver = world.command(RALPH);
    driver.args(["run", "--once", "--agent-command", agent]);
    let driver = driver.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    world.await_file("began");
    (world, driver.unwrap())
}

#[test]
fn an_agent_that_never_stops_talking_is_out_of_time_all_the_same() {
    let (world, driver) = endless("iteration_timeout = \"2s\"\n");
    assert_eq!(driver.ended().code, 3);
    assert_eq!(world.processes(), [""; 0]);
    let outcomes = world.journal().into_iter().filter_map(|recorded| match recorded.event {
        Event::AttemptEnded(ended) => Some(ended.outcome),
        _ => None,
    });
    assert_eq!(outcomes.collect::<Vec<_>>(), [Outcome::IterationTimeout]);
}

#[test]
fn a_human_interrupts_an_agent_that_never_stops_talking() {
    let (world, driver) = endless("");
    signal(&driver, rustix::process::Signal::INT);
    assert_eq!(driver.ended().code, 130);
    assert_eq!(world.processes(), [""; 0]);
}

/// From none at all to enough. On the way some of them took a file for one that is not there.
#[test]
fn with_few_descriptors_a_command_says_so_before_it_begins() {
    let world = World::with(&Prd::stories(2));
    let check = |words: &str, most: u32| {
        let mut shell = world.command("sh");
        let said = shell.args(["-c", &format!("ulimit -n {most}; exec {RALPH} {words}")]).said();
        // The system's loader may not even get as far as the program.
        let is_loader = said.code == 127 && said.err.contains("shared libraries");
        if is_loader && most < 8 {
            return;
        }
        assert_eq!(said.code, 1, "{words}, {most}: {}", said.err);
        let told = "error: fewer than 64 more files can be open at a time";
        assert!(said.err.contains(told), "{words}, {most}: {}", said.err);
        assert!(said.err.contains("ulimit -n 1024"), "{words}, {most}: {}", said.err);
    };
    let run = world.run_words(&[]).join(" ");
    for most in [3, 4, 13, 16, 24, 32, 48] {
        check(&run, most);
        assert!(!world.path(".ralph").exists() && !world.path(".git/ralph").exists(), "{most}");
    }
    assert_eq!(world.run(&["--once"]).code, 3);
    world.write("README.md", "edited\n");
    let before = [world.status(), world.subjects().join("\n"), world.read("PRD.json")];
    for words in [
        "status",
        "cost",
        "log",
        "diff US-001",
        "prompt US-002",
        "check",
        "trust --yes",
        "nudge hello",
        "mark US-002 pass",
        "checkpoint -m x",
        "restore 1",
        "undo US-001",
        "init new",
        "run --dry-run",
    ] {
        for most in [3, 4, 5, 6, 8, 11, 16, 20] {
            check(words, most);
        }
    }
    let after = [world.status(), world.subjects().join("\n"), world.read("PRD.json")];
    assert_eq!(after, before);
}
