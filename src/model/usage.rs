//! What attempts used, as reported by the agent.

use serde::{Deserialize, Serialize};

/// What an attempt used, as reported by the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// None: not reported.
    pub cost_usd: Option<f64>,
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    #[serde(default)]
    pub cache_read_tokens: u64,
    #[serde(default)]
    pub cache_write_tokens: u64,
    #[serde(default)]
    pub turns: u64,
    /// Including sub-agents.
    #[serde(default)]
    pub tool_calls: u64,
}

impl Usage {
    pub fn add(&mut self, other: &Self) {
        if let Some(cost) = other.cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.turns += other.turns;
        self.tool_calls += other.tool_calls;
    }
}
