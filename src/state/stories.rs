//! Applies events to stories, and to the marks of the backlog.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    Answer, AttemptEnded, AttemptReason, AttemptStarted, Backlog, ChangeKind, Escalation,
    EscalationKind, Event, HeldChange, HeldKind, NudgedBy, Story, StoryId, Verdict, Violation,
};
use crate::state::story::{Acceptance, Claim, Question, Stage, StoryState};
use crate::state::work::{RollBack, Work};

/// `iteration` is the number of the story's attempt in flight, or of its last one.
pub fn apply(stories: &mut BTreeMap<StoryId, StoryState>, event: &Event, iteration: u32) {
    if let Event::StoryReopened { story, .. } = event {
        stories.remove(story);
        return;
    }
    let Some(id) = event.story() else { return };
    let story = stories.entry(id.clone()).or_default();
    match event {
        Event::AttemptStarted(start) => story.start(start),
        Event::AttemptEnded(end) => story.end(end, iteration),
        Event::AttemptLost { counted, .. } => story.pay(*counted),
        _ if apply_to_claim(story, event) => {}
        _ if apply_to_confirmation(story, event) => {}
        _ if apply_to_question(story, event) => {}
        _ => apply_to_work(story, event),
    }
}

fn apply_to_claim(story: &mut StoryState, event: &Event) -> bool {
    match event {
        Event::ClaimChecked { items, counted, checked, turned_green, .. } => {
            if let Some(claim) = story.stage.claim_mut() {
                claim.evidence.clone_from(items);
                claim.counted.clone_from(counted);
                claim.checked.clone_from(checked);
                claim.turned_green.clone_from(turned_green);
            }
            story.counted = story.base().cloned().zip(counted.clone());
            if let Some(checked) = checked {
                story.head.clone_from(&checked.commit);
            }
        }
        Event::ClaimOutdated { .. } => {
            let accepted = match story.stage {
                Stage::Accepted { by: by @ Acceptance::Human { .. }, .. } => Some(by),
                _ => None,
            };
            let claim = story.stage.take_claim().unwrap_or_default();
            let concerns = if accepted.is_some() { Vec::new() } else { claim.concerns };
            let (evidence, checked, outdated) = (Vec::new(), None, claim.outdated + 1);
            let claim = Claim { evidence, checked, concerns, accepted, outdated, ..claim };
            story.stage = Stage::Claimed(claim);
        }
        Event::ClaimRejected { error, fingerprint, unfounded, .. } => {
            let evidence = story.stage.claim().map_or(&[][..], |claim| &claim.evidence);
            let why = AttemptReason::after_rejection(evidence);
            story.refuse(error, fingerprint, why);
            if *unfounded {
                story.unfounded += 1;
                story.stagnation.unchanged += 1;
            }
        }
        Event::ClosePlanned { attempt, .. } => {
            let (attempt, iteration) = (attempt.clone(), story.iteration);
            let made = Claim { attempt, iteration, ..Claim::default() };
            let claim = story.stage.take_claim().unwrap_or(made);
            let by = claim.accepted.unwrap_or(Acceptance::Evidence);
            story.stage = Stage::Accepted { claim, by };
        }
        Event::CloseRefused { error, unfit, .. } => {
            story.refuse(error, error, AttemptReason::ClaimRejected);
            story.unfit += u32::from(*unfit);
        }
        Event::SecondLookWanted { .. } => {
            story.looked_again = true;
            story.why = AttemptReason::SecondLook;
            story.stage = Stage::Open;
            // The claim may be right, so earlier failures no longer count.
            story.last_error = None;
            story.failed.clear();
        }
        Event::StoryClosed(closed) => {
            story.settled(Stage::Closed { commit: closed.commit.clone() });
        }
        Event::StorySkipped { .. } => story.settled(Stage::Skipped),
        Event::StageReached { stage, .. } => story.stages.push(stage.clone()),
        _ => return false,
    }
    true
}

fn apply_to_confirmation(story: &mut StoryState, event: &Event) -> bool {
    match event {
        Event::ConfirmationWanted { commit, .. } => {
            let confirms = Some(commit.clone());
            story.stage = Stage::Claimed(Claim { confirms, ..Claim::default() });
        }
        Event::ConfirmationFailed { error, .. } => {
            story.stage = Stage::Open;
            story.last_error = Some(error.clone());
        }
        Event::CommitPrepared { commit, .. } => story.prepared = Some(commit.clone()),
        _ => return false,
    }
    true
}

fn apply_to_question(story: &mut StoryState, event: &Event) -> bool {
    match event {
        Event::QuestionRaised { question, .. } => story.ask(question),
        Event::QuestionAnswered { answer, .. } => story.answer(answer),
        Event::StoryParked { .. } => story.set_parked(true),
        Event::ChangesHeld { changes, .. } => {
            changes.iter().for_each(|one| story.hold(one.clone()))
        }
        Event::Repaired { violation: Violation::Held { whose, paths, .. }, .. }
            if !matches!(whose, HeldKind::GitSetup | HeldKind::Instructions) =>
        {
            story.refused.extend(paths.iter().cloned());
        }
        Event::ChangesApplied { applied, refused, .. } => {
            let is_made = |change: &mut HeldChange| applied.contains(&change.path);
            let made: Vec<_> = story.accepted.extract_if(.., is_made).collect();
            made.iter().for_each(|change| _ = story.refused.remove(&change.path));
            story.wanted.extend(made.into_iter().filter(|change| change.of == ChangeKind::File));
            let is_refused = |change: &mut HeldChange| refused.contains(&change.path);
            let again: Vec<_> = story.accepted.extract_if(.., is_refused).collect();
            again.into_iter().for_each(|change| story.hold(change));
        }
        Event::Nudged { text, by, delivered, .. } => match by {
            _ if *delivered => {}
            NudgedBy::Human => story.guidance.push(text.clone()),
            NudgedBy::Driver => story.reminder = Some(text.clone()),
        },
        _ => return false,
    }
    true
}

fn apply_to_work(story: &mut StoryState, event: &Event) {
    match event {
        Event::WorkSetAside { reference, claimed, .. } => {
            story.leave_lane(reference.as_ref(), *claimed);
        }
        Event::WorkLetGo { .. } => story.leave_lane(None, false),
        Event::AttemptKept { reference, changes, .. } => story.keep(reference, Some(changes)),
        Event::ReturnPlanned { to, why, .. } => {
            if let Some(work) = story.work.in_lane_mut() {
                work.roll_back = Some(RollBack { to: to.clone(), why: *why });
            }
        }
        Event::Returned { reference, .. } => story.rolled_back(reference.as_ref()),
        Event::InstructionsPutBack { kept, .. } => story.kept_count += u32::from(kept.is_some()),
        Event::WorkBroughtBack { reference, conflicts, .. } => {
            let conflicting = (!conflicts.is_empty()).then(|| reference.clone());
            if conflicting.is_some() {
                story.why = story.why.without_its_work();
            }
            if let Some(work) = story.work.in_lane_mut() {
                work.unshelving = None;
                work.conflicting = conflicting;
            }
        }
        Event::BaseSet { base, lane, .. } => {
            story.head.clone_from(&base.commit);
            story.work.begin(*lane, base);
        }
        Event::HumanCommitted { rest, .. } => {
            if let Some(work) = story.work.in_lane_mut() {
                work.rest.clone_from(rest);
            }
        }
        Event::UserEditsFound { base, roll_back, rest, .. } => {
            let Some(work) = story.work.in_lane_mut() else { return };
            work.base.clone_from(base);
            work.rest.clone_from(rest);
            if let (Some(planned), Some(to)) = (&mut work.roll_back, roll_back) {
                planned.to.clone_from(to);
            }
        }
        Event::CommitsTaken { head, .. } => story.head.clone_from(head),
        _ => {}
    }
}

impl StoryState {
    fn start(&mut self, start: &AttemptStarted) {
        self.title.clone_from(&start.title);
        self.iteration = start.iteration;
        if self.base().is_none() {
            self.head.clone_from(&start.base.commit);
            self.work = Work::None;
            self.work.begin(start.lane, &start.base);
        }
        self.totals.attempts += 1;
        self.tries += 1;
        self.reminder = None;
        self.prepared = None;
        match &mut self.stage {
            Stage::Asking { claim, .. } => *claim = None,
            stage => *stage = Stage::Open,
        }
    }

    fn end(&mut self, end: &AttemptEnded, iteration: u32) {
        self.pay(end.cost.counted(&end.usage));
        self.stagnation.ended(end);
        if let Some(handoff) = &end.signals.handoff {
            self.handoff = Some((iteration, handoff.clone()));
        }
        self.triggers.clone_from(&end.triggers);
        self.context = end.context;
        self.head.clone_from(&end.head);
        self.totals.elapsed_ms = self.totals.elapsed_ms.saturating_add(end.elapsed_ms);
        self.totals.usage.add(&end.usage);
        self.why = self.why.after(&end.verdict);
        if !end.verdict.is_about_the_work() {
            self.tries = self.tries.saturating_sub(1);
        }
        match &end.verdict {
            Verdict::Interrupted | Verdict::NotTheStory { .. } => {}
            Verdict::PromptTooLong { error } => {
                self.too_long += 1;
                self.last_error = Some(error.clone());
            }
            Verdict::Failed { error, .. } if end.did_nothing() => self.fail(error),
            Verdict::Failed { error, fingerprint } => {
                self.fail(error);
                self.stagnation.failed(fingerprint);
            }
            Verdict::Done => self.claimed(end, iteration),
            Verdict::Progress | Verdict::Escalated { .. } => {
                self.last_error = None;
                self.too_long = 0;
                self.failed.clear();
            }
        }
    }

    /// Keeps a decision that the human made during the attempt.
    fn claimed(&mut self, end: &AttemptEnded, iteration: u32) {
        self.too_long = 0;
        let (attempt, concerns) = (end.attempt.clone(), end.concerns.clone());
        let made = Claim { attempt, iteration, concerns, ..Claim::default() };
        match &mut self.stage {
            Stage::Asking { claim, .. } => *claim = Some(made),
            Stage::Skipping => {}
            stage => *stage = Stage::Claimed(made),
        }
    }

    fn hold(&mut self, change: HeldChange) {
        self.held.retain(|known| known.path != change.path);
        self.refused.insert(change.path.clone());
        self.held.push(change);
    }

    pub(super) fn set_parked(&mut self, parked: bool) {
        if let Stage::Asking { question, .. } = &mut self.stage {
            question.parked = parked;
        }
    }

    fn ask(&mut self, escalation: &Escalation) {
        let claim = self.stage.take_claim();
        let question = Question { escalation: escalation.clone(), parked: false };
        self.stage = Stage::Asking { question, claim };
    }

    fn answer(&mut self, answer: &Answer) {
        self.why = self.why.after_answer(answer);
        // The question stays for the next run.
        if *answer == Answer::Abort {
            return;
        }
        let kind = self.question().map(|question| question.escalation.kind);
        let claim = self.stage.take_claim();
        match answer {
            Answer::Accept if kind == Some(EscalationKind::Change) => {
                self.accepted.append(&mut self.held);
                self.check_again(claim, true);
            }
            Answer::Restore | Answer::Retry if kind == Some(EscalationKind::Change) => {
                self.restored(claim.is_none());
                self.check_again(claim, false);
            }
            Answer::Accept => {
                let as_it_is = kind == Some(EscalationKind::Commit);
                if let Some(claim) = claim {
                    self.stage = Stage::Accepted { claim, by: Acceptance::Human { as_it_is } };
                }
            }
            Answer::Skip => self.stage = Stage::Skipping,
            Answer::Option { number, text } => {
                self.guidance.push(format!("Proceed with option {number}: {text}"));
            }
            Answer::Guidance { text } => self.guidance.push(text.clone()),
            Answer::Restore | Answer::Retry | Answer::Abort => {}
        }
        if kind == Some(EscalationKind::Change) && *answer != Answer::Skip {
            self.restored(true);
        }
        self.forgive();
    }

    /// The claim stands, for the tree as it is now.
    fn check_again(&mut self, claim: Option<Claim>, is_seen: bool) {
        if let Some(Claim { attempt, iteration, confirms, .. }) = claim {
            let claim = Claim { attempt, iteration, is_seen, confirms, ..Claim::default() };
            self.stage = Stage::Claimed(claim);
        }
    }

    /// The changes that the human was asked about are not wanted. `told`: the next attempt is told.
    fn restored(&mut self, told: bool) {
        for change in std::mem::take(&mut self.held).into_iter().filter(|_| told) {
            self.guidance.push(format!("{RESTORED}: {}", change.what));
        }
    }
}

/// For the next agent, before what changed.
const RESTORED: &str = "Work without this change, which the human did not want";

/// The marks of a backlog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub passing: BTreeSet<StoryId>,
    pub skipped: BTreeSet<StoryId>,
}

impl Marks {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::MarksSeen { passing, skipped } => {
                self.passing = passing.iter().cloned().collect();
                self.skipped = skipped.iter().cloned().collect();
            }
            Event::StoryClosed(closed) => _ = self.passing.insert(closed.story.clone()),
            Event::StorySkipped { story, .. } => _ = self.skipped.insert(story.clone()),
            Event::StoryReopened { story, .. } => _ = self.passing.remove(story),
            _ => {}
        }
    }

    pub fn of(backlog: &Backlog) -> Self {
        let ids = |which: fn(&&Story) -> bool| {
            backlog.stories.iter().filter(which).map(|story| story.id.clone()).collect()
        };
        Self { passing: ids(|story| story.passes), skipped: ids(|story| story.skipped) }
    }

    pub fn set(&mut self, story: &StoryId, passes: bool, skipped: bool) {
        for (set, marked) in [(passes, &mut self.passing), (skipped, &mut self.skipped)] {
            _ = if set { marked.insert(story.clone()) } else { marked.remove(story) };
        }
    }

    /// As an event: these are the human's.
    pub fn seen(&self) -> Event {
        Event::MarksSeen {
            passing: self.passing.iter().cloned().collect(),
            skipped: self.skipped.iter().cloned().collect(),
        }
    }

    /// Stories that neither pass nor are skipped.
    pub fn remaining(&self, backlog: &Backlog) -> usize {
        let ids = backlog.stories.iter().map(|story| &story.id);
        ids.filter(|id| !self.passing.contains(*id) && !self.skipped.contains(*id)).count()
    }
}
