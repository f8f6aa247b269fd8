//! The durable facts of a run.
//!
//! Only the driver appends them, one transaction per decision, before it acts. The display, the
//! reports and recovery are folds over them. They are stored as JSON for years: add fields with a
//! default, never change the meaning of an existing one.

use serde::{Deserialize, Serialize};

use crate::model::budget::BudgetLevel;
use crate::model::cost::AttemptCost;
use crate::model::evidence::{Concern, EvidenceItem, GateReport};
use crate::model::footprint::Footprint;
use crate::model::handoff::{ContextUsage, HandoffTrigger};
use crate::model::id::StoryId;
use crate::model::lane::LaneId;
use crate::model::money::Usd;
use crate::model::outcome::Outcome;
use crate::model::question::Answer;
use crate::model::reason::AttemptReason;
use crate::model::signals::{AgentSignals, Escalation};
use crate::model::stop::StopReason;
use crate::model::usage::Usage;
use crate::model::verdict::Verdict;

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
    /// `ralph run` continued an interrupted run.
    RunContinued,
    AttemptStarted(Box<AttemptStarted>),
    AttemptEnded(Box<AttemptEnded>),
    /// Its driver died before its end; the cost is an estimate.
    AttemptLost {
        attempt: String,
        story: StoryId,
        counted: Usd,
    },
    /// A budget is nearly used up.
    BudgetNear {
        level: BudgetLevel,
    },
    /// The next attempt waits to make the budget last.
    Throttled {
        level: BudgetLevel,
        /// Milliseconds since the Unix epoch.
        until: i64,
    },
    /// The marks that count from here on, as set by the human.
    MarksSeen {
        passing: Vec<StoryId>,
        skipped: Vec<StoryId>,
    },
    /// Results of all gates before any work, to tell old failures from new ones.
    BaselineTaken {
        reports: Vec<GateReport>,
    },
    /// The evidence for a claim.
    ClaimChecked {
        attempt: String,
        story: StoryId,
        items: Vec<EvidenceItem>,
    },
    /// The evidence contradicts the claim.
    ClaimRejected {
        story: StoryId,
        error: String,
        fingerprint: String,
        /// It had no changes to show.
        unfounded: bool,
    },
    /// A claim is accepted and about to be committed.
    ClosePlanned {
        attempt: String,
        story: StoryId,
    },
    /// The work cannot be committed as it is; the claim is not accepted.
    CloseRefused {
        story: StoryId,
        error: String,
        /// Because of its content: the second time the human is asked.
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
    /// No answer in time: the question waits, other stories continue.
    StoryParked {
        story: StoryId,
    },
    /// The work was shelved at the ref, if there was any, and the tree is back at the story's base.
    WorkSetAside {
        story: StoryId,
        reference: Option<String>,
    },
    /// The human settled the story; its work in the tree is the human's now.
    WorkLetGo {
        story: StoryId,
    },
    /// A failed attempt's work is stored at the ref; it stays in the tree too.
    AttemptKept {
        story: StoryId,
        reference: String,
        /// How much changed, in a few words.
        changes: String,
    },
    /// Branch and tree are about to be rolled back.
    ReturnPlanned {
        story: StoryId,
        to: Base,
        why: Cause,
    },
    /// They were rolled back; the work since then, if any, is at the ref.
    Returned {
        story: StoryId,
        reference: Option<String>,
    },
    /// The attempt deleted or reset these uncommitted files of the user; they are about to be
    /// restored.
    FilesPutBack {
        story: StoryId,
        paths: Vec<String>,
        /// The ref that has them all.
        snapshot: Option<String>,
    },
    /// The attempt changed git's configuration or hooks; they are about to be restored.
    SetupPutBack {
        story: StoryId,
        /// Files in the git folder.
        names: Vec<String>,
        /// The folder with the attempt's versions.
        kept: String,
    },
    /// A message was sent to the running agent, or will be given to the next one.
    Nudged {
        story: StoryId,
        text: String,
        by: NudgedBy,
        delivered: bool,
    },
    /// Its agent prints output but makes no progress.
    Stuck {
        story: StoryId,
        step: StuckEvent,
    },
    /// Not the story's last stage, which is a claim.
    StageReached {
        story: StoryId,
        stage: String,
    },
    /// The attempt changed PROMPT.md; it is about to be restored.
    InstructionsPutBack {
        story: StoryId,
        path: String,
        /// Where the attempt's version is kept.
        kept: Option<String>,
    },
    /// Two claims are required, and this was the first: the next attempt checks again.
    SecondLookWanted {
        story: StoryId,
    },
    /// A human reverted the closed story.
    StoryReopened {
        story: StoryId,
        commit: Option<String>,
    },
    /// Shelved work is in the tree again, or conflicts with it.
    WorkBroughtBack {
        story: StoryId,
        reference: String,
        conflicts: Vec<String>,
    },
    StorySkipped {
        story: StoryId,
        commit: Option<String>,
    },
    /// The story's base, set outside an attempt: before unshelving, and when the branch moved
    /// while no attempt ran.
    BaseSet {
        story: StoryId,
        base: Base,
        #[serde(default, skip_serializing_if = "LaneId::is_home")]
        lane: LaneId,
    },
    /// The human skipped the wait.
    WaitCutShort,
    /// More than one story fails: the run pauses until then (milliseconds since the epoch).
    BreakerOpened {
        why: String,
        until: i64,
    },
    /// A signal stopped the process; the run stays open.
    RunInterrupted {
        signal: i32,
    },
    RunEnded {
        reason: StopReason,
    },
}

impl Event {
    /// The story it concerns.
    pub fn story(&self) -> Option<&StoryId> {
        match self {
            Self::AttemptStarted(start) => Some(&start.story),
            Self::AttemptEnded(end) => Some(&end.story),
            Self::StoryClosed(closed) => Some(&closed.story),
            Self::AttemptLost { story, .. }
            | Self::ClaimChecked { story, .. }
            | Self::ClaimRejected { story, .. }
            | Self::ClosePlanned { story, .. }
            | Self::CloseRefused { story, .. }
            | Self::QuestionRaised { story, .. }
            | Self::QuestionAnswered { story, .. }
            | Self::StoryParked { story }
            | Self::WorkSetAside { story, .. }
            | Self::WorkLetGo { story }
            | Self::AttemptKept { story, .. }
            | Self::ReturnPlanned { story, .. }
            | Self::Returned { story, .. }
            | Self::FilesPutBack { story, .. }
            | Self::SetupPutBack { story, .. }
            | Self::Nudged { story, .. }
            | Self::Stuck { story, .. }
            | Self::StageReached { story, .. }
            | Self::InstructionsPutBack { story, .. }
            | Self::SecondLookWanted { story }
            | Self::StoryReopened { story, .. }
            | Self::WorkBroughtBack { story, .. }
            | Self::StorySkipped { story, .. }
            | Self::BaseSet { story, .. } => Some(story),
            Self::RunStarted(_)
            | Self::RunContinued
            | Self::BudgetNear { .. }
            | Self::Throttled { .. }
            | Self::MarksSeen { .. }
            | Self::BaselineTaken { .. }
            | Self::WaitCutShort
            | Self::BreakerOpened { .. }
            | Self::RunInterrupted { .. }
            | Self::RunEnded { .. } => None,
        }
    }

    /// The human did something that may have fixed the problem. Skipping a story or stopping does
    /// not, and may have been decided before the run.
    pub fn is_human_action(&self) -> bool {
        match self {
            Self::MarksSeen { .. } | Self::Nudged { by: NudgedBy::Human, .. } => true,
            Self::QuestionAnswered { answer, .. } => {
                !matches!(answer, Answer::Skip | Answer::Abort)
            }
            _ => false,
        }
    }
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
    /// Run with uncommitted edits.
    #[serde(default)]
    pub allow_dirty: bool,
    /// Stories whose question, guidance or unfinished work continues from the previous run.
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
    /// The work tree that it runs in.
    #[serde(default, skip_serializing_if = "LaneId::is_home")]
    pub lane: LaneId,
    pub base: Base,
    /// The story's criteria at the time.
    #[serde(default)]
    pub criteria: Option<Vec<String>>,
    /// Branch and work tree right before it.
    #[serde(default)]
    pub before: Option<Base>,
    /// The ref of their snapshot.
    #[serde(default)]
    pub snapshot: Option<String>,
    /// The prompt contained the human's guidance.
    pub guided: bool,
    #[serde(default)]
    pub why: AttemptReason,
    /// The most that it may cost: reserved while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Usd>,
    /// The hash (as of `git hash-object`) of what all prompts share: instructions and contract.
    #[serde(default)]
    pub stable: Option<String>,
}

impl AttemptStarted {
    /// Branch and work tree right before it.
    pub fn before(&self) -> &Base {
        self.before.as_ref().unwrap_or(&self.base)
    }
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
pub enum NudgedBy {
    Driver,
    Human,
}

/// Steps against a stuck agent, after the reminder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StuckEvent {
    Asked {
        minutes: u64,
    },
    MoreTime,
    /// It made progress by itself.
    Recovered,
    Ended {
        minutes: u64,
    },
}

/// Why branch and tree are rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Too many failed attempts in a row: the story starts over.
    FreshStart,
    Elsewhere,
    Rewritten,
}

/// How an agent lost the run's branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchLoss {
    /// HEAD is on a commit that does not build on the run's branch.
    Elsewhere,
    /// The branch no longer contains the story's base.
    Rewritten,
}

impl From<BranchLoss> for Cause {
    fn from(stray: BranchLoss) -> Self {
        match stray {
            BranchLoss::Elsewhere => Self::Elsewhere,
            BranchLoss::Rewritten => Self::Rewritten,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnded {
    pub attempt: String,
    pub story: StoryId,
    pub outcome: Outcome,
    pub signals: AgentSignals,
    pub verdict: Verdict,
    pub usage: Usage,
    pub elapsed_ms: u64,
    /// The branch tip that the attempt left.
    #[serde(default)]
    pub head: Option<String>,
    /// Changes that a human must see before a claim counts.
    #[serde(default)]
    pub concerns: Vec<Concern>,
    /// The agent's version, if reported.
    #[serde(default)]
    pub agent_version: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// The end of the agent's last text.
    #[serde(default)]
    pub said: Option<String>,
    #[serde(default)]
    pub context: Option<ContextUsage>,
    /// Why a fresh agent should continue.
    #[serde(default)]
    pub triggers: Vec<HandoffTrigger>,
    /// What tells progress from stagnation.
    #[serde(default)]
    pub traces: Footprint,
    #[serde(default)]
    pub bill: AttemptCost,
}

impl AttemptEnded {
    /// It ended normally, claimed nothing and changed nothing.
    pub fn did_nothing(&self) -> bool {
        let came_to_nothing = matches!(self.verdict, Verdict::Failed { .. });
        came_to_nothing && self.outcome == Outcome::Completed && self.traces.changed == Some(false)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoryClosed {
    pub attempt: String,
    pub story: StoryId,
    pub commit: String,
}
