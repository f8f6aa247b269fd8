//! The loop itself.
//!
//! Decide, act, record, tell; then again. Every decision is made by
//! `core::decide` on the fold of the journal's events and on the backlog as it is
//! on the disk now; every fact is in the journal before it is acted on.

mod aside;
mod attempt;
mod backlog;
mod brief;
mod claim;
mod close;
mod concerns;
mod disk;
mod earlier;
mod error;
mod guard;
mod instructions;
mod marks;
mod money;
mod names;
pub mod ports;
mod progress;
mod question;
mod rebuild;
mod resume;
mod signals;
mod staged;
mod start;
mod stuck;
mod traces;
pub mod transcript;
mod waiting;
mod wishes;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use crate::agent::Agent;
use crate::core::budget::Today;
use crate::core::decide::{FreeDisk, Next, decide};
use crate::core::event::{Base, Cause, Event, Recorded};
use crate::core::gate::Gates;
use crate::core::health::Patience;
use crate::core::memory::Bounds;
use crate::core::policy::{Policy, StopReason, Timeouts};
use crate::core::secrets::Rules;
use crate::core::signal::AllSigns;
use crate::core::staging;
use crate::core::state::RunState;
use crate::git::{Keeping, WorkTree};
use crate::process::{Order, Supervisor};
use crate::store::journal::Journal;
use crate::store::room::Room;
use crate::store::wishes::Wishes;

pub use backlog::BacklogFile;
pub use brief::{as_next_process, base_on_branch, notes_for};
pub use earlier::end_earlier_runs;
pub use error::EngineError;
pub use money::{Accounts, start_of_day};
use ports::{Human, Notice, Reporter, View};
pub use signals::{SIGINT, Signals};
use start::UnderWay;
use waiting::Ear;

/// How a run's process came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Stopped(StopReason),
    /// The run stays open; the next `ralph run` goes on.
    Interrupted {
        signal: i32,
    },
}

/// The world, wired by the command line.
pub struct Parts {
    pub journal: Box<dyn Journal>,
    pub backlog: BacklogFile,
    pub tree: WorkTree,
    pub room: Room,
    pub wishes: Wishes,
    pub agent: Agent,
    pub supervisor: Supervisor,
    /// What must not get further than from the agent to here.
    pub secrets: Arc<Rules>,
    pub reporter: Box<dyn Reporter>,
    pub human: Arc<dyn Human>,
    pub accounts: Accounts,
    /// Milliseconds since the Unix epoch.
    pub clock: fn() -> i64,
}

/// What the human decided before the run, beside the policy.
pub struct Orders {
    pub policy: Policy,
    /// The text of PROMPT.md.
    pub instructions: String,
    /// The file that it comes from, if there is one.
    pub instructions_file: Option<PathBuf>,
    /// What else says that a story is complete.
    pub signs: AllSigns,
    /// Without a gate, a first claim is sent back for a second look.
    pub require_two_claims: bool,
    /// How much of what was learnt goes into a prompt.
    pub memory: Bounds,
    pub timeouts: Timeouts,
    /// With agents that get nowhere.
    pub patience: Patience,
    /// What a claim has to pass.
    pub gates: Gates,
    /// Patterns of files whose change is a human's to accept.
    pub protect: Vec<String>,
    /// What may become a part of a commit.
    pub staging: staging::Rules,
    /// The human wants to work beside uncommitted edits.
    pub allow_dirty: bool,
    /// ralph.toml's path in the work tree.
    pub settings_file: PathBuf,
    /// Bytes of one iteration's log.
    pub log_limit: u64,
    /// How long a question waits for a key.
    pub answer_patience: Duration,
    /// The human's own files: never taken back with an agent's work.
    pub human_files: Vec<PathBuf>,
    /// The agent's words are shown as they come.
    pub listening: bool,
    /// The backlog's name in commits and in the journal.
    pub backlog_name: String,
    /// Its path in the work tree, when it is committed with the work.
    pub backlog_in_tree: Option<PathBuf>,
    /// Its name where names must not repeat.
    pub backlog_key: String,
    /// How many states of the work tree stay, and for how long.
    pub keeping: Keeping,
    pub branch: Option<String>,
    /// The human named the branch for this process.
    pub branch_is_chosen: bool,
    /// The journal before this one was damaged: what this one does not know may have been.
    pub journal_was_damaged: bool,
}

/// What the loop waits for.
enum Happened {
    Activity(ports::Activity),
    AttemptEnded(Box<attempt::Report>),
    /// Nobody attends the agent any more; that must not happen.
    AttendanceLost,
    Signal(i32),
}

/// So many signals end the process without waiting for anything: the life line does the rest.
const IMPATIENT: u32 = 3;

pub struct Engine {
    parts: Parts,
    orders: Orders,
    state: RunState,
    run: String,
    signals: Signals,
    happened: (mpsc::Sender<Happened>, mpsc::Receiver<Happened>),
    /// Tells the attempts under way to end.
    stop: watch::Sender<Option<Order>>,
    /// The first signal that came, if any.
    interrupted: Option<i32>,
    signals_taken: u32,
    /// Marks in the file that differ from the known ones are an agent's doing.
    marks_are_suspect: bool,
    /// An accepted claim from before this process may have its commit already.
    resumed: bool,
    /// Open while the run waits.
    ear: Option<Ear>,
    /// The room that was left when an agent was ended for it.
    disk_was_low: Option<FreeDisk>,
    /// The attempts under way were told to end, and not by the human.
    ends_attempts: bool,
    under_way: HashMap<String, UnderWay>,
    wishes_seen: Option<Instant>,
    /// What was spent today, when it was last looked at.
    today: Today,
    /// What was reported as left out of a commit.
    told_left_out: BTreeSet<PathBuf>,
    /// The tree as the last close left it: the next story's base, without another look.
    known_base: Option<Base>,
}

impl Engine {
    pub async fn run(mut self) -> Result<Ending, EngineError> {
        self.take_baseline().await?;
        loop {
            if let Some(signal) = self.pending_signal().await
                && (self.state.in_flight.is_empty() || self.signals_taken >= IMPATIENT)
            {
                return self.interrupt(signal);
            }
            self.refresh_backlog();
            self.settle_marks()?;
            self.take_wishes()?;
            let moment = self.moment()?;
            let backlog = self.parts.backlog.current();
            let next = decide(&self.state, backlog, &self.orders.policy, &moment);
            if !matches!(next, Next::WaitUntil(_)) {
                self.ear = None;
            }
            match next {
                Next::Attempt { story } => self.start_attempt(&story)?,
                Next::Wait => self.wait().await?,
                Next::Climb(due) => self.climb(due).await?,
                Next::EndAttempts => {
                    self.end_attempts(&moment);
                    self.wait().await?;
                }
                Next::WaitUntil(wait) => self.wait_until(&wait, moment.now).await?,
                Next::Alert { level } => self.record(vec![Event::BudgetNear { level }])?,
                Next::Throttle { level, until } => {
                    self.record(vec![Event::Throttled { level, until }])?;
                }
                Next::OpenBreaker { why, until } => {
                    self.record(vec![Event::BreakerOpened { why, until }])?;
                }
                Next::Check { story, attempt } => self.check(&story, &attempt).await?,
                Next::Close { story, attempt } => self.close(&story, &attempt).await?,
                Next::Skip { story } => self.skip(&story).await?,
                Next::SetAside { story } => self.set_aside(&story)?,
                Next::StartOver { story, to } => {
                    let why = Cause::FreshStart;
                    self.record(vec![Event::ReturnPlanned { story, to, why }])?;
                }
                Next::Return { story } => self.go_back(&story)?,
                Next::LetGo { story } => self.let_go(story)?,
                Next::Raise { story, question } => {
                    self.record(vec![Event::QuestionRaised { story, question }])?;
                }
                Next::Ask { story } => self.ask(&story).await?,
                Next::Answer { story, answer } => {
                    self.record(vec![Event::QuestionAnswered { story, answer }])?;
                }
                Next::Park { story } => self.record(vec![Event::StoryParked { story }])?,
                Next::Stop(reason) => {
                    self.record(vec![Event::RunEnded { reason: reason.clone() }])?;
                    return Ok(Ending::Stopped(reason));
                }
            }
        }
    }

    /// Durable first, then known, then told.
    fn record(&mut self, events: Vec<Event>) -> Result<(), EngineError> {
        let at = (self.parts.clock)();
        self.parts.journal.append(&self.run, at, &events)?;
        for event in events {
            let recorded = Recorded { at, event };
            self.state.apply(&recorded);
            let view = View { backlog: self.parts.backlog.current(), state: &self.state };
            self.parts.reporter.on_event(&recorded, view);
        }
        Ok(())
    }

    fn notice(&mut self, notice: Notice) {
        self.parts.reporter.on_notice(&notice);
    }

    fn refresh_backlog(&mut self) {
        // The file that an agent left who went astray may be another branch's.
        if self.state.is_returning() {
            return;
        }
        if let Some(notice) = self.parts.backlog.refresh() {
            self.notice(notice);
        }
    }

    async fn wait(&mut self) -> Result<(), EngineError> {
        let happened = tokio::select! {
            Some(happened) = self.happened.1.recv() => happened,
            signal = self.signals.next() => Happened::Signal(signal),
            // However quiet it is, wishes, the disk and the clock are looked at.
            () = sleep(wishes::LOOK) => return Ok(()),
        };
        match happened {
            Happened::Activity(activity) => self.parts.reporter.on_activity(&activity),
            Happened::AttemptEnded(report) => self.attempt_ended(*report)?,
            Happened::AttendanceLost => return Err(EngineError::SupervisorLost),
            Happened::Signal(signal) => self.take_signal(signal),
        }
        Ok(())
    }

    async fn pending_signal(&mut self) -> Option<i32> {
        // What came during work on the repository is only handed over when the loop yields:
        // once for the system's side, once for the task that passes it on.
        yield_now().await;
        yield_now().await;
        if let Some(signal) = self.signals.try_next() {
            self.take_signal(signal);
        }
        self.interrupted
    }

    /// The first asks for a clean end, the second for an end at once.
    fn take_signal(&mut self, signal: i32) {
        let order = if self.interrupted.is_none() { Order::Stop } else { Order::Kill };
        self.interrupted.get_or_insert(signal);
        self.signals_taken += 1;
        self.stop.send_replace(Some(order));
    }

    fn interrupt(&mut self, signal: i32) -> Result<Ending, EngineError> {
        self.record(vec![Event::RunInterrupted { signal }])?;
        Ok(Ending::Interrupted { signal })
    }
}
