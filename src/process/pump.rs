//! Reads one supervised process, agent or gate, until its whole tree is gone.

use std::future::pending;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::model::Exit;

use super::driver::{Leader, Running};
use super::{InputOrder, Order, SupervisorReport};

/// One read of standard output, and of standard error.
const CHUNK: usize = 256 * 1024;
const ERROR_CHUNK: usize = 8 * 1024;
/// To read the rest of the pipes after the last process is gone.
const DRAIN: Duration = Duration::from_millis(300);
/// A little more than the supervisor's own limits: then it is lost.
const END_PATIENCE: Duration = Duration::from_secs(20);

/// How a process and everything below it ended.
#[derive(Debug, Default)]
pub struct SupervisedEnd {
    pub exit: Exit,
    /// Processes that were ended with it.
    pub leftovers: Vec<String>,
    /// Processes that were kept as configured.
    pub kept: Vec<String>,
    /// None: the supervisor died without a report.
    pub survivors: Option<Vec<String>>,
}

/// What the pump yields.
pub enum Pumped<'a> {
    /// It was started.
    Started,
    Output(&'a [u8]),
    Errors(&'a [u8]),
    /// An order to end arrived and was passed on.
    Ordered,
    /// The deadline has passed.
    Due,
    /// The end.
    Over,
}

/// When the caller wants to act.
#[derive(Clone, Copy)]
pub struct Deadline {
    pub at: Instant,
    /// It is about silence: output in the pipe comes first. If ralph itself was suspended, waiting
    /// output must not count as silence.
    pub silence: bool,
}

pub struct Pump {
    running: Running,
    stop: watch::Receiver<Option<Order>>,
    output: Vec<u8>,
    errors: Vec<u8>,
    open: (bool, bool),
    leader: Option<Leader>,
    end: SupervisedEnd,
    /// When its ending began.
    ending_since: Option<Instant>,
    /// When nothing of it was left, or its supervisor was lost.
    gone_since: Option<Instant>,
}

enum PumpStep {
    Output(usize),
    Errors(usize),
    Report(Option<String>),
    Order(Order),
    Due,
}

impl Pump {
    pub fn new(running: Running, stop: watch::Receiver<Option<Order>>) -> Self {
        Self {
            running,
            stop,
            output: vec![0; CHUNK],
            errors: vec![0; ERROR_CHUNK],
            open: (true, true),
            leader: None,
            end: SupervisedEnd::default(),
            ending_since: None,
            gone_since: None,
        }
    }

    /// The next thing for the caller. Cancel-safe.
    pub async fn next(&mut self, deadline: Deadline) -> Pumped<'_> {
        loop {
            if self.gone_since.is_some() && self.open == (false, false) {
                return Pumped::Over;
            }
            match self.step(self.deadline(deadline)).await {
                PumpStep::Output(0) => self.open.0 = false,
                PumpStep::Errors(0) => self.open.1 = false,
                PumpStep::Output(count) => {
                    return Pumped::Output(self.output.get(..count).unwrap_or_default());
                }
                PumpStep::Errors(count) => {
                    return Pumped::Errors(self.errors.get(..count).unwrap_or_default());
                }
                PumpStep::Report(line) => {
                    let knew = self.leader.is_some();
                    self.take(line.as_deref());
                    if !knew && self.leader.is_some() {
                        return Pumped::Started;
                    }
                }
                PumpStep::Order(order) => {
                    self.order(order).await;
                    return Pumped::Ordered;
                }
                PumpStep::Due if self.gone_since.is_some() => return Pumped::Over,
                PumpStep::Due if self.ending_since.is_some() => {
                    self.gone_since = Some(Instant::now());
                }
                PumpStep::Due => return Pumped::Due,
            }
        }
    }

    fn deadline(&self, wanted: Deadline) -> Deadline {
        match (self.gone_since, self.ending_since) {
            (Some(since), _) => Deadline { at: since + DRAIN, silence: true },
            (None, Some(since)) => Deadline { at: since + END_PATIENCE, silence: false },
            (None, None) => wanted,
        }
    }

    async fn step(&mut self, deadline: Deadline) -> PumpStep {
        let hard = async {
            if deadline.silence { pending().await } else { sleep_until(deadline.at).await }
        };
        tokio::select! {
            // Endless output must not delay orders and deadlines.
            biased;
            order = ordered(&mut self.stop), if self.gone_since.is_none() => PumpStep::Order(order),
            () = hard => PumpStep::Due,
            read = self.running.stdout.read(&mut self.output), if self.open.0 => {
                PumpStep::Output(read.unwrap_or_default())
            }
            read = self.running.stderr.read(&mut self.errors), if self.open.1 => {
                PumpStep::Errors(read.unwrap_or_default())
            }
            line = self.running.reports.next_line(), if self.gone_since.is_none() => {
                PumpStep::Report(line.ok().flatten())
            }
            () = sleep_until(deadline.at) => PumpStep::Due,
        }
    }

    /// A report; None: the supervisor has ended.
    fn take(&mut self, line: Option<&str>) {
        let now = Instant::now();
        match line.map(serde_json::from_str) {
            Some(Ok(SupervisorReport::Spawned { pid })) => self.leader = Leader::hold(pid),
            Some(Ok(SupervisorReport::SpawnFailed { error })) => {
                self.end.exit = Exit::NotSpawned { error };
                self.end.survivors = Some(Vec::new());
                self.gone_since = Some(now);
            }
            Some(Ok(SupervisorReport::Exited { exit })) => {
                self.end.exit = exit;
                self.ending_since.get_or_insert(now);
            }
            Some(Ok(SupervisorReport::Gone { ended, kept, survivors })) => {
                self.end.leftovers = ended;
                self.end.kept = kept;
                self.end.survivors = Some(survivors);
                self.gone_since = Some(now);
            }
            Some(Err(_)) => {}
            None => {
                if let Some(leader) = &self.leader {
                    leader.kill();
                }
                self.gone_since = Some(now);
            }
        }
    }

    pub async fn order(&mut self, order: Order) {
        self.ending_since.get_or_insert_with(Instant::now);
        self.running.order(order).await;
    }

    /// Writes to its standard input, without blocking if it does not read.
    pub async fn say(&mut self, text: String) {
        self.running.send(&InputOrder::Write(text)).await;
    }

    pub async fn close_input(&mut self) {
        self.running.send(&InputOrder::Close).await;
    }

    /// The process itself has ended.
    pub fn has_exited(&self) -> bool {
        self.end.exit != Exit::Unknown
    }

    /// A supervisor that was lost is dropped: when its socket closes, it kills everything below.
    pub fn finish(self) -> SupervisedEnd {
        if self.end.survivors.is_some() {
            self.running.retire();
        }
        self.end
    }
}

/// Resolves once per order.
async fn ordered(stop: &mut watch::Receiver<Option<Order>>) -> Order {
    loop {
        if stop.changed().await.is_err() {
            return pending().await;
        }
        if let Some(order) = *stop.borrow_and_update() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests;
