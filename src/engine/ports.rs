//! What the loop needs of the world, as small traits.

use std::path::PathBuf;
use std::time::Duration;

use crate::core::backlog::{Backlog, Story};
use crate::core::event::{Answer, Recorded};
use crate::core::id::StoryId;
use crate::core::signal::Escalation;
use crate::core::state::RunState;

/// What a reporter may look at beside the event itself.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// As it is after the event: a story that was just closed passes in it.
    pub backlog: &'a Backlog,
    /// The state after the event.
    pub state: &'a RunState,
}

/// Tells people what happens. Never fails the run: what cannot be shown is dropped.
pub trait Reporter {
    /// A durable fact, right after it was recorded.
    fn on_event(&mut self, recorded: &Recorded, view: View<'_>);
    /// What the agent is doing right now; for the live line.
    fn on_activity(&mut self, activity: &Activity);
    /// Something people should know that is no fact of the run.
    fn on_notice(&mut self, notice: &Notice);
}

/// What an agent is doing. Its texts are data from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    /// A tool call, a retry, a wait: one short line.
    Doing(String),
    /// The main agent's text as it comes; for `--verbose`.
    Said(String),
    /// A gate runs from now on, in milliseconds since the Unix epoch.
    Checking { at: i64, gate: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The backlog file cannot be used as it is now; the last good version serves.
    BacklogBroken {
        problem: String,
    },
    BacklogUsableAgain,
    /// The PRD is outside the repository or ignored: written, not committed.
    BacklogNotCommitted {
        path: PathBuf,
        why: String,
    },
    /// The agent promised the whole backlog while stories are left.
    FalsePromise {
        remaining: usize,
    },
    /// The agent spoke of other stories as complete.
    OtherClaims {
        ids: Vec<String>,
    },
    /// Marks in the backlog that changed during an attempt are as they were again.
    MarksPutBack {
        ids: Vec<StoryId>,
    },
    /// Anything else, one line.
    Info(String),
    Warning(String),
}

/// The person at the terminal, if there is one. `ask` blocks; the engine calls it off the loop.
pub trait Human: Send + Sync {
    /// The process is told to stop: an `ask` under way returns `Interrupted` soon, and so does
    /// each later one. Without it the terminal would stay in the menu's hands.
    fn withdraw(&self) {}
    fn ask(&self, story: &Story, question: &Escalation, patience: Duration) -> Asked;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Answered(Answer),
    /// No key was pressed for as long as the human was given.
    NobodyThere,
    /// Ctrl-C in the menu.
    Interrupted,
}
