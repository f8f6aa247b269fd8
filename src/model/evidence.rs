//! What the driver finds out about a claim.

use serde::{Deserialize, Serialize};

use super::id::StoryId;
use super::text::visible_line;

/// Bytes of a gate's output, from its end, for the journal and the next prompt.
pub const GATE_TAIL: usize = 2048;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum EvidenceItem {
    Gate(GateReport),
}

/// The result of one gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReport {
    /// The command.
    pub gate: String,
    /// The closed story that it was run again for.
    pub guards: Option<StoryId>,
    pub end: GateEnd,
    pub elapsed_ms: u64,
    /// The end of its output.
    pub tail: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum GateEnd {
    Passed,
    Failed { code: i32 },
    Killed { signal: i32 },
    TimedOut,
    NotStarted { error: String },
}

impl GateReport {
    pub fn passed(&self) -> bool {
        self.end == GateEnd::Passed
    }

    /// `cargo test failed with exit code 101`.
    pub fn describe(&self) -> String {
        let gate = &self.gate;
        match &self.end {
            GateEnd::Passed => format!("`{gate}` passed"),
            GateEnd::Failed { code: code @ (126 | 127) } => {
                format!("`{gate}` could not be run (exit code {code})")
            }
            GateEnd::Failed { code } => format!("`{gate}` failed with exit code {code}"),
            GateEnd::Killed { signal } => format!("`{gate}` was killed by signal {signal}"),
            GateEnd::TimedOut => format!("`{gate}` timed out"),
            GateEnd::NotStarted { error } => {
                format!("`{gate}` could not be started: {}", visible_line(error))
            }
        }
    }

    /// The command itself is missing; says nothing about the work.
    pub fn cannot_run(&self) -> bool {
        matches!(self.end, GateEnd::NotStarted { .. } | GateEnd::Failed { code: 126 | 127 })
    }
}

/// A change that could make the agent's own work look done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concern {
    /// One line: what changed.
    pub what: String,
    /// The diff, as text.
    pub diff: String,
}
