//! Steps against a stuck agent: remind it, ask the human, terminate it.
//!
//! Times exclude machine sleep.

use std::time::Duration;

use crate::model::{Answer, Escalation, EscalationKind, Event, NudgedBy, StoryId};
use crate::state::Stage;

/// Numbers of the question's options.
pub const MORE_TIME: usize = 1;
pub const HAND_OVER: usize = 2;
const MINUTE: u64 = 60;

/// When each step is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StuckPolicy {
    /// Time without progress; None: not checked.
    pub stuck_after: Option<Duration>,
    /// From the reminder to the question.
    pub ask_after: Duration,
    /// From the question to the end.
    pub answer: Duration,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StuckStep {
    Nudge,
    Ask,
    Terminate,
}

/// The steps taken for one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StuckTracker {
    /// The last progress, or when the human gave it more time.
    since: Duration,
    last: Option<(StuckStep, Duration)>,
}

impl StuckTracker {
    pub fn due(&self, awake: Duration, patience: &StuckPolicy) -> Option<StuckStep> {
        let over = |from: Duration, limit: Duration| awake.saturating_sub(from) >= limit;
        match self.last {
            None => over(self.since, patience.stuck_after?).then_some(StuckStep::Nudge),
            Some((StuckStep::Nudge, at)) => over(at, patience.ask_after).then_some(StuckStep::Ask),
            Some((StuckStep::Ask, at)) => over(at, patience.answer).then_some(StuckStep::Terminate),
            Some((StuckStep::Terminate, _)) => None,
        }
    }

    /// It made progress, or the human gives it more time: start again.
    pub fn reset(&mut self, awake: Duration) {
        if !matches!(self.last, Some((StuckStep::Terminate, _))) {
            *self = Self { since: awake, last: None };
        }
    }

    pub fn take(&mut self, step: StuckStep, awake: Duration) {
        self.last = Some((step, awake));
    }

    pub fn is_clear(&self) -> bool {
        self.last.is_none()
    }
}

pub fn minutes(busy: Duration) -> u64 {
    busy.as_secs() / MINUTE
}

pub fn reminder(story: &StoryId, busy: Duration) -> String {
    format!(
        "This attempt at {story} has been running for {} minutes, and nothing in the work tree \
         changed for a long time. Go back to the story and its criteria. If it is done, check it \
         and say so. If you cannot make progress, stop and escalate with a question.",
        minutes(busy)
    )
}

pub fn question(agent: &str, busy: Duration) -> Escalation {
    let summary = format!("{agent} is running but not making progress");
    let context = format!(
        "It has been running for {} minutes. It prints output, but nothing in the work tree changed \
         for a long time, and a reminder did not help.",
        minutes(busy)
    );
    let options = [
        "Give it more time",
        "Hand over: end it, keep its work, and let a fresh agent continue",
        "End it and park the story until the next run",
    ];
    let (kind, options) = (EscalationKind::Stuck, options.map(str::to_owned).to_vec());
    Escalation { kind, summary, context, options, question: "What now?".to_owned(), unread: None }
}

pub fn given_up(busy: Duration) -> Escalation {
    let summary = "you ended the agent because it made no progress".to_owned();
    let context = format!("It had been running for {} minutes.", minutes(busy));
    let question = "How should the story continue?".to_owned();
    let (kind, options) = (EscalationKind::Stuck, Vec::new());
    Escalation { kind, summary, context, options, question, unread: None }
}

/// What an answer means that came after the attempt's end, and is about the story. Guidance is for the
/// next attempt and undoes nothing; what is decided or settled stays.
pub fn late_answer(story: StoryId, stage: &Stage, answer: Answer) -> Option<Event> {
    match (answer, stage) {
        (
            Answer::Guidance { text },
            Stage::Claimed(_) | Stage::Accepted { .. } | Stage::Asking { .. },
        ) => Some(Event::Nudged { story, text, by: NudgedBy::Human, delivered: false }),
        (answer @ Answer::Abort, _)
        | (answer @ Answer::Skip, Stage::Claimed(_) | Stage::Asking { .. })
        | (answer @ (Answer::Skip | Answer::Guidance { .. }), Stage::Open) => {
            Some(Event::QuestionAnswered { story, answer })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::samples::{escalation, id};
    use crate::state::{Acceptance, Claim, Question};

    #[test]
    fn a_late_answer_undoes_nothing_that_is_decided() {
        let question = Question { escalation: escalation("which?"), parked: false };
        let accepted = Stage::Accepted { claim: Claim::default(), by: Acceptance::Evidence };
        let guidance = || Answer::Guidance { text: "so".into() };
        let answered = |answer| Some(Event::QuestionAnswered { story: id("A"), answer });
        let (text, by) = ("so".to_owned(), NudgedBy::Human);
        let kept = Some(Event::Nudged { story: id("A"), text, by, delivered: false });
        let (skipped, guided) = (answered(Answer::Skip), answered(guidance()));
        for (stage, skip, guide) in [
            (Stage::Open, &skipped, &guided),
            (Stage::Claimed(Claim::default()), &skipped, &kept),
            (Stage::Asking { question, claim: None }, &skipped, &kept),
            (accepted, &None, &kept),
            (Stage::Skipping, &None, &None),
            (Stage::Closed { commit: "c".into() }, &None, &None),
            (Stage::Skipped, &None, &None),
        ] {
            let means = |answer| late_answer(id("A"), &stage, answer);
            assert_eq!(means(Answer::Skip), *skip, "{stage:?}");
            assert_eq!(means(guidance()), *guide, "{stage:?}");
            assert_eq!(means(Answer::Abort), answered(Answer::Abort), "{stage:?}");
            for about_the_agent in [Answer::Retry, Answer::Accept] {
                assert_eq!(means(about_the_agent), None, "{stage:?}");
            }
        }
    }

    fn minutes(count: u64) -> Duration {
        Duration::from_mins(count)
    }

    fn patience() -> StuckPolicy {
        StuckPolicy { stuck_after: Some(minutes(30)), ask_after: minutes(10), answer: minutes(15) }
    }

    #[test]
    fn a_reminder_a_question_an_end() {
        let patience = patience();
        let mut tracker = StuckTracker::default();
        for (at, step) in [(30, StuckStep::Nudge), (40, StuckStep::Ask), (55, StuckStep::Terminate)]
        {
            let before = minutes(at) - Duration::from_millis(1);
            assert_eq!(tracker.due(before, &patience), None, "{at}");
            assert_eq!(tracker.due(minutes(at), &patience), Some(step), "{at}");
            tracker.take(step, minutes(at));
            assert!(!tracker.is_clear());
        }
        assert_eq!(tracker.due(minutes(10_000), &patience), None, "once is enough");
        tracker.reset(minutes(56));
        assert_eq!(tracker.due(minutes(10_000), &patience), None, "it is ended already");
    }

    #[test]
    fn progress_and_more_time_begin_anew() {
        let patience = patience();
        for step in [None, Some(StuckStep::Nudge), Some(StuckStep::Ask)] {
            let mut tracker = StuckTracker::default();
            if let Some(step) = step {
                tracker.take(step, minutes(31));
            }
            tracker.reset(minutes(35));
            assert!(tracker.is_clear(), "{step:?}");
            assert_eq!(tracker.due(minutes(64), &patience), None, "{step:?}");
            assert_eq!(tracker.due(minutes(65), &patience), Some(StuckStep::Nudge), "{step:?}");
        }
    }

    #[test]
    fn it_can_be_switched_off() {
        let patience = StuckPolicy { stuck_after: None, ..patience() };
        assert_eq!(StuckTracker::default().due(minutes(10_000), &patience), None);
    }
}
