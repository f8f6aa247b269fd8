//! What becomes of claims: the gates, and what follows from them.

use crate::decide::weigh::{
    Findings, Unfit, Weighed, weigh, weigh_confirmation, weigh_content, weigh_outdated,
};
use crate::model::{Event, EvidenceItem, GateReport, StoryClosed, StoryId};
use crate::runner::dispatcher::Dispatcher;
use crate::runner::effects::{Effects, GatesFound, GatesOf, Integration};
use crate::runner::error::Result;
use crate::state::Stage;

impl<E: Effects> Dispatcher<E> {
    pub(super) fn start_gates(&mut self, of: GatesOf) -> Result<()> {
        match &of {
            GatesOf::Baseline | GatesOf::FirstLook { .. } => self.tasks.baseline = true,
            GatesOf::Claim { story, .. } => {
                self.tasks.checking.insert(story.clone());
            }
        }
        self.effects.run_gates(&mut self.log, of)
    }

    /// None: they were ordered to stop.
    pub(super) fn gates_ended(
        &mut self,
        of: GatesOf,
        items: Option<Vec<EvidenceItem>>,
        found: GatesFound,
    ) -> Result<()> {
        self.effects.gates_are_over(&mut self.log)?;
        match of {
            GatesOf::Baseline => self.baseline_ended(None, items, found),
            GatesOf::FirstLook { story } => self.baseline_ended(Some(story), items, found),
            GatesOf::Claim { story, attempt } => {
                self.tasks.checking.remove(&story);
                self.end_is_over();
                self.effects.refresh(&mut self.log)?;
                let Some(items) = items.filter(|_| self.is_claimed_by(&story, &attempt)) else {
                    return Ok(());
                };
                if self.log.state.story(&story).is_some_and(|known| !known.held.is_empty()) {
                    // The human decides first what it is measured by.
                    return Ok(());
                }
                let follows = self.weigh(&story, &attempt, &items, &found);
                let rejected = matches!(follows, Event::ClaimRejected { .. });
                let GatesFound { counted, checked, turned_green, .. } = found;
                let told = Event::ClaimChecked {
                    attempt,
                    story: story.clone(),
                    items,
                    counted,
                    checked,
                    turned_green,
                };
                self.record(vec![told, follows])?;
                if rejected { self.keep(&story) } else { Ok(()) }
            }
        }
    }

    fn baseline_ended(
        &mut self,
        story: Option<StoryId>,
        items: Option<Vec<EvidenceItem>>,
        found: GatesFound,
    ) -> Result<()> {
        self.tasks.baseline = false;
        self.end_is_over();
        let Some(items) = items else { return Ok(()) };
        let reports: Vec<GateReport> =
            items.into_iter().map(|EvidenceItem::Gate(report)| report).collect();
        self.record(vec![Event::BaselineTaken { reports, at: found.checked, story }])
    }

    /// The human may have decided otherwise during the gates.
    fn is_claimed_by(&self, story: &StoryId, attempt: &str) -> bool {
        let stage = self.log.state.story(story).map(|known| &known.stage);
        let is_its = matches!(stage, Some(Stage::Claimed(claim)) if claim.attempt == attempt);
        is_its && self.is_claimed(story)
    }

    /// Its claim is not decided yet.
    pub(super) fn is_claimed(&self, story: &StoryId) -> bool {
        let known = self.log.state.story(story);
        self.backlog().is_open(story) && known.is_some_and(|known| known.stage.is_claimed())
    }

    pub(super) fn weigh(
        &self,
        id: &StoryId,
        attempt: &str,
        items: &[EvidenceItem],
        found: &GatesFound,
    ) -> Event {
        let known = self.log.state.story(id);
        let claim = known.and_then(|known| known.stage.claim());
        if claim.is_some_and(|claim| claim.confirms.is_some()) {
            return confirm(id, attempt, items);
        }
        let mut concerns = claim.map(|claim| claim.concerns.clone()).unwrap_or_default();
        if claim.is_some_and(|claim| claim.accepted.is_none() && !claim.is_seen) {
            // The story may have been edited during the gates.
            let since = self.concerns_of(id).into_iter();
            concerns.extend(since.filter(|one| !concerns.contains(one)).collect::<Vec<_>>());
        }
        let findings = Findings {
            story: id,
            items,
            changed: found.changed,
            turned_green: found.turned_green.is_some(),
            unfounded: known.map_or(0, |known| known.unfounded),
            concerns: &concerns,
            first_of_two: self.config.is_first_of_two(id, self.backlog(), &self.log.state),
        };
        let story = id.clone();
        match weigh(&findings) {
            Weighed::Accepted => Event::ClosePlanned { attempt: attempt.to_owned(), story },
            Weighed::Rejected { error, fingerprint, unfounded } => {
                Event::ClaimRejected { story, error, fingerprint, unfounded }
            }
            Weighed::LookAgain => Event::SecondLookWanted { story },
            Weighed::Doubtful { question } => Event::QuestionRaised { story, question },
        }
    }

    /// The next attempt gets the error, or the human is asked.
    pub(super) fn unfit(&mut self, id: &StoryId, error: &str, beyond_agent: bool) -> Result<()> {
        let refusals = self.log.state.story(id).map_or(0, |known| known.unfit);
        match weigh_content(id, error, refusals, beyond_agent) {
            Unfit::Told { error } => self.refuse_close(id.clone(), error, true),
            Unfit::Asked { question } => {
                self.record(vec![Event::QuestionRaised { story: id.clone(), question }])
            }
        }
    }

    pub(super) fn refuse_close(
        &mut self,
        story: StoryId,
        error: String,
        unfit: bool,
    ) -> Result<()> {
        self.record(vec![Event::CloseRefused { story: story.clone(), error, unfit }])?;
        self.keep(&story)
    }

    pub(super) fn integrated(&mut self, story: StoryId, how: Integration) -> Result<()> {
        let claim = self.log.state.story(&story).and_then(|known| known.stage.claim());
        let attempt = claim.map(|claim| claim.attempt.clone()).unwrap_or_default();
        let evidence = claim.map(|claim| claim.evidence.clone()).unwrap_or_default();
        let turned_green = claim.and_then(|claim| claim.turned_green.clone());
        let outdated = claim.map_or(0, |claim| claim.outdated);
        match how {
            Integration::Done { commit, change } => {
                let closed = StoryClosed { attempt, story, commit, change: Some(change) };
                self.record(vec![Event::StoryClosed(closed)])
            }
            Integration::NothingChanged => {
                let found = GatesFound { turned_green, ..GatesFound::default() };
                let follows = self.weigh(&story, &attempt, &evidence, &found);
                self.record(vec![follows])
            }
            Integration::Unfit { error, beyond_agent } => self.unfit(&story, &error, beyond_agent),
            Integration::Refused { error } => self.refuse_close(story, error, false),
            Integration::Conflicting => self.conflicts(story),
            Integration::Outdated => match weigh_outdated(&story, outdated + 1) {
                None => self.record(vec![Event::ClaimOutdated { story }]),
                Some(question) => self.record(vec![Event::QuestionRaised { story, question }]),
            },
        }
    }

    pub(super) fn conflicts(&mut self, story: StoryId) -> Result<()> {
        let error = "its work conflicts with the branch".to_owned();
        self.refuse_close(story, error, false)
    }
}

/// Of a story that only a commit calls closed. No attempt is to blame if it is not.
fn confirm(id: &StoryId, attempt: &str, items: &[EvidenceItem]) -> Event {
    let story = id.clone();
    match weigh_confirmation(id, items) {
        Weighed::Rejected { error, .. } => Event::ConfirmationFailed { story, error },
        Weighed::Doubtful { question } => Event::QuestionRaised { story, question },
        Weighed::Accepted | Weighed::LookAgain => {
            Event::ClosePlanned { attempt: attempt.to_owned(), story }
        }
    }
}
