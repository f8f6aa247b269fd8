//! Ending processes: SIGTERM, a grace, SIGKILL, until none is left.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Order;
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
        self.last_scan = Some(Instant::now());
        if !self.is_due() {
            return;
        }
        // SIGKILL repeatedly: a process may fork faster than one scan.
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

    /// Even SIGKILL did not end everything.
    pub fn has_failed(&self) -> bool {
        matches!(self.stage, EndStage::Killing(since) if since.elapsed() > self.policy.kill)
    }
}
