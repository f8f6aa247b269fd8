//! Ends processes (SIGTERM, a grace, SIGKILL, until none is left), also those that earlier runs left
//! running.
//!
//! A supervisor ends its agent when the driver is killed. If the supervisor was killed too, this
//! finds processes with the run's id in their environment, and ends them with their descendants.
//! Nothing else is ever signalled.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid};
use uuid::Uuid;

use super::Order;
use crate::model::BootMoment;

use super::tree::{Found, ProcessFacts, ProcessTable, boot_id, carries};

/// Between two scans.
pub const POLL: Duration = Duration::from_millis(5);
/// A process whose parent ends during one scan can be missed by it, but not by the next.
const SCANS: u32 = 2;

/// How long the ending may take.
#[derive(Clone, Copy, Debug)]
pub struct EndPolicy {
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
    /// After SIGKILL, until a process counts as not killable.
    pub kill: Duration,
}

impl Default for EndPolicy {
    fn default() -> Self {
        Self { grace: Duration::from_secs(5), kill: Duration::from_secs(10) }
    }
}

/// The step of the ending; it only advances.
#[derive(Clone, Copy, Debug, Default)]
enum EndStage {
    #[default]
    NotYet,
    Asked,
    Terminating(Instant),
    Killing(Instant),
}

#[derive(Debug, Default)]
pub struct TreeEnding {
    policy: EndPolicy,
    stage: EndStage,
    /// Scans in a row that found nothing to end.
    empty_scans: u32,
    /// The last scan found a kept process.
    pub keeps_something: bool,
    last_scan: Option<Instant>,
    /// Names of signalled processes, for the log.
    pub ended: Vec<String>,
    named: HashSet<i32>,
}

impl TreeEnding {
    pub fn new(policy: EndPolicy) -> Self {
        Self { policy, ..Self::default() }
    }

    pub fn order(&mut self, order: Order) {
        self.stage = match (self.stage, order) {
            (EndStage::Killing(since), _) => EndStage::Killing(since),
            (_, Order::Kill) => EndStage::Killing(Instant::now()),
            (EndStage::NotYet, Order::Stop) => EndStage::Asked,
            (stage, Order::Stop) => stage,
        };
    }

    pub fn has_begun(&self) -> bool {
        !matches!(self.stage, EndStage::NotYet)
    }

    /// A scan now would lead to a signal, or could show that it is over. Limited in rate, because a
    /// scan takes longer than a process takes to die.
    pub fn wants_scan(&self) -> bool {
        (self.is_due() || self.keeps_something)
            && self.last_scan.is_none_or(|last| last.elapsed() >= POLL)
    }

    fn is_due(&self) -> bool {
        match self.stage {
            EndStage::NotYet => false,
            EndStage::Terminating(since) => since.elapsed() > self.policy.grace,
            EndStage::Asked | EndStage::Killing(_) => true,
        }
    }

    /// Signals what a scan found, if due.
    pub fn act_on(&mut self, found: &Found) {
        self.empty_scans = if found.others.is_empty() { self.empty_scans + 1 } else { 0 };
        self.keeps_something = !found.kept.is_empty();
        let now = Instant::now();
        self.last_scan = Some(now);
        if !self.is_due() {
            return;
        }
        // SIGKILL repeatedly: a process may fork faster than one scan.
        let (stage, signal) = match self.stage {
            EndStage::NotYet | EndStage::Asked => (EndStage::Terminating(now), Signal::TERM),
            EndStage::Terminating(_) => (EndStage::Killing(now), Signal::KILL),
            killing @ EndStage::Killing(_) => (killing, Signal::KILL),
        };
        self.stage = stage;
        for process in &found.others {
            process.signal(signal);
            if self.named.insert(process.pid) {
                self.ended.push(process.describe());
            }
        }
    }

    /// Only kept processes are left, as far as scans show.
    pub fn is_over(&self) -> bool {
        self.empty_scans >= SCANS
    }

    /// Even SIGKILL did not end everything.
    pub fn has_failed(&self) -> bool {
        matches!(self.stage, EndStage::Killing(since) if since.elapsed() > self.policy.kill)
    }
}

/// Every process of a run has the run's id under this name in its environment.
pub const RUN_ID: &str = "RALPH_RUN_ID";
/// How processes of one run are recognized.
#[derive(Clone, Debug)]
pub struct RunMark {
    entry: Vec<u8>,
    /// In ticks since the boot; 0: it is not known, or was before this boot.
    since: u64,
}

impl RunMark {
    /// None unless the id is a whole UUID, because a part of one could match other processes.
    pub fn new(run: &str, began: Option<&BootMoment>) -> Option<Self> {
        let is_whole = Uuid::try_parse(run).is_ok_and(|id| id.to_string() == run);
        let entry = format!("{RUN_ID}={run}").into_bytes();
        let boot = boot_id();
        let began = began.filter(|began| Some(&began.boot) == boot.as_ref());
        is_whole.then_some(Self { entry, since: began.map_or(0, |began| began.ticks) })
    }
}

/// When this process began, whatever the clock says. None where the system does not say.
pub fn own_start() -> Option<BootMoment> {
    let own = getpid().as_raw_pid();
    let ticks = ProcessTable::take().find(own).map(|own| own.started)?;
    Some(BootMoment { boot: boot_id()?, ticks })
}

/// The result, with processes by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swept {
    /// Nothing is left of the runs; these had to be ended.
    Gone { ended: Vec<String> },
    /// Even SIGKILL did not end these.
    Survivors(Vec<String>),
    /// This process runs below them; nothing was ended.
    Above(Vec<String>),
}

/// `keep`: names of programs that are not ended, nor their children: daemons that serve several
/// agents.
pub fn sweep(marks: &[RunMark], keep: &[String]) -> Swept {
    if marks.is_empty() {
        return Swept::Gone { ended: Vec::new() };
    }
    let own = getpid().as_raw_pid();
    let above = marked_above(&ProcessTable::take(), own, marks, keep);
    if !above.is_empty() {
        return Swept::Above(above);
    }
    end(|| find(ProcessTable::take(), own, marks, keep), EndPolicy::default())
}

fn end(find: impl Fn() -> Found, policy: EndPolicy) -> Swept {
    let mut ending = TreeEnding::new(policy);
    ending.order(Order::Stop);
    loop {
        let found = find();
        ending.act_on(&found);
        if ending.is_over() {
            return Swept::Gone { ended: ending.ended };
        }
        if ending.has_failed() && !found.others.is_empty() {
            return Swept::Survivors(found.others.iter().map(ProcessFacts::describe).collect());
        }
        thread::sleep(POLL);
    }
}

/// A process of these runs is there that `keep` names, or one that such a one started.
pub fn is_any_kept(marks: &[RunMark], keep: &[String]) -> bool {
    let all = ProcessTable::take();
    let is_kept = |process: &ProcessFacts| {
        process.is_named(keep) || all.above(process.pid).iter().any(|above| above.is_named(keep))
    };
    all.all.iter().any(|process| is_marked(process, marks) && is_kept(process))
}

fn is_marked(process: &ProcessFacts, marks: &[RunMark]) -> bool {
    marks.iter().any(|mark| carries(process, &mark.entry, mark.since))
}

fn marked_above(all: &ProcessTable, own: i32, marks: &[RunMark], keep: &[String]) -> Vec<String> {
    let above = all.above(own);
    // Children of a kept program are kept too.
    let above = above.rsplit(|process| process.is_named(keep)).next().unwrap_or_default();
    let marked = above.iter().filter(|process| is_marked(process, marks));
    marked.map(|process| process.describe()).collect()
}

fn find(all: ProcessTable, own: i32, marks: &[RunMark], keep: &[String]) -> Found {
    let above: Vec<i32> = all.above(own).iter().map(|process| process.pid).collect();
    let is_root = |process: &&ProcessFacts| {
        process.pid != 1
            && process.pid != own
            && !above.contains(&process.pid)
            && is_marked(process, marks)
            && !all.above(process.pid).iter().any(|one| one.is_named(keep))
    };
    let roots: Vec<i32> = all.all.iter().filter(is_root).map(|process| process.pid).collect();
    all.subtrees(|process| roots.contains(&process.pid), |process| process.is_named(keep))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    const RUN: &str = "019a8b0c-0000-7000-8000-000000000001";

    #[test]
    fn only_a_whole_id_is_searched_for() {
        assert!(RunMark::new(RUN, None).is_some());
        let simple = RUN.replace('-', "");
        let upper = RUN.to_uppercase();
        for bad in ["", "0", "019a8b0c", &simple, &upper, &format!("{RUN} ")] {
            assert!(RunMark::new(bad, None).is_none(), "{bad}");
        }
    }

    /// Ended with the test, however it ends.
    struct Sleeper(Child);

    impl Sleeper {
        /// Returns when it has its own name and environment: a process that has only just started
        /// still has its parent's, or none.
        fn new(run: &str) -> Self {
            let sleeper = Command::new("sleep").arg("1000").env(RUN_ID, run).spawn().unwrap();
            let environment = format!("/proc/{}/environ", sleeper.id());
            while !std::fs::read(&environment).unwrap().ends_with(b"\0") {
                thread::yield_now();
            }
            Self(sleeper)
        }

        fn pid(&self) -> i32 {
            i32::try_from(self.0.id()).unwrap()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn found(marks: &[RunMark], keep: &[&str]) -> Vec<i32> {
        let keep: Vec<String> = keep.iter().map(|name| (*name).to_owned()).collect();
        let found = find(ProcessTable::take(), getpid().as_raw_pid(), marks, &keep);
        found.others.iter().map(|process| process.pid).collect()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_older_than_the_run_is_not_found() {
        let run = Uuid::now_v7().to_string();
        let began = own_start().unwrap();
        let sleeper = Sleeper::new(&run);
        let mark = |began: &BootMoment| vec![RunMark::new(&run, Some(began)).unwrap()];
        assert_eq!(found(&mark(&began), &[]), [sleeper.pid()]);
        let later = BootMoment { ticks: began.ticks + 1_000_000, ..began.clone() };
        assert_eq!(found(&mark(&later), &[]), [0; 0]);
        // Its ticks say nothing about this one's.
        let earlier_boot = BootMoment { boot: "another".to_owned(), ..later };
        assert_eq!(found(&mark(&earlier_boot), &[]), [sleeper.pid()]);
        assert_eq!(found(&mark(&began), &["sleep"]), [0; 0]);
        assert_eq!(found(&[], &[]), [0; 0]);
    }

    /// bash ─ sh ─ sleep, all of one run.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_kept_program_started_is_kept_and_what_started_it_is_not() {
        use std::io::{BufRead, BufReader};
        use std::process::Stdio;

        let run = Uuid::now_v7().to_string();
        let marks = [RunMark::new(&run, own_start().as_ref()).unwrap()];
        // The pids come when all of them have their own names; without its input everything ends.
        let script = "sh -c 'cat & echo $PPID $$ $!; wait' <&3; :";
        let mut command = Command::new("bash");
        command.args(["-c", &format!("exec 3<&0; {}", script.replace("cat &", "cat <&3 &"))]);
        command.env(RUN_ID, &run).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut outer = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(outer.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pids: Vec<i32> = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        let [bash, sh, cat] = pids[..] else { panic!("{line}") };
        while std::fs::read_to_string(format!("/proc/{cat}/comm")).unwrap() != "cat\n" {
            thread::yield_now();
        }
        let sorted = |keep: &[&str]| {
            let mut found = found(&marks, keep);
            found.sort_unstable();
            found
        };
        let mut all = vec![bash, sh, cat];
        all.sort_unstable();
        let above = |keep: &[&str]| {
            let keep: Vec<String> = keep.iter().map(|name| (*name).to_owned()).collect();
            marked_above(&ProcessTable::take(), cat, &marks, &keep)
        };
        let found = [sorted(&[]), sorted(&["sh"]), sorted(&["bash"])];
        let found_by_cat = find(ProcessTable::take(), cat, &marks, &[]).others;
        let named = [above(&[]), above(&["sh"]), above(&["bash"])];
        drop(outer.stdin.take());
        outer.wait().unwrap();
        assert_eq!(found, [all, vec![bash], vec![]]);
        assert!(found_by_cat.is_empty(), "neither itself nor what it runs below: {found_by_cat:?}");
        let (bash, sh) = (format!("bash ({bash})"), format!("sh ({sh})"));
        assert_eq!(named, [vec![sh, bash.clone()], vec![bash], vec![]]);
    }

    /// A scan can miss a process, but not the next scan too.
    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_left_if_two_scans_in_a_row_say_so() {
        let sleeper = Sleeper::new(RUN);
        let is_it = |process: &&ProcessFacts| process.pid == sleeper.pid();
        let mut seen = ProcessTable::take().all.iter().find(is_it).unwrap().clone();
        // As if it were another one that only has the same number: it is never signalled.
        seen.started += 1;
        let scans = std::cell::Cell::new([0, 1, 0, 1, 0, 0].as_slice());
        let find = || {
            let (count, rest) = scans.get().split_first().unwrap();
            scans.set(rest);
            Found { others: vec![seen.clone(); *count], kept: Vec::new() }
        };
        let swept = end(find, EndPolicy::default());
        assert!(matches!(swept, Swept::Gone { .. }), "{swept:?}");
        assert_eq!(scans.get(), [0; 0]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_cannot_be_ended_is_named() {
        let sleeper = Sleeper::new(RUN);
        let is_it = |process: &&ProcessFacts| process.pid == sleeper.pid();
        let mut seen = ProcessTable::take().all.iter().find(is_it).unwrap().clone();
        // As if it were another one that only has the same number: it is never signalled.
        seen.started += 1;
        let find = || Found { others: vec![seen.clone()], kept: Vec::new() };
        let soon = Duration::from_millis(1);
        let swept = end(find, EndPolicy { grace: soon, kill: soon });
        assert_eq!(swept, Swept::Survivors(vec![format!("sleep ({})", sleeper.pid())]));
    }
}
