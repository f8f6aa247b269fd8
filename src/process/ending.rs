//! Ending processes: SIGTERM, a grace, SIGKILL, until none is left.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::message::Order;
use super::tree::Found;

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

/// How far the ending has gone; it never goes back.
#[derive(Clone, Copy, Debug)]
enum EndStage {
    NotYet,
    Asked,
    Terminating(Instant),
    Killing(Instant),
}

#[derive(Debug)]
pub struct TreeEnding {
    patience: EndPolicy,
    stage: EndStage,
    /// Scans in a row that found nothing to end.
    empty_scans: u32,
    /// The last scan found a kept process.
    keeps_something: bool,
    /// The last scan.
    looked: Option<Instant>,
    /// Names of signalled processes, for the log.
    ended: Vec<String>,
    named: HashSet<i32>,
}

impl TreeEnding {
    pub fn new(patience: EndPolicy) -> Self {
        Self {
            patience,
            stage: EndStage::NotYet,
            empty_scans: 0,
            keeps_something: false,
            looked: None,
            ended: Vec::new(),
            named: HashSet::new(),
        }
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
    pub fn wants_a_look(&self) -> bool {
        (self.is_due() || self.keeps_something)
            && self.looked.is_none_or(|last| last.elapsed() >= POLL)
    }

    fn is_due(&self) -> bool {
        match self.stage {
            EndStage::NotYet => false,
            EndStage::Terminating(since) => since.elapsed() > self.patience.grace,
            EndStage::Asked | EndStage::Killing(_) => true,
        }
    }

    /// Signals what a scan found, if due.
    pub fn act_on(&mut self, found: &Found) {
        self.empty_scans = if found.others.is_empty() { self.empty_scans + 1 } else { 0 };
        self.keeps_something = !found.kept.is_empty();
        self.looked = Some(Instant::now());
        if !self.is_due() {
            return;
        }
        // SIGKILL repeatedly: a later scan catches what forks faster than one scan.
        let (stage, signal) = match self.stage {
            EndStage::NotYet | EndStage::Asked => {
                (EndStage::Terminating(Instant::now()), Signal::TERM)
            }
            EndStage::Terminating(_) => (EndStage::Killing(Instant::now()), Signal::KILL),
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

    pub fn keeps_something(&self) -> bool {
        self.keeps_something
    }

    /// Even SIGKILL did not end everything.
    pub fn is_in_vain(&self) -> bool {
        matches!(self.stage, EndStage::Killing(since) if since.elapsed() > self.patience.kill)
    }

    pub fn ended(&self) -> &[String] {
        &self.ended
    }
}
