//! What attempts use and cost.

use serde::{Deserialize, Serialize};

use super::money::Usd;

/// What an attempt used, as reported by the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// None: not reported.
    pub cost_usd: Option<f64>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub turns: u64,
    /// Including sub-agents.
    pub tool_calls: u64,
}

impl Usage {
    pub fn add(&mut self, other: &Self) {
        if let Some(cost) = other.cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.turns = self.turns.saturating_add(other.turns);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
    }
}

/// What an attempt costs, as far as budgets are concerned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptCost {
    /// What it counts as: what the agent reports, else an estimate. None in older journals.
    pub counted: Option<Usd>,
    /// A subscription pays, not the dollar. None: unknown.
    pub subscription: Option<bool>,
    pub models: Vec<ModelUse>,
}

impl AttemptCost {
    pub fn counted(&self, usage: &Usage) -> Usd {
        self.counted.or(usage.cost_usd.map(Usd::of)).unwrap_or_default()
    }
}

/// One model's part of an attempt, sub-agents included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUse {
    pub model: String,
    #[serde(default)]
    pub cost: Usd,
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    #[serde(default)]
    pub cache_read_tokens: u64,
    #[serde(default)]
    pub cache_write_tokens: u64,
}

/// How much of an attempt's cost is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostCertainty {
    /// The agent reported it at its end.
    Whole,
    /// The agent was ended before it could report all of it.
    Part,
    /// No request was made.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_figures_of_an_agent_do_not_overflow() {
        let absurd = Usage { input_tokens: u64::MAX, turns: u64::MAX, ..Usage::default() };
        let mut sum = absurd.clone();
        sum.add(&absurd);
        assert_eq!(sum, absurd);
    }
}
