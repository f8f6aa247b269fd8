//! What an attempt left that tells a rut from progress.

use crate::core::event::AttemptStarted;
use crate::core::likeness::{most_alike, normalised};
use crate::core::outcome::Outcome;
use crate::core::rut::Traces;
use crate::core::signal::Signals;
use crate::core::test_paths::is_test;
use crate::core::weather::Trouble;
use crate::git::Difference;

use super::Engine;
use super::error::EngineError;
use super::start::UnderWay;

impl Engine {
    /// What differs from before the attempt. Looking at a large tree takes its time: not for what
    /// says nothing about the story, and not for a claim that is decided by its own commit.
    pub(super) fn look_at_changes(
        &self,
        started: &AttemptStarted,
        signals: &Signals,
        outcome: &Outcome,
        under_way: Option<&UnderWay>,
    ) -> Result<Option<Difference>, EngineError> {
        let says_nothing = matches!(outcome, Outcome::EndedByUs | Outcome::PromptTooLong { .. })
            || Trouble::of(outcome).is_some();
        let plain = *outcome == Outcome::Completed
            && signals.claims_story
            && self.is_plain_claim(&started.story, false);
        let Some(under_way) = under_way else { return Ok(None) };
        if says_nothing || plain || signals.escalation.is_some() {
            return Ok(None);
        }
        Ok(Some(self.parts.tree.difference_since(&under_way.before)?))
    }

    pub(super) fn traces(
        &self,
        started: &AttemptStarted,
        outcome: &Outcome,
        difference: Option<&Difference>,
        final_text: &str,
        under_way: Option<&UnderWay>,
    ) -> Traces {
        let said = match outcome {
            Outcome::Completed => normalised(final_text),
            _ => String::new(),
        };
        let known = self.state.story(&started.story);
        let before = known.map(|known| &known.signs.said).into_iter().flatten();
        let likeness = most_alike(&said, before);
        let Some(difference) = difference else {
            return Traces { said, likeness, ..Traces::default() };
        };
        // What an agent does to its own marks is put back: that is no work.
        let backlog = self.orders.backlog_in_tree.as_ref();
        let work = || difference.paths.iter().filter(|path| Some(*path) != backlog);
        let story_changed = under_way.is_some_and(|under_way| self.is_other_story(under_way));
        let has_work = difference.committed || work().next().is_some();
        let only_tests =
            work().next().is_some() && work().all(|path| is_test(&path.to_string_lossy()));
        Traces {
            changed: Some(has_work || story_changed),
            committed: difference.committed,
            only_tests,
            said,
            likeness,
        }
    }

    fn is_other_story(&self, under_way: &UnderWay) -> bool {
        let Some(now) = self.parts.backlog.current().story(&under_way.story.id) else {
            return true;
        };
        let before = &under_way.story;
        (&now.title, &now.description, &now.criteria)
            != (&before.title, &before.description, &before.criteria)
    }
}
