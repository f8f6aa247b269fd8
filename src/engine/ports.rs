//! What the loop needs of the world, as small traits.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::core::backlog::{Backlog, Story};
use crate::core::event::{Answer, Recorded};
use crate::core::id::StoryId;
pub use crate::core::pause::Wait;
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
    /// What the journal has of this backlog from before this process, oldest first.
    fn on_earlier(&mut self, _events: &[Recorded]) {}
    /// A durable fact, right after it was recorded.
    fn on_event(&mut self, recorded: &Recorded, view: View<'_>);
    /// What the agent is doing right now; for the live line.
    fn on_activity(&mut self, activity: &Activity);
    /// The run waits. Told again and again while it does; the next fact ends it.
    fn on_wait(&mut self, wait: &Wait);
    /// Something people should know that is no fact of the run.
    fn on_notice(&mut self, notice: &Notice);
}

/// Two that are told the same.
pub struct Both<A, B>(pub A, pub B);

impl<A: Reporter, B: Reporter> Reporter for Both<A, B> {
    fn on_earlier(&mut self, events: &[Recorded]) {
        self.0.on_earlier(events);
        self.1.on_earlier(events);
    }

    fn on_event(&mut self, recorded: &Recorded, view: View<'_>) {
        self.0.on_event(recorded, view);
        self.1.on_event(recorded, view);
    }

    fn on_activity(&mut self, activity: &Activity) {
        self.0.on_activity(activity);
        self.1.on_activity(activity);
    }

    fn on_wait(&mut self, wait: &Wait) {
        self.0.on_wait(wait);
        self.1.on_wait(wait);
    }

    fn on_notice(&mut self, notice: &Notice) {
        self.0.on_notice(notice);
        self.1.on_notice(notice);
    }
}

impl<R: Reporter + ?Sized> Reporter for Box<R> {
    fn on_earlier(&mut self, events: &[Recorded]) {
        (**self).on_earlier(events);
    }

    fn on_event(&mut self, recorded: &Recorded, view: View<'_>) {
        (**self).on_event(recorded, view);
    }

    fn on_activity(&mut self, activity: &Activity) {
        (**self).on_activity(activity);
    }

    fn on_wait(&mut self, wait: &Wait) {
        (**self).on_wait(wait);
    }

    fn on_notice(&mut self, notice: &Notice) {
        (**self).on_notice(notice);
    }
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

/// How long a menu may take to give the terminal back when it is withdrawn.
pub const WITHDRAWAL: Duration = Duration::from_secs(1);

/// The person at the terminal, if there is one. `ask` and `hurries` block; the engine calls them off
/// the loop.
pub trait Human: Send + Sync {
    /// The process is told to stop: an `ask` under way returns `Interrupted` soon, and so does
    /// each later one. Without it the terminal would stay in the menu's hands.
    fn withdraw(&self) {}
    /// The question was withdrawn for another reason: the next one may be asked.
    fn come_back(&self) {}
    fn ask(&self, story: &Story, question: &Escalation, patience: Duration) -> Asked;
    /// While the run waits: true as soon as the human wants it to try now. False when nobody can
    /// say so, and soon after the wait is `over`.
    fn hurries(&self, over: &AtomicBool) -> bool {
        let _ = over;
        false
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Answered(Answer),
    /// No key was pressed for as long as the human was given.
    NobodyThere,
    /// Ctrl-C in the menu.
    Interrupted,
}
