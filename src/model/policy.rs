//! Settings as values.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use super::budget::Budgets;
use super::id::StoryId;

/// The settings that decisions depend on.
#[derive(Clone, Debug)]
pub struct Policy {
    /// None: no limit.
    pub max_iterations: Option<u32>,
    /// Stop after one iteration of this process.
    pub once: bool,
    /// Attempts of the run before this process.
    pub attempts_before: u32,
    /// Work on this story only.
    pub only: Option<StoryId>,
    /// This many equal errors are a question.
    pub stuck_threshold: NonZeroU32,
    /// This many attempts at one story are a question too.
    pub max_attempts: NonZeroU32,
    /// After this many failed attempts in a row a story starts over; None: never.
    pub fresh_start_after: Option<u32>,
    pub limits: Limits,
    pub on_escalation: OnEscalation,
    pub on_limit: OnLimit,
    /// Bytes that must be free on the disk. None: not checked.
    pub min_free_disk: Option<u64>,
    /// The human is at a terminal.
    pub human_present: bool,
    pub budgets: Budgets,
    /// How many attempts may run at the same time, each in a lane of its own.
    pub lanes: NonZeroU32,
    /// The agent's name, to look up its service.
    pub agent: String,
    /// Run the gates of every story before any work.
    pub baseline: bool,
    /// Stories that have gates which run before their first attempt.
    pub first_looks: BTreeSet<StoryId>,
}

impl Policy {
    /// The numbers of the lanes that agents work in. With more than one, no agent works in the
    /// human's own tree, where the work of all of them is integrated.
    pub fn agent_lanes(&self) -> RangeInclusive<u32> {
        match self.lanes.get() {
            1 => 0..=0,
            many => 1..=many,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnEscalation {
    /// In a terminal, ask; without one, park.
    Ask,
    Park,
    Skip,
    Abort,
}

/// What to do when the account's usage limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    Wait,
    Stop,
}

/// How long to wait for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For its first output.
    pub first_event: Duration,
    /// Between two outputs.
    pub idle: Duration,
    pub iteration: Duration,
    /// Between its result and its exit.
    pub after_result: Duration,
    /// The same, at most, while its background tasks run.
    pub background: Duration,
}

/// Limits other than iterations and money. None: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Errors in a row, over all stories.
    pub max_consecutive_errors: Option<u32>,
    /// Stop when this many of the last ten iterations failed.
    pub max_failing: Option<u32>,
    /// How long agents and gates may work.
    #[serde(rename = "max_run_time_ms", serialize_with = "in_ms")]
    pub max_run_time: Option<Duration>,
    /// How long an iteration may take on average.
    #[serde(rename = "max_average_iteration_ms", serialize_with = "in_ms")]
    pub max_average_iteration: Option<Duration>,
    /// The breaker's pause. None: no breaker.
    #[serde(rename = "cool_down_ms", serialize_with = "in_ms")]
    pub cool_down: Option<Duration>,
    /// The unit of the wait after a failure. None: no wait.
    #[serde(rename = "backoff_ms", serialize_with = "in_ms")]
    pub backoff: Option<Duration>,
}

fn in_ms<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(millis).serialize(serializer)
}

/// As stored and shown.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Entries kept of each kind, whatever the settings.
pub const MOST_KEPT: usize = 20;
/// Characters kept of each entry.
pub const LONGEST_KEPT: usize = 2000;

/// How much of a story's memory goes into a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    pub outcomes: usize,
    pub errors: usize,
    pub worked: usize,
    /// Characters of one entry.
    pub entry: usize,
    /// Characters of all of them.
    pub total: usize,
}

/// An agent's modes that make sense unattended, the usual one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionModes {
    /// The agent's name.
    pub agent: &'static str,
    pub modes: &'static [PermissionMode],
}

/// One mode, by the agent's own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionMode {
    pub name: &'static str,
    /// What the agent may do in it.
    pub meaning: &'static str,
    /// Advice for choosing.
    pub advice: &'static str,
}
