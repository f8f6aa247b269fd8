//! What the dispatcher can do, and what it learns.
//!
//! Each effect either is over when it returns, or starts a task that ends with exactly one
//! [`Happened`]. The real effects are in `world`; tests have fake ones.

use std::time::Duration;

use crate::agent::AgentReport;
use crate::decide::situation::{FreeDisk, StuckDue};
use crate::decide::stuck::StuckStep;
use crate::model::{
    AttemptStarted, Backlog, BranchLoss, Concern, EndedBy, Escalation, EvidenceItem, Footprint,
    LaneId, Request, SpentToday, StoryId,
};
use crate::ports::Asked;
use crate::process::Order;
use crate::process::pump::SupervisedEnd;
use crate::runner::error::RunnerError;
use crate::runner::log::RunLog;

/// What ends the loop's one wait.
pub enum Happened {
    AttemptEnded(Box<EndedAttempt>),
    /// None: the gates were ordered to stop.
    GatesEnded {
        of: GatesOf,
        items: Result<Option<Vec<EvidenceItem>>, RunnerError>,
    },
    Answered {
        about: About,
        asked: Asked,
    },
    /// The human skipped the wait.
    WaitSkipped,
    Signal(i32),
    /// Time to check requests, files, the disk and the clock.
    Tick,
    /// A task ended without its message, which is a bug.
    TaskLost,
}

/// Whose gates run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatesOf {
    Baseline,
    Claim { story: StoryId, attempt: String },
}

/// The subject of a question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    Story(StoryId),
    /// A stuck agent, which continues to run.
    Attempt {
        attempt: String,
        story: StoryId,
    },
}

/// Everything about an attempt's processes and output, once they are over.
#[derive(Debug)]
pub struct EndedAttempt {
    pub attempt: String,
    pub report: AgentReport,
    pub ended_by: Option<EndedBy>,
    pub processes: SupervisedEnd,
    pub elapsed: Duration,
    /// Why the log is incomplete.
    pub log_problem: Option<String>,
}

/// The lane after an attempt, and after repairs.
#[derive(Debug, Default)]
pub struct Inspection {
    /// The attempt lost the run's branch.
    pub branch_loss: Option<BranchLoss>,
    /// The agent ticked `TASK_COMPLETE` in the instructions.
    pub ticked: bool,
    /// Tree or branch differ from before the attempt; true if not checked.
    pub changed: bool,
    pub footprint: Footprint,
    /// The branch tip.
    pub head: Option<String>,
    /// The lane could not be inspected. The attempt's end is recorded all the same.
    pub problem: Option<RunnerError>,
}

/// The result of an integration.
pub enum Integration {
    Done {
        commit: String,
    },
    NothingChanged,
    /// The content must not be committed. `beyond_agent`: no agent can fix it.
    Unfit {
        error: String,
        beyond_agent: bool,
    },
    Refused {
        error: String,
    },
    /// The story is no longer in the backlog.
    Gone,
    /// Recorded already: its work conflicts with the branch.
    Conflicting,
}

/// What was observed for a decision.
pub struct Sighting {
    pub busy: Duration,
    pub disk: Option<FreeDisk>,
    pub stuck: Vec<StuckDue>,
    pub today: SpentToday,
    pub backlog_usable: bool,
}

pub trait Effects {
    /// With the marks that count, whatever the file says.
    fn backlog(&self) -> &Backlog;
    /// Why the file cannot be used now.
    fn backlog_problem(&self) -> Option<&str>;
    /// Reads edits of the backlog file.
    fn refresh(&mut self, log: &mut RunLog) -> Result<(), RunnerError>;
    fn observe(&mut self, log: &mut RunLog) -> Result<Sighting, RunnerError>;
    /// A signal that arrived since the last wait.
    fn pending_signal(&mut self) -> impl Future<Output = Option<i32>>;
    /// Waits for the next thing, at most `most`.
    fn next(&mut self, log: &mut RunLog, most: Option<Duration>) -> impl Future<Output = Happened>;

    fn start_attempt(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        lane: LaneId,
    ) -> Result<(), RunnerError>;
    /// Repairs what the attempt must not change, and inspects its work.
    fn inspect(
        &mut self,
        log: &mut RunLog,
        start: &AttemptStarted,
        ended: &EndedAttempt,
    ) -> Result<Inspection, RunnerError>;
    /// Changes that a human must see before the claim counts.
    fn concerns(
        &mut self,
        log: &mut RunLog,
        start: &AttemptStarted,
    ) -> Result<Vec<Concern>, RunnerError>;
    /// The attempt's end is recorded; forgets its handle.
    fn forget_attempt(&mut self, log: &mut RunLog, attempt: &str) -> Result<(), RunnerError>;

    fn run_gates(&mut self, log: &mut RunLog, of: GatesOf) -> Result<(), RunnerError>;
    fn changed_since_base(&mut self, log: &RunLog, story: &StoryId) -> Result<bool, RunnerError>;
    /// Stores a failed attempt's work at a ref; it stays in the lane too.
    fn keep_failed(&mut self, log: &mut RunLog, story: &StoryId) -> Result<(), RunnerError>;

    fn integrate(&mut self, log: &mut RunLog, story: &StoryId) -> Result<Integration, RunnerError>;
    /// Returns the commit, if the backlog is committed.
    fn skip(&mut self, log: &mut RunLog, story: &StoryId) -> Result<Option<String>, RunnerError>;
    fn shelve(&mut self, log: &mut RunLog, story: &StoryId) -> Result<Option<String>, RunnerError>;
    fn roll_back(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
    ) -> Result<Option<String>, RunnerError>;
    fn disown(&mut self, log: &mut RunLog, story: &StoryId);
    /// Sets a story's marks in the file and in the journal.
    fn mark(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        passes: bool,
        skipped: bool,
    ) -> Result<(), RunnerError>;

    fn ask(&mut self, about: About, story: &StoryId, question: Escalation, patience: Duration);
    fn withdraw(&mut self, about: &About);
    /// The agent takes messages while it runs.
    fn takes_messages(&self, attempt: &str) -> bool;
    fn say(&mut self, attempt: &str, text: &str);
    fn end_attempt(&mut self, attempt: &str, why: EndedBy);
    /// A step against a stuck agent was taken; None: it gets more time.
    fn stuck_step(&mut self, attempt: &str, step: Option<StuckStep>);
    /// How long the attempt has been running.
    fn busy(&self, attempt: &str) -> Duration;
    /// To every attempt and gate.
    fn order(&mut self, order: Order);
    fn listen_for_skip(&mut self, on: bool);
    /// Requests from other processes; None is one that this version does not know.
    fn requests(&mut self) -> Result<Vec<(i64, Option<Request>)>, RunnerError>;
    fn settle_request(&mut self, number: i64) -> Result<(), RunnerError>;
}
