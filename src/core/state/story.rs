//! What is known of one story.

use crate::core::event::{Base, Cause, Usage};
use crate::core::evidence::{Concern, Item};
use crate::core::handoff::{Context, Trigger};
use crate::core::money::Usd;
use crate::core::rut::Signs;
use crate::core::signal::{Escalation, Handoff};
use crate::core::why;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoryState {
    /// Its title at the last attempt: another title is another story.
    pub title: String,
    pub base: Option<Base>,
    /// The branch tip as its last attempt left it.
    pub head: Option<String>,
    pub question: Option<Question>,
    /// What the human said about it so far, oldest first.
    pub guidance: Vec<String>,
    /// What speaks for a rut.
    pub signs: Signs,
    /// Attempts since the human last had a say in it.
    pub tries: u32,
    /// How often in a row the prompt was too long for the agent.
    pub too_long: u32,
    /// What went wrong in the last attempt, for the next one.
    pub last_error: Option<String>,
    /// What its last agent could not be told while it worked.
    pub reminder: Option<String>,
    /// Why the next attempt is made; of one in flight, why it was.
    pub why: why::Why,
    /// What the last agent that said so left for the next, and its iteration.
    pub handoff: Option<(u32, Handoff)>,
    /// Why the last agent should have handed over.
    pub triggers: Vec<Trigger>,
    /// How full the last agent's context was.
    pub context: Option<Context>,
    /// Stages that were reached.
    pub stages: Vec<String>,
    /// It was claimed once, and sent back for a second look.
    pub looked_again: bool,
    /// Where its set-aside work is kept.
    pub set_aside: Option<String>,
    /// Where work is kept that could not be brought back.
    pub does_not_fit: Option<String>,
    /// The attempt whose claim is not decided yet.
    pub claim: Option<String>,
    /// What was found out about it.
    pub evidence: Vec<Item>,
    /// What its last attempt changed that a human should see before a claim counts.
    pub concerns: Vec<Concern>,
    /// How often it was claimed with nothing to show for it.
    pub unfounded: u32,
    /// How often its work could not be committed for what is in it.
    pub unfit: u32,
    /// The human said that the claim is true.
    pub accepted: bool,
    /// The human wants it committed, whatever speaks against it.
    pub as_it_is: bool,
    /// Its criteria when its work began, as the human had them.
    pub criteria: Option<Vec<String>>,
    /// How many refs there are of its work.
    pub kept_count: u32,
    /// Failed attempts in a row, since anything else came of one or the human had a say.
    pub row: Vec<Tried>,
    /// The rows before, after each of which it started over.
    pub tried: Vec<Tried>,
    /// Where branch and tree are going back to.
    pub returning: Option<Return>,
    /// An accepted claim whose commit is not confirmed yet.
    pub closing: Option<String>,
    pub skip_wanted: bool,
    pub result: StoryResult,
    /// What its attempts count as, since the human last had a say in it.
    pub spent: Usd,
    /// This run's figures.
    pub attempts: u32,
    pub elapsed_ms: u64,
    pub usage: Usage,
    pub cost: Usd,
}

/// A failed attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    pub error: String,
    /// Where its work is kept, if there was any.
    pub reference: Option<String>,
    /// How much that is.
    pub changes: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    pub to: Base,
    pub why: Cause,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub escalation: Escalation,
    /// Nobody answered in this run.
    pub parked: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum StoryResult {
    #[default]
    Open,
    Closed {
        commit: String,
    },
    Skipped,
}

impl StoryState {
    /// Its mark is decided, and the commit that says so is not confirmed yet.
    pub fn is_being_settled(&self) -> bool {
        self.closing.is_some() || self.skip_wanted
    }

    /// Something about it must not be forgotten when a run ends.
    pub fn is_worth_carrying(&self) -> bool {
        self.result == StoryResult::Open
            && (self.question.is_some()
                || self.skip_wanted
                || self.base.is_some()
                || self.set_aside.is_some()
                || !self.guidance.is_empty())
    }

    pub(super) fn pay(&mut self, counted: Usd) {
        self.spent += counted;
        self.cost += counted;
    }

    pub(super) fn fail(&mut self, error: &str) {
        self.last_error = Some(error.to_owned());
        self.row.push(Tried { error: error.to_owned(), ..Tried::default() });
    }

    pub(super) fn keep(&mut self, reference: &str, changes: Option<&String>) {
        self.kept_count += 1;
        if let Some(last) = self.row.last_mut() {
            last.reference = Some(reference.to_owned());
            last.changes = changes.cloned();
        }
    }

    pub(super) fn finish_return(&mut self, reference: Option<&String>) {
        let Some(done) = self.returning.take() else { return };
        // What it speaks of is not in the tree any more.
        self.handoff = None;
        if done.why == Cause::FreshStart {
            self.kept_count += u32::from(reference.is_some());
            self.tried.append(&mut self.row);
            self.stages.clear();
            self.looked_again = false;
            self.why = self.why.without_its_work();
        } else if let Some(reference) = reference {
            self.keep(reference, None);
        }
        self.head = done.to.commit;
    }

    pub(super) fn carried_over(self) -> Self {
        Self {
            attempts: 0,
            tries: 0,
            too_long: 0,
            elapsed_ms: 0,
            usage: Usage::default(),
            signs: Signs::default(),
            cost: Usd::ZERO,
            row: Vec::new(),
            ..self
        }
    }
}
