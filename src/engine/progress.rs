//! What an attendance knows so far, and when waiting on makes no sense any more.

use std::time::Duration;

use tokio::time::Instant;

use crate::agent::reading::Reading;
use crate::core::outcome::{EndedBy, Exit};
use crate::core::policy::Timeouts;
use crate::process::Leader;
use crate::process::message::{Exit as ProcessExit, Report as ProcessReport};

/// The supervisor's own grace and patience, and a little: then it is not coming back.
const END_PATIENCE: Duration = Duration::from_secs(20);

/// What is known of the agent's processes.
pub enum TreeEnd {
    Gone,
    Survivors(Vec<String>),
    /// The supervisor went away without a word.
    Unknown,
}

/// The changing part of an attendance.
pub struct Progress {
    pub started: Instant,
    pub last_heard: Instant,
    /// When the first result came.
    pub result_at: Option<Instant>,
    /// Since when nothing more is to be expected of it.
    pub done_since: Option<Instant>,
    pub exit: Option<Exit>,
    pub ended_by: Option<EndedBy>,
    pub ended: Vec<String>,
    pub kept: Vec<String>,
    pub tree: Option<TreeEnd>,
    pub open: (bool, bool),
    pub leader: Option<Leader>,
    /// Since when it is on its way out.
    pub ending_since: Option<Instant>,
}

impl Progress {
    pub fn new() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            last_heard: now,
            result_at: None,
            done_since: None,
            exit: None,
            ended_by: None,
            ended: Vec::new(),
            kept: Vec::new(),
            tree: None,
            open: (true, true),
            leader: None,
            ending_since: None,
        }
    }

    pub fn note_result(&mut self, reading: &Reading) {
        if !reading.has_result() {
            return;
        }
        self.result_at.get_or_insert(self.last_heard);
        if reading.is_at_work() {
            self.done_since = None;
        } else {
            self.done_since.get_or_insert(self.last_heard);
        }
    }

    /// Work in the background has its own grace, but all of it together no more than that.
    fn result_deadline(&self, result_at: Instant, times: &Timeouts) -> Instant {
        let last = result_at + times.background.max(times.after_result);
        self.done_since.map_or(last, |since| last.min(since + times.after_result))
    }

    /// The next moment at which waiting on makes no sense, and why.
    pub fn deadline(&self, times: &Timeouts, has_begun: bool) -> (Instant, Option<EndedBy>) {
        if let Some(since) = self.ending_since {
            return (since + END_PATIENCE, None);
        }
        if let Some(at) = self.result_at {
            return (self.result_deadline(at, times), Some(EndedBy::AfterResult));
        }
        let silence = if has_begun {
            (self.last_heard + times.idle, Some(EndedBy::IdleTimeout))
        } else {
            (self.started + times.first_event, Some(EndedBy::FirstEventTimeout))
        };
        let whole = (self.started + times.iteration, Some(EndedBy::IterationTimeout));
        if whole.0 < silence.0 { whole } else { silence }
    }

    pub fn take(&mut self, report: Option<ProcessReport>) {
        if let Some(ProcessReport::Exited { .. }) = report {
            self.ending_since.get_or_insert_with(Instant::now);
        }
        match report {
            Some(ProcessReport::Spawned { pid }) => self.leader = Leader::hold(pid),
            Some(ProcessReport::SpawnFailed { error }) => {
                self.exit = Some(Exit::NotSpawned { error });
                self.tree = Some(TreeEnd::Gone);
            }
            Some(ProcessReport::Exited { exit: ProcessExit::Code(code) }) => {
                self.exit = Some(Exit::Code(code));
            }
            Some(ProcessReport::Exited { exit: ProcessExit::Signal(signal) }) => {
                self.exit = Some(Exit::Signal(signal));
            }
            Some(ProcessReport::Gone { ended, kept, survivors }) => {
                self.ended = ended;
                self.kept = kept;
                self.tree = Some(if survivors.is_empty() {
                    TreeEnd::Gone
                } else {
                    TreeEnd::Survivors(survivors)
                });
            }
            None => {
                if let Some(leader) = &self.leader {
                    leader.kill();
                }
                self.tree = Some(TreeEnd::Unknown);
            }
        }
    }
}
