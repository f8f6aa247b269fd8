//! What an attempt amounts to.

use serde::{Deserialize, Serialize};

use crate::model::service::ServiceFault;
use crate::model::signals::Escalation;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It claims the story; the evidence decides.
    Done,
    /// The agent needs the human.
    Escalated { escalation: Escalation },
    /// Something changed, no claim yet: continue with the same story.
    Progress,
    /// It failed. Equal fingerprints are the same error.
    Failed { error: String, fingerprint: String },
    /// The service failed; it says nothing about the story.
    NotTheStory { trouble: ServiceFault, error: String },
    /// The prompt was too long for the agent.
    PromptTooLong { error: String },
    /// The human stopped it; it says nothing about the story.
    Interrupted,
}
