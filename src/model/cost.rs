//! What one attempt cost.

use serde::{Deserialize, Serialize};

use crate::model::money::Usd;
use crate::model::usage::Usage;

/// What an attempt costs, as far as budgets are concerned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptCost {
    /// What it counts as: what the agent reports, else an estimate. None in older journals.
    #[serde(default)]
    pub counted: Option<Usd>,
    /// A subscription pays, not the dollar. None: unknown.
    #[serde(default)]
    pub subscription: Option<bool>,
    #[serde(default)]
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
    /// Reported by the agent at its end.
    Whole,
    /// It was ended before it could report all of it.
    Part,
    /// No request was made.
    Nothing,
}
