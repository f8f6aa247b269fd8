//! Questions for the human, their answers, and the human's requests to a run.

use serde::{Deserialize, Serialize};

use super::id::StoryId;

/// The text of a question. It is untrusted: make it visible before showing it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    pub kind: EscalationKind,
    pub summary: String,
    pub context: String,
    pub options: Vec<String>,
    pub question: String,
    /// The raw text of a malformed block.
    pub unread: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationKind {
    Stuck,
    Deviation,
    /// Missing or unknown in the block.
    Unstated,
    /// Raised by ralph: is the claim true?
    Claim,
    /// Raised by ralph: commit it despite the objections?
    Commit,
    /// Raised by ralph: shall a change that waits outside the work tree be accepted?
    Change,
    /// Raised by ralph: the story makes no progress.
    #[serde(rename = "rut")]
    NoProgress,
}

impl EscalationKind {
    /// "Accept" is an answer: of a claim, of its content, or of a change.
    pub fn can_be_accepted(self) -> bool {
        matches!(self, Self::Claim | Self::Commit | Self::Change)
    }
}

/// The human's decision about a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "snake_case")]
pub enum Answer {
    /// One of the agent's options, counted from 1, with its text.
    Option { number: usize, text: String },
    /// Text for the next attempt.
    Guidance { text: String },
    /// The claim in question is true, or the change is wanted.
    Accept,
    /// The change in question is not wanted; the story goes on without it.
    Restore,
    /// Try again without guidance.
    Retry,
    /// Skip the story.
    Skip,
    /// Stop the run.
    Abort,
}

/// The process that makes a request: its number, and when it began as the system counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requester {
    pub pid: i32,
    pub started: u64,
}

/// A request from another process to the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum Request {
    /// `ralph nudge`: send this to the running agents.
    Nudge { text: String },
    /// `ralph mark`: set a story's marks.
    Mark {
        /// The key of the backlog. Other backlogs may have a story of the same name.
        #[serde(default)]
        backlog: String,
        story: StoryId,
        passes: bool,
        skipped: bool,
    },
    /// `ralph trust`, or a run of another work tree: the human approved something.
    Approved { all: Vec<Approval> },
}

/// What is not asked about again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Exactly this text, under this name.
    Trusted { what: String, text: String },
    /// Such as a permission mode.
    Answer { key: String, value: String },
}
