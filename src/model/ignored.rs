//! How much is kept of the human's ignored files.

/// In bytes; None: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredLimits {
    /// Of one file.
    pub file: Option<u64>,
    /// Of all.
    pub total: Option<u64>,
}

impl Default for IgnoredLimits {
    fn default() -> Self {
        Self { file: Some(1_000_000), total: Some(50_000_000) }
    }
}
