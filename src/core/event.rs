//! The durable facts of a run.
//!
//! Only the driver appends them, one transaction per decision, before it acts.
//! Everything people see (status, log, report, the live display) and everything
//! a restart knows is a fold over them. They are stored as JSON for years: add
//! fields with a default, never change the meaning of one that exists.

use serde::{Deserialize, Serialize};

use super::budget::Level;
use super::evidence::{Concern, GateReport, Item};
use super::handoff::{Context, Trigger};
use super::id::StoryId;
use super::money::Usd;
use super::outcome::Outcome;
use super::policy::StopReason;
use super::rut::Traces;
use super::signal::{Escalation, Signals};
use super::spending::Bill;
use super::verdict::Verdict;
use super::why;

/// The version of the event format that this program writes.
pub const VERSION: u32 = 1;

/// An event with its place and time in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Milliseconds since the Unix epoch, by the machine's clock.
    pub at: i64,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    RunStarted(RunStarted),
    /// `ralph run` took up a run that was interrupted.
    RunContinued,
    AttemptStarted(Box<AttemptStarted>),
    AttemptEnded(Box<AttemptEnded>),
    /// Its driver died before its end: what it cost can only be assumed.
    AttemptLost {
        attempt: String,
        story: StoryId,
        counted: Usd,
    },
    /// A budget is nearly used up.
    BudgetNear {
        level: Level,
    },
    /// The next attempt waits, so that the budget lasts longer.
    Throttled {
        level: Level,
        /// Milliseconds since the Unix epoch.
        until: i64,
    },
    /// The marks that count from here on: as the human had them while no attempt ran.
    MarksSeen {
        passing: Vec<StoryId>,
        skipped: Vec<StoryId>,
    },
    /// What the gates of every story said before any work, to tell old failures from new ones.
    BaselineTaken {
        reports: Vec<GateReport>,
    },
    /// What the driver found out about a claim.
    ClaimChecked {
        attempt: String,
        story: StoryId,
        items: Vec<Item>,
    },
    /// The evidence is against the claim.
    ClaimRejected {
        story: StoryId,
        error: String,
        fingerprint: String,
        /// There was nothing to show for it.
        unfounded: bool,
    },
    /// The driver accepted a claim and is about to commit it.
    ClosePlanned {
        attempt: String,
        story: StoryId,
    },
    /// The work cannot be committed as it is: the claim is not accepted after all.
    CloseRefused {
        story: StoryId,
        error: String,
        /// What would be committed is at fault: the second time the human is asked.
        #[serde(default)]
        unfit: bool,
    },
    StoryClosed(StoryClosed),
    QuestionRaised {
        story: StoryId,
        question: Escalation,
    },
    QuestionAnswered {
        story: StoryId,
        answer: Answer,
    },
    /// Nobody answered: the question waits, other stories go on.
    StoryParked {
        story: StoryId,
    },
    /// The tree is back at the story's base; its work, if there was any, is kept at the ref.
    WorkSetAside {
        story: StoryId,
        reference: Option<String>,
    },
    /// The human settled the story: what is in the tree of it is the human's now.
    WorkLetGo {
        story: StoryId,
    },
    /// What a failed attempt left is kept at the ref; it stays in the tree too.
    AttemptKept {
        story: StoryId,
        reference: String,
        /// How much that is, in a few words.
        changes: String,
    },
    /// Branch and tree are about to go back to where they were.
    ReturnPlanned {
        story: StoryId,
        to: Base,
        why: Cause,
    },
    /// They are back; what there was since, if anything, is kept at the ref.
    Returned {
        story: StoryId,
        reference: Option<String>,
    },
    /// These were uncommitted before the story, the attempt deleted them or reset them to what is
    /// committed, and they are about to be what they were before it.
    FilesPutBack {
        story: StoryId,
        paths: Vec<String>,
        /// Where all of them are kept.
        snapshot: Option<String>,
    },
    /// The attempt changed how git behaves in this repository, and that is about to be as it was.
    SetupPutBack {
        story: StoryId,
        /// Files of the git folder.
        names: Vec<String>,
        /// The folder that has what the attempt made of them.
        kept: String,
    },
    /// Something was said to the agent while it works, or is told to the next one.
    Nudged {
        story: StoryId,
        text: String,
        by: Nudger,
        delivered: bool,
    },
    /// Its agent is heard and gets nowhere.
    Stuck {
        story: StoryId,
        step: StuckStep,
    },
    /// A stage of the story that is not the last.
    StageReached {
        story: StoryId,
        stage: String,
    },
    /// The attempt changed the human's instructions; they are about to be what they were.
    InstructionsPutBack {
        story: StoryId,
        path: String,
        /// Where the attempt's version is kept.
        kept: Option<String>,
    },
    /// Two claims are wanted, and this was the first: the next attempt looks again.
    SecondLookWanted {
        story: StoryId,
    },
    /// A human took the closed story back.
    StoryReopened {
        story: StoryId,
        commit: Option<String>,
    },
    /// Work that was set aside is in the tree again, or could not be brought back as it was.
    WorkBroughtBack {
        story: StoryId,
        reference: String,
        conflicts: Vec<String>,
    },
    StorySkipped {
        story: StoryId,
        commit: Option<String>,
    },
    /// The story's base, where no attempt says it: before kept work comes back, and when the
    /// branch moved while no attempt ran.
    BaseSet {
        story: StoryId,
        base: Base,
    },
    /// The human does not want to wait any longer: the next attempt starts now.
    WaitCutShort,
    /// It is not one story that fails: the run pauses until then (milliseconds since the epoch).
    BreakerOpened {
        why: String,
        until: i64,
    },
    /// The process was told to stop; the run stays open.
    RunInterrupted {
        signal: i32,
    },
    RunEnded {
        reason: StopReason,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// UUIDv7.
    pub run: String,
    /// The PRD's path in the repository.
    pub backlog: String,
    pub project: String,
    #[serde(default)]
    pub description: String,
    pub agent: String,
    pub branch: Option<String>,
    /// The human wants to work beside uncommitted edits.
    #[serde(default)]
    pub allow_dirty: bool,
    /// Stories whose question, guidance or unfinished work comes over from the run before.
    #[serde(default)]
    pub carried: Vec<StoryId>,
}

/// What an attempt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Implement,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptStarted {
    /// UUIDv7.
    pub attempt: String,
    pub iteration: u32,
    pub role: Role,
    pub story: StoryId,
    pub title: String,
    pub agent: String,
    pub base: Base,
    /// The story's, as they were then.
    #[serde(default)]
    pub criteria: Option<Vec<String>>,
    /// Branch and work tree right before it.
    #[serde(default)]
    pub before: Option<Base>,
    /// The ref that keeps them.
    #[serde(default)]
    pub snapshot: Option<String>,
    /// The human's guidance was put into the prompt.
    pub guided: bool,
    #[serde(default)]
    pub why: why::Why,
    /// The hash of what every prompt has: the instructions and the contract, as `git hash-object`
    /// makes one.
    #[serde(default)]
    pub stable: Option<String>,
}

/// Where the repository stood at a story's first attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// None on a branch without commits.
    pub commit: Option<String>,
    /// The work tree (tracked and untracked, not ignored) as a git tree.
    pub tree: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nudger {
    Driver,
    Human,
}

/// What is done about an agent that gets nowhere, after the reminder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StuckStep {
    Asked {
        minutes: u64,
    },
    MoreTime,
    /// It got on by itself.
    Recovered,
    Ended {
        minutes: u64,
    },
}

/// Why branch and tree go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// So many failed attempts in a row that the story starts over.
    FreshStart,
    Elsewhere,
    Rewritten,
}

/// How an agent lost the branch that it was to work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stray {
    /// HEAD is on something that does not build on the run's branch.
    Elsewhere,
    /// What the story began with is not in the branch any more.
    Rewritten,
}

impl From<Stray> for Cause {
    fn from(stray: Stray) -> Self {
        match stray {
            Stray::Elsewhere => Self::Elsewhere,
            Stray::Rewritten => Self::Rewritten,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnded {
    pub attempt: String,
    pub story: StoryId,
    pub outcome: Outcome,
    pub signals: Signals,
    pub verdict: Verdict,
    pub usage: Usage,
    pub elapsed_ms: u64,
    /// The branch tip that the attempt left.
    #[serde(default)]
    pub head: Option<String>,
    /// What it changed that a human should see before a claim counts.
    #[serde(default)]
    pub concerns: Vec<Concern>,
    /// The agent's own word for its version, if it said one.
    #[serde(default)]
    pub agent_version: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// The end of the agent's last words.
    #[serde(default)]
    pub said: Option<String>,
    #[serde(default)]
    pub context: Option<Context>,
    /// Why a fresh agent should go on.
    #[serde(default)]
    pub triggers: Vec<Trigger>,
    /// What it left that tells a rut from progress.
    #[serde(default)]
    pub traces: Traces,
    #[serde(default)]
    pub bill: Bill,
}

impl AttemptEnded {
    /// It ended well, claimed nothing and changed nothing.
    pub fn did_nothing(&self) -> bool {
        let came_to_nothing = matches!(self.verdict, Verdict::Failed { .. });
        came_to_nothing && self.outcome == Outcome::Completed && self.traces.changed == Some(false)
    }
}

/// What an attempt used, as far as the agent said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// None: the agent did not say, or was ended before it could.
    pub cost_usd: Option<f64>,
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    #[serde(default)]
    pub cache_read_tokens: u64,
    #[serde(default)]
    pub cache_write_tokens: u64,
    #[serde(default)]
    pub turns: u64,
    /// Those of sub-agents included.
    #[serde(default)]
    pub tool_calls: u64,
}

impl Usage {
    pub fn add(&mut self, other: &Self) {
        if let Some(cost) = other.cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.turns += other.turns;
        self.tool_calls += other.tool_calls;
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoryClosed {
    pub attempt: String,
    pub story: StoryId,
    pub commit: String,
}

/// What the human decided about a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "snake_case")]
pub enum Answer {
    /// One of the agent's options, counted from 1, with its text.
    Option {
        number: usize,
        text: String,
    },
    Guidance {
        text: String,
    },
    /// The claim in question is true.
    Accept,
    Retry,
    Skip,
    Abort,
}
