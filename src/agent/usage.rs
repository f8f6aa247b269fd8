//! What an attempt used so far, and how sure that is.

use std::collections::VecDeque;

use crate::model::{ContextUsage, CostCertainty, ModelUse, Usage};

use super::event::{AgentEnd, RequestUsage, UsageUpdate};

/// Messages that may come in pieces at the same time: the main agent's and those of sub-agents.
const MAX_AT_ONCE: usize = 32;

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
    /// When the agent last said something, and of the model that said it.
    context: ContextUsage,
}

impl Consumption {
    pub fn add(&mut self, update: UsageUpdate) {
        self.tool_calls += update.tool_calls;
        self.subscription = update.subscription.or(self.subscription);
        self.context.used = update.context.unwrap_or(self.context.used);
        let is_new = |request: &RequestUsage| !self.answered.contains(&request.message);
        if let Some(request) = update.request.filter(is_new) {
            self.sent.add(&request.usage);
            self.answered.push_back(request.message);
            if self.answered.len() > MAX_AT_ONCE {
                self.answered.pop_front();
            }
        }
    }

    pub fn end_turn(&mut self, end: AgentEnd) {
        self.stated = Some(end.usage);
        self.models = end.models;
        self.context.window = end.window;
    }

    /// None: the agent did not say.
    pub fn context(&self) -> Option<ContextUsage> {
        (self.context.used > 0 && self.context.window > 0).then_some(self.context)
    }

    /// Without a result, what was seen must do.
    pub fn usage(&self) -> Usage {
        let used = self.stated.as_ref().unwrap_or(&self.sent);
        Usage { tool_calls: self.tool_calls, ..used.clone() }
    }

    /// `in_turn`: a turn began whose result never came.
    pub fn certainty(&self, in_turn: bool) -> CostCertainty {
        match (&self.stated, in_turn) {
            (Some(_), false) => CostCertainty::Whole,
            (_, true) => CostCertainty::Part,
            // No request is made before it says that it begins.
            (None, false) => CostCertainty::Nothing,
        }
    }
}
