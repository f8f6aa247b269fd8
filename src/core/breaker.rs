//! The run's breaker: a pause when it is not one story that fails.
//!
//! Closed, the run goes on. It opens when two different stories in a row end in a rut, or when five
//! agents in a row break down; then the run pauses. After the pause one iteration is let through
//! (half-open): when it comes to something the breaker closes, else the run stops. Whatever the
//! human does closes it.

use super::id::StoryId;

/// Agents in a row that broke down.
pub const BREAKDOWNS: u32 = 5;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Breaker {
    pub phase: Phase,
    /// The story that ended in a rut last, when nothing better came after it.
    rut: Option<StoryId>,
    /// And the one before it, when that was another one.
    before: Option<StoryId>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Phase {
    #[default]
    Closed,
    /// The run pauses until then (milliseconds since the Unix epoch).
    Open { why: String, until: i64 },
    /// One iteration is let through, or under way.
    HalfOpen { why: String },
    /// It came to nothing too.
    Failed { why: String },
}

impl Breaker {
    /// Why it has to open, if it has.
    pub fn is_due(&self, breakdowns: u32) -> Option<String> {
        if self.phase != Phase::Closed {
            return None;
        }
        if let (Some(before), Some(rut)) = (&self.before, &self.rut) {
            return Some(format!("two stories in a row got nowhere, {before} and {rut}"));
        }
        (breakdowns >= BREAKDOWNS).then(|| format!("{breakdowns} agents in a row broke down"))
    }

    pub fn open(&mut self, why: &str, until: i64) {
        let phase = Phase::Open { why: why.to_owned(), until };
        *self = Self { phase, ..Self::default() };
    }

    pub fn let_through(&mut self) {
        if let Phase::Open { why, .. } = &self.phase {
            self.phase = Phase::HalfOpen { why: why.clone() };
        }
    }

    pub fn ended_in_a_rut(&mut self, story: &StoryId) {
        let before = self.rut.replace(story.clone());
        self.before = before.filter(|before| before != story);
    }

    /// A story ended in another way than in a rut.
    pub fn ended_otherwise(&mut self) {
        (self.rut, self.before) = (None, None);
    }

    /// An iteration came to something.
    pub fn succeed(&mut self) {
        if matches!(self.phase, Phase::HalfOpen { .. }) {
            *self = Self::default();
        }
    }

    /// An iteration came to nothing.
    pub fn fail(&mut self) {
        if let Phase::HalfOpen { why } = &self.phase {
            self.phase = Phase::Failed { why: why.clone() };
        }
    }
}
