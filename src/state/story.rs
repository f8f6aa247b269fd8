//! The state of one story.

use std::collections::BTreeSet;

use crate::model::{
    AttemptReason, Base, Cause, ChangeKind, Concern, ContextUsage, Escalation, EvidenceItem,
    Handoff, HandoffTrigger, HeldChange, Usage, Usd,
};
use crate::state::stagnation::Stagnation;
use crate::state::work::Work;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoryState {
    /// Its title at the last attempt, to recognize the story in another backlog.
    pub title: String,
    /// The iteration number of its last attempt.
    pub iteration: u32,
    pub stage: Stage,
    pub work: Work,
    /// The branch tip as its last attempt, or the gates of its claim, left it.
    pub head: Option<String>,
    /// A base, and what the story's changes are counted from: the same with what gates wrote.
    pub counted: Option<(Base, Base)>,
    /// The human's guidance, oldest first.
    pub guidance: Vec<String>,
    pub stagnation: Stagnation,
    /// Attempts since the human's last action.
    pub tries: u32,
    /// How often in a row the prompt was too long for the agent.
    pub too_long: u32,
    /// The last attempt's error, for the next one.
    pub last_error: Option<String>,
    /// A message that its last agent could not receive while it ran.
    pub reminder: Option<String>,
    /// Why the next attempt is made, or the one in flight was.
    pub why: AttemptReason,
    /// The last hand-off, and its iteration.
    pub handoff: Option<(u32, Handoff)>,
    /// Why the last agent should have handed over.
    pub triggers: Vec<HandoffTrigger>,
    /// How full the last agent's context was.
    pub context: Option<ContextUsage>,
    /// Stages that were reached.
    pub stages: Vec<String>,
    /// Its first claim was sent back for a second look.
    pub looked_again: bool,
    /// Claims without any change.
    pub unfounded: u32,
    /// How often its work could not be committed because of its content.
    pub unfit: u32,
    /// The commit of its mark that was made ready last: it may be on the branch already.
    pub prepared: Option<String>,
    /// Changes that the human has to decide about. They are not in any work tree.
    pub held: Vec<HeldChange>,
    /// Those that the human accepted and that are not in the work tree yet.
    pub accepted: Vec<HeldChange>,
    /// Changes of files that the human accepted and that are in its work.
    pub wanted: Vec<HeldChange>,
    /// Files whose changes were taken out of its work or put back, and are not accepted.
    pub refused: BTreeSet<String>,
    /// Number of refs of its work.
    pub kept_count: u32,
    /// Failed attempts in a row, since the last success or action of the human.
    pub failed: Vec<FailedAttempt>,
    /// The failed attempts before each fresh start.
    pub failed_before: Vec<FailedAttempt>,
    /// What its attempts cost since the human's last action.
    pub spent: Usd,
    pub totals: StoryTotals,
}

/// A story's figures in this run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoryTotals {
    pub attempts: u32,
    pub elapsed_ms: u64,
    pub usage: Usage,
    pub cost: Usd,
}

/// What the story waits for. Whether an attempt runs is recorded in `state::attempts`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Stage {
    /// The next attempt.
    #[default]
    Open,
    /// The evidence for a claim.
    Claimed(Claim),
    /// The commit of an accepted claim.
    Accepted { claim: Claim, by: Acceptance },
    /// The human's answer, maybe about a claim.
    Asking { question: Question, claim: Option<Claim> },
    /// The commit of its skip mark.
    Skipping,
    /// Nothing: its work is committed.
    Closed { commit: String },
    /// Nothing: the human skipped it.
    Skipped,
}

/// An agent's statement that the story is complete.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    pub attempt: String,
    pub iteration: u32,
    /// The gates' results.
    pub evidence: Vec<EvidenceItem>,
    /// What the story's changes were counted from.
    pub counted: Option<Base>,
    /// The branch tip and the work tree that the gates saw.
    pub checked: Option<Base>,
    /// A gate that failed at the story's base and passes now.
    pub turned_green: Option<String>,
    /// Changes that a human must see before it counts.
    pub concerns: Vec<Concern>,
    /// The human accepted it, if its gates pass again.
    pub accepted: Option<Acceptance>,
    /// The human accepted changes of what it is measured by.
    pub is_seen: bool,
    /// How often in a row the branch moved while its gates ran.
    pub outdated: u32,
    /// No agent made it, but the trailers of this commit: the journal that had its end was lost.
    pub confirms: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The evidence confirms the claim.
    Evidence,
    /// `as_it_is`: committed despite objections to its content.
    Human { as_it_is: bool },
}

/// A failed attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedAttempt {
    pub error: String,
    /// The ref of its work, if there was any.
    pub reference: Option<String>,
    /// How much it changed.
    pub changes: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub escalation: Escalation,
    /// No answer came in this run.
    pub parked: bool,
}

impl Stage {
    pub fn claim(&self) -> Option<&Claim> {
        match self {
            Self::Claimed(claim)
            | Self::Accepted { claim, .. }
            | Self::Asking { claim: Some(claim), .. } => Some(claim),
            _ => None,
        }
    }

    pub(super) fn claim_mut(&mut self) -> Option<&mut Claim> {
        match self {
            Self::Claimed(claim)
            | Self::Accepted { claim, .. }
            | Self::Asking { claim: Some(claim), .. } => Some(claim),
            _ => None,
        }
    }

    pub(super) fn take_claim(&mut self) -> Option<Claim> {
        let claim = self.claim_mut().map(std::mem::take);
        *self = Self::Open;
        claim
    }

    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Skipped)
    }

    /// Its claim is not decided yet, and nobody is asked about it.
    pub fn is_claimed(&self) -> bool {
        matches!(self, Self::Claimed(_) | Self::Accepted { .. })
    }
}

impl StoryState {
    pub fn question(&self) -> Option<&Question> {
        if let Stage::Asking { question, .. } = &self.stage { Some(question) } else { None }
    }

    pub fn base(&self) -> Option<&Base> {
        self.work.in_lane().map(|work| &work.base)
    }

    /// What its changes are counted from.
    pub fn counted(&self) -> Option<&Base> {
        let base = self.base()?;
        let known = self.counted.as_ref().filter(|(of, _)| of == base);
        Some(known.map_or(base, |(_, counted)| counted))
    }

    /// The human accepted a change of the backlog that is not in the file yet.
    pub fn awaits_backlog(&self) -> bool {
        self.accepted.iter().any(|change| change.of == ChangeKind::Backlog)
    }

    /// Changes of files that the human accepted and that are not in its work yet.
    pub fn accepted_files(&self) -> Vec<HeldChange> {
        let accepted = self.accepted.iter().filter(|change| change.of == ChangeKind::File);
        accepted.cloned().collect()
    }

    pub fn is_unfinished(&self) -> bool {
        !self.stage.is_settled() || self.work.roll_back().is_some()
    }

    /// Its mark is decided, but not confirmed by a commit yet.
    pub fn is_being_settled(&self) -> bool {
        matches!(self.stage, Stage::Accepted { .. } | Stage::Skipping)
    }

    /// Only a commit says that it is closed: the journal that had it was lost.
    pub fn is_to_be_confirmed(&self) -> bool {
        self.stage.claim().is_some_and(|claim| claim.confirms.is_some())
    }

    /// It has something that the next run needs.
    pub fn is_worth_carrying(&self) -> bool {
        let waits = matches!(self.stage, Stage::Asking { .. } | Stage::Skipping);
        let decides = !self.held.is_empty() || !self.accepted.is_empty();
        !self.stage.is_settled()
            && (waits
                || decides
                || self.is_to_be_confirmed()
                || self.work != Work::None
                || !self.guidance.is_empty())
    }

    /// Failed attempts in a row.
    pub fn failures(&self) -> u32 {
        u32::try_from(self.failed.len()).unwrap_or(u32::MAX)
    }

    /// Refs of its work that may still be needed.
    pub fn refs(&self) -> impl Iterator<Item = &String> {
        let failed = self.failed_before.iter().chain(&self.failed);
        let failed = failed.filter_map(|failed| failed.reference.as_ref());
        self.work.shelved().into_iter().chain(self.work.conflicting()).chain(failed)
    }

    pub(super) fn pay(&mut self, counted: Usd) {
        self.spent += counted;
        self.totals.cost += counted;
    }

    pub(super) fn fail(&mut self, error: &str) {
        self.last_error = Some(error.to_owned());
        self.failed.push(FailedAttempt { error: error.to_owned(), ..FailedAttempt::default() });
    }

    pub(super) fn keep(&mut self, reference: &str, changes: Option<&String>) {
        self.kept_count += 1;
        if let Some(last) = self.failed.last_mut() {
            last.reference = Some(reference.to_owned());
            last.changes = changes.cloned();
        }
    }

    pub(super) fn rolled_back(&mut self, reference: Option<&String>) {
        let Some(done) = self.work.in_lane_mut().and_then(|work| work.roll_back.take()) else {
            return;
        };
        // Its work is no longer in the tree.
        self.handoff = None;
        if done.why == Cause::FreshStart {
            self.kept_count += u32::from(reference.is_some());
            self.failed_before.append(&mut self.failed);
            self.stages.clear();
            self.looked_again = false;
            self.why = self.why.without_its_work();
        } else if let Some(reference) = reference {
            self.keep(reference, None);
        }
        self.head = done.to.commit;
    }

    /// Its work leaves its lane; work shelved earlier stays, unless there is a newer ref. A question
    /// or a skip is still to be decided, and a claim that stands too.
    pub(super) fn leave_lane(&mut self, reference: Option<&String>, claimed: bool) {
        let earlier = || self.work.shelved().or_else(|| self.work.conflicting());
        let shelved = reference.or_else(earlier).cloned();
        self.work = shelved.map_or(Work::None, Work::Shelved);
        self.kept_count += u32::from(reference.is_some());
        if !claimed && !matches!(self.stage, Stage::Asking { .. } | Stage::Skipping) {
            self.stage = Stage::Open;
        }
    }

    /// The claim is rejected; the next attempt gets the error.
    pub(super) fn refuse(&mut self, error: &str, fingerprint: &str, why: AttemptReason) {
        self.why = why;
        self.stage = Stage::Open;
        self.fail(error);
        self.stagnation.failed(fingerprint);
    }

    /// The human acted: counters start again.
    pub(super) fn forgive(&mut self) {
        self.unfounded = 0;
        self.unfit = 0;
        self.stagnation = Stagnation::default();
        self.failed.clear();
        self.tries = 0;
        self.too_long = 0;
        self.spent = Usd::ZERO;
    }

    pub(super) fn settled(&mut self, stage: Stage) {
        *self = Self {
            stage,
            title: std::mem::take(&mut self.title),
            iteration: self.iteration,
            totals: std::mem::take(&mut self.totals),
            ..Self::default()
        };
    }

    pub(super) fn carried_over(self) -> Self {
        Self {
            tries: 0,
            too_long: 0,
            stagnation: Stagnation::default(),
            failed: Vec::new(),
            totals: StoryTotals::default(),
            ..self
        }
    }
}
