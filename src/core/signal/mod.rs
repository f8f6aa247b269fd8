//! What an agent's own text asks of the driver: a claim, a promise, a human, a successor.
//!
//! Owns the grammar of those four and where in a text they count. It must
//! never decide what follows from a signal, and it never sees anything but
//! prose: no tool output, no files. In doubt about a claim or a promise it
//! hears nothing; in doubt about an escalation or a hand-off it hears one.

mod bounded;
mod claim;
mod dressing;
mod escalation;
mod fields;
mod find;
mod handoff;
mod options;
mod place;
mod promise;
mod retraction;
mod scanner;
mod signs;
mod vocabulary;

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod escalation_tests;
#[cfg(test)]
mod handoff_tests;
#[cfg(test)]
mod signs_tests;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use handoff::Handoff;
pub use scanner::Scanner;
pub use signs::{AllSigns, Signs, can_be_a_line, can_be_promised, ticks_task_complete};

/// What an agent's own text asks of the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signals {
    /// The last statement about the current story is that it is complete.
    pub claims_story: bool,
    /// Ids of other stories it says are complete; told to the human, never acted on.
    pub claims_others: Vec<String>,
    /// It promises that the whole backlog is done.
    pub promises_all: bool,
    /// It asks for a human.
    pub escalation: Option<Escalation>,
    /// What it leaves for the next one.
    #[serde(default)]
    pub handoff: Option<Handoff>,
    /// Stages that it reached, in their order; the last one of a story is its claim.
    #[serde(default)]
    pub stages: Vec<String>,
    /// There are stages, and not all of them are reached: nothing else is a claim then.
    #[serde(default)]
    pub stages_left: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationKind {
    Stuck,
    Deviation,
    /// The block did not say, or said something else.
    Unstated,
    /// The driver's own: whether a claim is true.
    Claim,
    /// The driver's own: whether to commit what speaks against it.
    Commit,
    /// The driver's own: how a story should go on that gets nowhere.
    Rut,
}

impl EscalationKind {
    /// Yes is an answer, and it closes the story.
    pub fn can_be_accepted(self) -> bool {
        matches!(self, Self::Claim | Self::Commit)
    }
}

/// A question for the human. Every text in it is data from outside: sanitise before showing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    pub kind: EscalationKind,
    pub summary: String,
    pub context: String,
    pub options: Vec<String>,
    pub question: String,
    /// What could not be read of a malformed block, as it came.
    pub unread: Option<String>,
}
