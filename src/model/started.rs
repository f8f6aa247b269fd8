//! How a run and gates began.

use serde::{Deserialize, Serialize};

use super::attempt::Base;
use super::id::StoryId;
use super::violation::Untrusted;

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
    /// When its first process began. None: it is not known, or an earlier version began the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Box<BootMoment>>,
    /// Stories whose question, guidance or unfinished work continues from the previous run.
    #[serde(default)]
    pub carried: Vec<StoryId>,
}

/// What was there before gates ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GatesStarted {
    pub after: Untrusted,
    /// Whose claim they check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story: Option<StoryId>,
    /// The name of the folder for what they changed.
    pub folder: String,
    /// The branch tip and the work tree.
    pub before: Base,
    /// The hash of the held files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

/// A time that no clock changes: the system's ticks since it was booted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootMoment {
    pub boot: String,
    pub ticks: u64,
}
