//! How much of earlier attempts goes into a prompt.

/// Entries kept of each kind, whatever the settings.
pub const MOST_KEPT: usize = 20;
/// In characters.
pub const LONGEST_KEPT: usize = 2000;

/// How much of it goes into a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    pub outcomes: usize,
    pub errors: usize,
    pub worked: usize,
    /// Characters of one entry.
    pub entry: usize,
    /// Characters of all of them.
    pub total: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { outcomes: 5, errors: 5, worked: 3, entry: 500, total: 5000 }
    }
}
