//! What an attempt left that tells progress from stagnation.

use serde::{Deserialize, Serialize};

/// What an attempt left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    /// Tree, branch or story differ from before it. None: not checked.
    #[serde(default)]
    pub changed: Option<bool>,
    /// The branch has new commits.
    #[serde(default)]
    pub committed: bool,
    /// It changed only tests.
    #[serde(default)]
    pub only_tests: bool,
    /// The end of its final text, normalised for comparison.
    #[serde(default)]
    pub said: String,
    /// Similarity to the closest of the story's last five texts, from 0 to 1.
    #[serde(default)]
    pub likeness: f64,
}
