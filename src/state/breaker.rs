//! The run's circuit breaker: a pause when more than one story fails.
//!
//! It opens if two different stories in a row stagnate, or five agents in a row break down; then
//! the run pauses. After the pause one iteration runs as a probe (half-open): if it makes progress,
//! the breaker closes; otherwise the run stops. Any action of the human closes it.

use crate::model::{EscalationKind, Event, StoryId, Verdict, Wait, WaitFor};

/// Agents in a row that broke down.
pub const BREAKDOWNS: u32 = 5;
/// Stories in a row that stagnated.
const IN_A_ROW: usize = 2;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Breaker {
    pub phase: BreakerPhase,
    /// The stories that stagnated last, without progress since.
    stagnant: Vec<StoryId>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum BreakerPhase {
    #[default]
    Closed,
    /// The run pauses until then (milliseconds since the Unix epoch).
    Open { why: String, until: i64 },
    /// One iteration may run, or runs.
    HalfOpen { why: String, probe: StoryId },
    /// That iteration failed too.
    Failed { why: String },
}

impl Breaker {
    /// Why it must open, if it must.
    pub fn is_due(&self, breakdowns: u32) -> Option<String> {
        if self.phase != BreakerPhase::Closed {
            return None;
        }
        if let [before, last] = self.stagnant.as_slice() {
            return Some(format!("two stories in a row made no progress ({before}, {last})"));
        }
        (breakdowns >= BREAKDOWNS).then(|| format!("{breakdowns} agents in a row broke down"))
    }

    /// Its pause.
    pub fn wait(&self, now: i64) -> Option<Wait> {
        let BreakerPhase::Open { why, until } = &self.phase else { return None };
        let wait = Wait { what: WaitFor::CoolDown, error: why.clone(), until: *until };
        (now < *until).then_some(wait)
    }

    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AttemptStarted(start) => self.let_through(&start.story),
            Event::AttemptEnded(end) => match &end.verdict {
                Verdict::Progress | Verdict::Escalated { .. } => self.succeed(&end.story),
                Verdict::Failed { .. } => self.fail(&end.story),
                _ => {}
            },
            Event::ClaimRejected { story, .. } | Event::CloseRefused { story, .. } => {
                self.fail(story);
            }
            Event::StoryClosed(closed) => {
                self.succeed(&closed.story);
                self.stagnant.clear();
            }
            Event::QuestionRaised { story, question } => match question.kind {
                EscalationKind::NoProgress => self.stagnated(story),
                _ => self.stagnant.clear(),
            },
            Event::BreakerOpened { why, until } => {
                let phase = BreakerPhase::Open { why: why.clone(), until: *until };
                *self = Self { phase, ..Self::default() };
            }
            _ => {}
        }
    }

    /// The first attempt after the pause is the probe; if it decided nothing, the next one is.
    fn let_through(&mut self, story: &StoryId) {
        if let BreakerPhase::Open { why, .. } | BreakerPhase::HalfOpen { why, .. } = &self.phase {
            self.phase = BreakerPhase::HalfOpen { why: why.clone(), probe: story.clone() };
        }
    }

    fn stagnated(&mut self, story: &StoryId) {
        self.stagnant.retain(|known| known != story);
        self.stagnant.push(story.clone());
        if self.stagnant.len() > IN_A_ROW {
            self.stagnant.remove(0);
        }
    }

    /// The probe made progress.
    fn succeed(&mut self, story: &StoryId) {
        if matches!(&self.phase, BreakerPhase::HalfOpen { probe, .. } if probe == story) {
            *self = Self::default();
        }
    }

    fn fail(&mut self, story: &StoryId) {
        if let BreakerPhase::HalfOpen { why, probe } = &self.phase
            && probe == story
        {
            self.phase = BreakerPhase::Failed { why: why.clone() };
        }
    }
}
