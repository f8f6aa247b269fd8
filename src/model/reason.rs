//! Why an attempt is made.

use serde::{Deserialize, Serialize};

use crate::model::evidence::EvidenceItem;
use crate::model::question::Answer;
use crate::model::verdict::Verdict;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptReason {
    /// Nothing was tried before.
    #[default]
    FirstTry,
    /// The previous one made progress and claimed nothing.
    Incomplete,
    /// A gate contradicted the claim.
    GateFailed,
    /// The claim had no changes to show, or its work could not be committed.
    ClaimRejected,
    /// Two claims are required, and the previous one made the first.
    SecondLook,
    /// The human chose an option or gave guidance.
    HumanGuidance,
    /// The human chose to retry.
    HumanRetry,
    /// The previous one was interrupted, or ralph died during it.
    Recovery,
    AfterError,
    /// A limit or an outage ended the previous one.
    AfterServiceTrouble,
    /// Without ralph's additions to the prompt.
    PromptTooLong,
    /// The earlier work is kept at a ref and no longer in the tree.
    FreshStart,
}

impl AttemptReason {
    /// A claim is not decided yet; its rejection gives the reason.
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
        let failed = evidence.iter().any(|EvidenceItem::Gate(report)| !report.passed());
        if failed { Self::GateFailed } else { Self::ClaimRejected }
    }

    pub fn after_answer(self, answer: &Answer) -> Self {
        match answer {
            Answer::Option { .. } | Answer::Guidance { .. } => Self::HumanGuidance,
            Answer::Retry => Self::HumanRetry,
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

#[cfg(test)]
mod tests;
