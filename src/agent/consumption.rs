//! What an attempt used so far, and how sure that is.

use std::collections::VecDeque;

use crate::core::event::Usage;
use crate::core::spending::{Known, ModelUse};

/// Messages that may come in pieces at the same time: the main agent's and those of sub-agents.
const MAX_AT_ONCE: usize = 32;

/// What one line tells of it.
#[derive(Debug, Default, PartialEq)]
pub struct Used {
    /// Of sub-agents too.
    pub tool_calls: u64,
    pub sent: Option<Sent>,
    /// A subscription pays for it; false: the dollar does.
    pub subscription: Option<bool>,
}

/// A request to the model. Every block of its answer repeats it.
#[derive(Debug, PartialEq)]
pub struct Sent {
    /// The answer's id.
    pub message: String,
    pub usage: Usage,
}

#[derive(Debug, Default)]
pub struct Consumption {
    /// Of the last result, which counts everything up to it.
    stated: Option<Usage>,
    pub models: Vec<ModelUse>,
    /// What requests sent, as far as their answers began.
    sent: Usage,
    answered: VecDeque<String>,
    tool_calls: u64,
    pub subscription: Option<bool>,
}

impl Consumption {
    pub fn note(&mut self, used: Used) {
        self.tool_calls += used.tool_calls;
        self.subscription = used.subscription.or(self.subscription);
        let is_new = |sent: &Sent| !self.answered.contains(&sent.message);
        if let Some(sent) = used.sent.filter(is_new) {
            self.sent.add(&sent.usage);
            self.answered.push_back(sent.message);
            if self.answered.len() > MAX_AT_ONCE {
                self.answered.pop_front();
            }
        }
    }

    pub fn end_turn(&mut self, usage: Usage, models: Vec<ModelUse>) {
        self.stated = Some(usage);
        self.models = models;
    }

    /// Without a result, what was seen must do.
    pub fn usage(&self) -> Usage {
        let used = self.stated.as_ref().unwrap_or(&self.sent);
        Usage { tool_calls: self.tool_calls, ..used.clone() }
    }

    /// `in_turn`: a turn began whose result never came.
    pub fn known(&self, in_turn: bool) -> Known {
        match (&self.stated, in_turn) {
            (Some(_), false) => Known::Whole,
            (_, true) => Known::Part,
            // No request is made before it says that it begins.
            (None, false) => Known::Nothing,
        }
    }
}
