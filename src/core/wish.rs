//! What another process wants of the run that goes on.

use serde::{Deserialize, Serialize};

use super::id::StoryId;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum Wish {
    /// `ralph nudge`: say this to the agent that works now.
    Nudge { text: String },
    /// `ralph mark`: set a story's marks.
    Mark { story: StoryId, passes: bool, skipped: bool },
}
