//! One attempt: why it is made, how it starts, what it leaves, and what it must not change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::gate::{Concern, EvidenceItem};
use super::id::{LaneId, StoryId};
use super::money::{AttemptCost, Usage, Usd};
use super::outcome::{Outcome, Verdict};
use super::question::Answer;
use super::signals::{AgentSignals, ContextUsage, HandoffTrigger};

/// Why an attempt is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptReason {
    /// The story was not tried before.
    #[default]
    FirstTry,
    /// The previous attempt made progress and claimed nothing.
    Incomplete,
    /// A gate contradicted the claim.
    GateFailed,
    /// The claim had no changes to show, or its work could not be committed.
    ClaimRejected,
    /// Two claims are required, and the previous attempt made the first.
    SecondLook,
    /// The human chose an option or gave guidance.
    HumanGuidance,
    /// The human chose to retry.
    HumanRetry,
    /// The previous attempt was interrupted, or ralph died during it.
    Recovery,
    /// The previous attempt failed.
    AfterError,
    /// A limit or an outage ended the previous attempt.
    AfterServiceTrouble,
    /// Its prompt has none of ralph's additions.
    PromptTooLong,
    /// The earlier work is at a ref and no longer in the tree.
    FreshStart,
}

impl AttemptReason {
    /// A claim keeps the reason: it is not decided yet.
    pub fn after(self, verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Done => self,
            Verdict::Progress | Verdict::Escalated { .. } => Self::Incomplete,
            Verdict::Failed { .. } => Self::AfterError,
            Verdict::NotTheStory { .. } => Self::AfterServiceTrouble,
            Verdict::PromptTooLong { .. } => Self::PromptTooLong,
            Verdict::Interrupted => Self::Recovery,
        }
    }

    /// By the evidence for the claim.
    pub fn after_rejection(evidence: &[EvidenceItem]) -> Self {
        let failed = evidence.iter().any(|EvidenceItem::Gate(report)| report.counts_against());
        if failed { Self::GateFailed } else { Self::ClaimRejected }
    }

    pub fn after_answer(self, answer: &Answer) -> Self {
        match answer {
            Answer::Option { .. } | Answer::Guidance { .. } => Self::HumanGuidance,
            Answer::Retry | Answer::Restore => Self::HumanRetry,
            Answer::Accept | Answer::Skip | Answer::Abort => self,
        }
    }

    /// The human's answer is the reason, whatever happens to the work.
    pub fn without_its_work(self) -> Self {
        match self {
            Self::HumanGuidance | Self::HumanRetry => self,
            _ => Self::FreshStart,
        }
    }
}

/// What an attempt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Implement,
}

/// Everything known when an attempt starts.
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
    pub criteria: Option<Vec<String>>,
    /// Branch and work tree right before it.
    pub before: Option<Base>,
    /// The ref of their snapshot.
    pub snapshot: Option<String>,
    /// The prompt contained the human's guidance.
    pub guided: bool,
    #[serde(default)]
    pub why: AttemptReason,
    /// The most that it may cost: reserved while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Usd>,
    /// The hash (as of `git hash-object`) of what all prompts share: instructions and contract.
    pub stable: Option<String>,
    /// The hash of the held files right before it, as they are stored in the git folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

impl AttemptStarted {
    /// Branch and work tree right before it.
    pub fn before(&self) -> &Base {
        self.before.as_ref().unwrap_or(&self.base)
    }
}

/// A state of the repository: a commit and a work tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// None on a branch without commits.
    pub commit: Option<String>,
    /// The work tree (tracked and untracked, not ignored) as a git tree.
    pub tree: String,
}

/// The end of an attempt.
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
    pub head: Option<String>,
    /// Changes that a human must see before a claim counts.
    #[serde(default)]
    pub concerns: Vec<Concern>,
    /// The agent's version, if reported.
    pub agent_version: Option<String>,
    pub model: Option<String>,
    /// The end of the agent's last text.
    pub said: Option<String>,
    pub context: Option<ContextUsage>,
    /// Why a fresh agent should continue.
    #[serde(default)]
    pub triggers: Vec<HandoffTrigger>,
    /// Facts that tell progress from stagnation.
    #[serde(default, rename = "traces")]
    pub footprint: Footprint,
    #[serde(default, rename = "bill")]
    pub cost: AttemptCost,
    /// Rules that would allow the calls that were denied, and how often they were.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub denied: BTreeMap<String, u32>,
}

/// Facts about an attempt that tell progress from stagnation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Footprint {
    /// Tree, branch or story differ from before it. None: not checked.
    pub changed: Option<bool>,
    /// The branch has new commits.
    pub committed: bool,
    /// It changed only tests.
    pub only_tests: bool,
    /// The end of its final text, normalized for comparison.
    pub said: String,
    /// Similarity to the closest of the story's last five texts, from 0 to 1.
    pub likeness: f64,
}

/// What a step of an agent is for. Its backend says so, because each agent has its own tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// It changes files.
    Edit,
    /// It runs a command.
    Run,
    /// It reads or searches files.
    Read,
    Other,
}

impl AttemptEnded {
    /// It ended normally, claimed nothing and changed nothing.
    pub fn did_nothing(&self) -> bool {
        matches!(self.verdict, Verdict::Failed { .. })
            && self.outcome == Outcome::Completed
            && self.footprint.changed == Some(false)
    }
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

/// Why branch and tree are rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Too many failed attempts in a row: the story starts over.
    FreshStart,
    Elsewhere,
    Rewritten,
    /// Its agent was killed during a merge, a rebase or the like.
    Unfinished,
}

impl From<BranchLoss> for Cause {
    fn from(loss: BranchLoss) -> Self {
        match loss {
            BranchLoss::Elsewhere => Self::Elsewhere,
            BranchLoss::Rewritten => Self::Rewritten,
        }
    }
}

#[cfg(test)]
mod tests;
