//! Records events: to the journal, then the state, then the display.
//!
//! A recorded event survives a kill at once, and a power cut when its sync point is reached. A task
//! waits for that before it acts on the world outside (an agent, a gate, the branch, the work tree),
//! but not before it prepares that, so that the disk works at the same time. The loop does not wait.

use crate::model::{Backlog, Event, Notice, Recorded};
use crate::ports::{Clock, Reporter, View};
use crate::runner::error::Result;
use crate::state::RunState;
use crate::store::{Journal, SyncPoint};

/// A backlog's events from before this process, read and folded once.
#[derive(Default)]
pub struct JournalHistory {
    pub events: Vec<Recorded>,
    pub state: RunState,
    /// Repairs since then, to be recorded.
    pub repaired: Vec<Event>,
}

impl JournalHistory {
    pub fn of(events: Vec<Recorded>) -> Self {
        Self { state: RunState::of(&events), events, repaired: Vec::new() }
    }

    /// The events of the last run, if it has no end.
    fn open_run(&self) -> &[Recorded] {
        let is_start = |recorded: &Recorded| matches!(recorded.event, Event::RunStarted(_));
        let start = self.events.iter().rposition(is_start).filter(|_| self.state.is_open());
        start.and_then(|start| self.events.get(start..)).unwrap_or_default()
    }
}

pub struct RunLog {
    pub state: RunState,
    /// The run's id.
    pub run: String,
    pub reporter: Box<dyn Reporter>,
    journal: Box<dyn Journal>,
    clock: Clock,
    /// The journal is not this run's any more.
    is_cut: bool,
}

impl RunLog {
    pub fn new(journal: Box<dyn Journal>, reporter: Box<dyn Reporter>, clock: Clock) -> Self {
        let (state, run) = (RunState::default(), String::new());
        Self { state, run, reporter, journal, clock, is_cut: false }
    }

    pub fn now(&self) -> i64 {
        self.clock.now().wall
    }

    /// Events from before this process.
    pub fn replay(&mut self, history: JournalHistory) {
        self.reporter.on_earlier(history.open_run(), &history.state);
        self.state = history.state;
    }

    /// `backlog` is the one after the events.
    pub fn record(&mut self, backlog: &Backlog, events: Vec<Event>) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let at = self.now();
        if !self.is_cut {
            self.journal.append(&self.run, at, &events)?;
        }
        for event in events {
            let recorded = Recorded { at, event };
            self.state.apply(&recorded);
            self.reporter.on_event(&recorded, View { backlog, state: &self.state });
        }
        Ok(())
    }

    /// From now on events are only folded and shown: for what has to be put back although the journal
    /// is lost.
    pub fn cut_off(&mut self) {
        self.is_cut = true;
    }

    pub fn is_cut_off(&self) -> bool {
        self.is_cut
    }

    /// What was recorded can still be read and synced; does not wait.
    pub fn check(&mut self) -> Result<()> {
        self.check_place()?;
        Ok(self.sync_point().check()?)
    }

    /// If the journal is lost, nothing more is recorded.
    pub fn check_place(&mut self) -> Result<()> {
        let found = self.journal.check_place();
        self.is_cut |= found.is_err();
        Ok(found?)
    }

    /// When everything recorded until now is on the disk.
    pub fn sync_point(&self) -> SyncPoint {
        self.journal.sync_point()
    }

    pub fn sync(&self) -> Result<()> {
        Ok(self.sync_point().wait()?)
    }

    pub fn notice(&mut self, notice: Notice) {
        self.reporter.on_notice(&notice);
    }
}
