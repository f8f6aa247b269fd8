//! Everything the dispatcher can do and observe.
//!
//! Whatever takes time is a task that ends with exactly one [`Happened`]; every other effect is over
//! when it returns. The real effects are in `world`; tests have fake ones.

use std::time::Duration;

use crate::agent::AgentReport;
use crate::decide::situation::{LaneJob, Observed};
use crate::decide::stuck::StuckStep;
use crate::model::{
    Approval, Backlog, Base, BranchLoss, Concern, EndedBy, Escalation, Event, EvidenceItem, LaneId,
    Request, Story, StoryChange, StoryId,
};
use crate::ports::Asked;
use crate::process::Order;
use crate::process::pump::SupervisedEnd;
use crate::runner::error::{Result, RunnerError};
use crate::runner::log::RunLog;
use crate::workspace::{Difference, reading};

/// What ends the loop's one wait.
pub enum Happened {
    /// Its agent is gone, and its lane was inspected.
    AttemptEnded(Box<EndedAttempt>),
    /// No items: the gates were ordered to stop.
    GatesEnded { of: GatesOf, items: Option<Vec<EvidenceItem>>, found: GatesFound },
    /// A job at a lane's work tree is over.
    JobEnded { lane: LaneId, story: StoryId, result: JobResult },
    /// A question is closed.
    Answered { about: About, asked: Asked },
    /// The human skipped the wait.
    WaitSkipped,
    /// The operating system's number of it.
    Interrupt(i32),
    /// Time to check requests, files, the disk and the clock.
    Tick,
}

/// What a look at the tree found besides the gates' results.
#[derive(Clone, Debug, Default)]
pub struct GatesFound {
    /// The story changed something, before its gates ran.
    pub changed: bool,
    /// What the story's changes are counted from: its base, with what gates wrote.
    pub counted: Option<Base>,
    /// The branch tip and the work tree after the gates of a claim, and with the baseline.
    pub checked: Option<Base>,
    /// A gate that failed at the story's base and passes now.
    pub turned_green: Option<String>,
}

/// The result of a [`LaneJob`].
pub enum JobResult {
    /// The lane is ready for an attempt.
    Ready,
    /// None: there was no work.
    Kept(Option<KeptWork>),
    /// A claim's work is in the human's tree, unless it conflicts with the branch.
    Landed { clean: bool },
    /// An accepted claim was committed, or not.
    Integrated(Integration),
    /// With its commit, if the backlog is committed.
    Skipped(Option<String>),
    /// With the ref that has the work, if there was any.
    Shelved(Option<String>),
    /// The same.
    RolledBack(Option<String>),
    /// The backlog file was edited at the same moment: nothing happened, so try again.
    BacklogChanged,
}

/// A failed attempt's work, at a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptWork {
    pub reference: String,
    /// How much it is, for people.
    pub changes: String,
}

/// Whose gates run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatesOf {
    Baseline,
    /// Before the story's first attempt.
    FirstLook {
        story: StoryId,
    },
    Claim {
        story: StoryId,
        attempt: String,
    },
}

/// The subject of a question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// A story that waits for the answer.
    Story(StoryId),
    /// A stuck agent, which continues to run.
    Attempt { attempt: String, story: StoryId },
}

/// Everything about an attempt, once it is over.
#[derive(Debug)]
pub struct EndedAttempt {
    pub attempt: String,
    pub report: AgentReport,
    pub ended_by: Option<EndedBy>,
    pub processes: SupervisedEnd,
    pub elapsed: Duration,
    /// Why the log is incomplete.
    pub log_problem: Option<String>,
    pub inspection: Inspection,
    /// The attempt's own story when it began.
    pub at_start: Story,
}

/// The lane after an attempt, and after repairs.
#[derive(Debug, Default)]
pub struct Inspection {
    /// The attempt lost the run's branch.
    pub branch_loss: Option<BranchLoss>,
    /// Where branch and tree are rolled back to, if not to where the attempt began.
    pub roll_back: Option<Base>,
    /// The agent ticked `TASK_COMPLETE` in the instructions.
    pub ticked: bool,
    /// How tree and branch differ from before the attempt; None: not checked.
    pub difference: Option<Difference>,
    /// What a human has to see if it is a claim, not redacted.
    pub doubtful: Vec<Concern>,
    /// The branch tip.
    pub head: Option<String>,
    /// The lane could not be inspected. The attempt's end is recorded anyway.
    pub problem: Option<RunnerError>,
}

/// The result of an integration.
#[derive(Debug)]
pub enum Integration {
    /// Work and mark are on the branch.
    Done { commit: String, change: StoryChange },
    /// There is nothing to commit, and no gate turned green.
    NothingChanged,
    /// The content must not be committed. `beyond_agent`: no agent can fix it.
    Unfit { error: String, beyond_agent: bool },
    /// The agent left the repository in a state that cannot be committed to.
    Refused { error: String },
    /// Recorded already: its work conflicts with the branch.
    Conflicting,
    /// The gates saw another state than the branch has now.
    Outdated,
}

/// The last event of a process before its end, if any.
pub type Left = Result<Option<Event>>;

pub trait Effects {
    /// With the marks that count, whatever the file says.
    fn backlog(&self) -> &Backlog;
    /// Why the file cannot be used now.
    fn backlog_problem(&self) -> Option<&str>;
    /// Reads edits of the backlog file.
    fn refresh(&mut self, log: &mut RunLog) -> Result<()>;
    /// Everything but the tasks.
    fn observe(&mut self, log: &mut RunLog) -> Result<Observed>;
    /// An interrupt that arrived since the last wait.
    fn pending_interrupt(&mut self) -> impl Future<Output = Option<i32>>;
    /// Waits for the next thing, at most `most`.
    fn next(
        &mut self,
        log: &mut RunLog,
        most: Option<Duration>,
    ) -> impl Future<Output = Result<Happened>>;

    /// A task: [`Happened::JobEnded`].
    fn start_job(
        &mut self,
        log: &mut RunLog,
        job: LaneJob,
        story: &StoryId,
        lane: LaneId,
    ) -> Result<()>;
    /// In a lane that is ready. A task: [`Happened::AttemptEnded`].
    fn start_attempt(&mut self, log: &mut RunLog, story: &StoryId, lane: LaneId) -> Result<()>;
    /// A task: [`Happened::GatesEnded`].
    fn run_gates(&mut self, log: &mut RunLog, of: GatesOf) -> Result<()>;
    /// A task: [`Happened::Answered`].
    fn ask(&mut self, about: About, story: &StoryId, question: Escalation, patience: Duration);

    /// Before its end is judged: reads what the attempt did to the backlog.
    fn attempt_is_over(&mut self, log: &mut RunLog, ended: &EndedAttempt) -> Result<()>;
    /// The same, for what the gates did. Before their results are weighed.
    fn gates_are_over(&mut self, log: &mut RunLog) -> Result<()>;
    /// The attempt's end is recorded.
    fn forget_attempt(&mut self, log: &mut RunLog, attempt: &str) -> Result<()>;
    /// Writes the last good version of a backlog that cannot be used. What is there is kept beside it.
    fn restore_backlog(&mut self, log: &mut RunLog) -> Result<()>;
    /// Secrets in a text are replaced.
    fn redact(&self, text: &str) -> String;
    fn disown(&mut self, log: &mut RunLog, story: &StoryId);
    /// Work on the repository that changes nothing takes long, as large files do.
    fn has_read_for_long(&self) -> bool {
        reading::has_lasted()
    }
    /// The process ends: if nothing runs, how it leaves the human's tree, if a story's work is there.
    /// After a success, what is on the branch must be whole.
    fn leave(
        &mut self,
        _log: &RunLog,
        _is_idle: bool,
        _end: Option<&Event>,
    ) -> impl Future<Output = Left> {
        async { Ok(None) }
    }
    /// Sets a story's marks in the file and in the journal; false: not now.
    fn mark(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        passes: bool,
        skipped: bool,
    ) -> Result<bool>;

    /// `at_once`: even if the human is writing; otherwise the text may still come.
    fn withdraw(&mut self, about: &About, at_once: bool);
    /// The agent takes messages, and has not given its result yet.
    fn takes_messages(&self, attempt: &str) -> bool;
    fn say(&mut self, attempt: &str, text: &str);
    fn end_attempt(&mut self, attempt: &str, why: EndedBy);
    /// A step against a stuck agent was taken; None: it gets more time.
    fn stuck_step(&mut self, attempt: &str, step: Option<StuckStep>);
    /// How long the attempt has been running.
    fn busy(&self, attempt: &str) -> Duration;
    /// Orders every attempt and gate to stop.
    fn order(&mut self, order: Order);
    fn listen_for_skip(&mut self, on: bool);
    /// Requests from other processes; None is one that this version does not know.
    fn requests(&mut self, log: &mut RunLog) -> Result<Vec<(i64, Option<Request>)>>;
    /// The human approved these.
    fn approved(&mut self, log: &mut RunLog, all: Vec<Approval>) -> Result<()>;
    fn settle_request(&mut self, number: i64) -> Result<()>;
}
