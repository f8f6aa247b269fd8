//! Questions for the human, and the answers to them.

use serde::{Deserialize, Serialize};

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
