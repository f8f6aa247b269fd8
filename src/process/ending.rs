//! Ending processes: SIGTERM, a grace, SIGKILL, until none is left.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::message::Order;
use super::tree::Found;

/// Between two looks.
pub const POLL: Duration = Duration::from_millis(5);
/// A process whose parent ends during a look can be missed by it, but not by the next one too.
const LOOKS: u32 = 2;

/// How long the ending may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// What was told to end has so long before it is killed.
    pub grace: Duration,
    /// SIGKILL may take so long before a process counts as not killable.
    pub kill: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { grace: Duration::from_secs(5), kill: Duration::from_secs(10) }
    }
}

/// How far the ending has gone; it only ever goes on.
#[derive(Clone, Copy, Debug)]
enum Stage {
    NotYet,
    Asked,
    Terminating(Instant),
    Killing(Instant),
}

#[derive(Debug)]
pub struct Ending {
    patience: Patience,
    stage: Stage,
    /// Looks in a row that found nothing to end.
    empty_looks: u32,
    /// The last look found something that is left alone.
    keeps_something: bool,
    /// When what there is was last looked at.
    looked: Option<Instant>,
    /// Names of what had to be told to end, for the log.
    ended: Vec<String>,
    named: HashSet<i32>,
}

impl Ending {
    pub fn new(patience: Patience) -> Self {
        Self {
            patience,
            stage: Stage::NotYet,
            empty_looks: 0,
            keeps_something: false,
            looked: None,
            ended: Vec::new(),
            named: HashSet::new(),
        }
    }

    pub fn order(&mut self, order: Order) {
        self.stage = match (self.stage, order) {
            (Stage::Killing(since), _) => Stage::Killing(since),
            (_, Order::Kill) => Stage::Killing(Instant::now()),
            (Stage::NotYet, Order::Stop) => Stage::Asked,
            (stage, Order::Stop) => stage,
        };
    }

    pub fn has_begun(&self) -> bool {
        !matches!(self.stage, Stage::NotYet)
    }

    /// A look now would lead to a signal, or could tell that it is over. Not again for each of a
    /// thousand that have ended meanwhile: looking takes longer than dying.
    pub fn wants_a_look(&self) -> bool {
        (self.is_due() || self.keeps_something)
            && self.looked.is_none_or(|last| last.elapsed() >= POLL)
    }

    fn is_due(&self) -> bool {
        match self.stage {
            Stage::NotYet => false,
            Stage::Terminating(since) => since.elapsed() > self.patience.grace,
            Stage::Asked | Stage::Killing(_) => true,
        }
    }

    /// Does what is due about what a look found.
    pub fn act_on(&mut self, found: &Found) {
        self.empty_looks = if found.others.is_empty() { self.empty_looks + 1 } else { 0 };
        self.keeps_something = !found.kept.is_empty();
        self.looked = Some(Instant::now());
        if !self.is_due() {
            return;
        }
        // SIGKILL again and again: what forks faster than it is counted is caught in a later look.
        let (stage, signal) = match self.stage {
            Stage::NotYet | Stage::Asked => (Stage::Terminating(Instant::now()), Signal::TERM),
            Stage::Terminating(_) => (Stage::Killing(Instant::now()), Signal::KILL),
            killing @ Stage::Killing(_) => (killing, Signal::KILL),
        };
        self.stage = stage;
        for process in &found.others {
            process.signal(signal);
            if self.named.insert(process.pid) {
                self.ended.push(process.describe());
            }
        }
    }

    /// Nothing but what is kept is left, as far as looking can tell.
    pub fn is_over(&self) -> bool {
        self.empty_looks >= LOOKS
    }

    pub fn keeps_something(&self) -> bool {
        self.keeps_something
    }

    /// Even SIGKILL did not end everything.
    pub fn is_in_vain(&self) -> bool {
        matches!(self.stage, Stage::Killing(since) if since.elapsed() > self.patience.kill)
    }

    pub fn ended(&self) -> &[String] {
        &self.ended
    }
}
