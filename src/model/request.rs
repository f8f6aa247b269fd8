//! Requests from other processes to the run.

use serde::{Deserialize, Serialize};

use crate::model::id::StoryId;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum Request {
    /// `ralph nudge`: send this to the running agents.
    Nudge { text: String },
    /// `ralph mark`: set a story's marks.
    Mark { story: StoryId, passes: bool, skipped: bool },
}
