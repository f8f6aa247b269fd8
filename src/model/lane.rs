//! Lanes: the work trees that attempts run in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A work tree that one attempt at a time runs in. Lane 0 is the user's own.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct LaneId(pub u32);

impl LaneId {
    pub const HOME: Self = Self(0);

    pub fn is_home(&self) -> bool {
        *self == Self::HOME
    }
}

impl fmt::Display for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
