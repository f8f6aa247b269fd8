//! Why an attempt is made: what became of the one before it.

use serde::{Deserialize, Serialize};

use super::event::Answer;
use super::evidence::Item;
use super::verdict::Verdict;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Nothing was tried before.
    #[default]
    FirstTry,
    /// The one before got on and claimed nothing.
    Incomplete,
    /// A gate contradicted the claim.
    GateFailed,
    /// The claim had nothing to show for it, or its work could not be committed.
    ClaimRejected,
    /// Two claims are wanted, and the one before made the first.
    SecondLook,
    /// The human chose an option or gave guidance.
    HumanGuidance,
    /// The human wants it tried again as it is.
    HumanRetry,
    /// The one before was interrupted, or ralph died during it.
    Recovery,
    AfterError,
    /// A limit or an outage ended the one before; it says nothing about the story.
    AfterServiceTrouble,
    /// Now without what ralph adds to the prompt.
    PromptTooLong,
    /// The work of the ones before is kept, and not in the tree any more.
    FreshStart,
}

impl Why {
    /// A claim is not decided yet: whoever rejects it says why.
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

    /// By what was found out about the claim.
    pub fn after_rejection(evidence: &[Item]) -> Self {
        let failed = evidence.iter().any(|Item::Gate(report)| !report.passed());
        if failed { Self::GateFailed } else { Self::ClaimRejected }
    }

    pub fn after_answer(self, answer: &Answer) -> Self {
        match answer {
            Answer::Option { .. } | Answer::Guidance { .. } => Self::HumanGuidance,
            Answer::Retry => Self::HumanRetry,
            Answer::Accept | Answer::Skip | Answer::Abort => self,
        }
    }

    /// What the human said is the reason, whatever happened to the work.
    pub fn without_its_work(self) -> Self {
        match self {
            Self::HumanGuidance | Self::HumanRetry => self,
            _ => Self::FreshStart,
        }
    }
}

#[cfg(test)]
mod tests;
