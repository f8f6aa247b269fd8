//! Names of stories and lanes.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::{NoContext, Timestamp, Uuid};

/// The longest id a story may have.
const MAX_LEN: usize = 64;

/// A story's id: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, without `..` and not
/// ending in `.lock`, so that it can be part of a ref and a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct StoryId(String);

/// Why a text is not a story id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a story id has 1 to {MAX_LEN} letters, digits, `.`, `_` or `-`, starts with a letter or \
     digit, has no `..` and does not end in `.` or `.lock`"
)]
pub struct BadStoryId;

impl StoryId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for StoryId {
    type Error = BadStoryId;

    fn try_from(text: String) -> Result<Self, BadStoryId> {
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        let fits_in_a_ref =
            !text.contains("..") && !text.ends_with(".lock") && !text.ends_with('.');
        let is_valid = starts_well && is_plain && fits_in_a_ref && text.len() <= MAX_LEN;
        is_valid.then_some(Self(text)).ok_or(BadStoryId)
    }
}

impl TryFrom<&str> for StoryId {
    type Error = BadStoryId;

    fn try_from(text: &str) -> Result<Self, BadStoryId> {
        Self::try_from(text.to_owned())
    }
}

impl std::str::FromStr for StoryId {
    type Err = BadStoryId;

    fn from_str(text: &str) -> Result<Self, BadStoryId> {
        Self::try_from(text)
    }
}

impl fmt::Display for StoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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

/// A UUIDv7 of this time, in nanoseconds since the Unix epoch; there is none of a time before.
pub fn unique_id(now: i128) -> String {
    const SECOND: i128 = 1_000_000_000;
    let seconds = u64::try_from(now.div_euclid(SECOND)).unwrap_or_default();
    let rest = u32::try_from(now.rem_euclid(SECOND)).unwrap_or_default();
    Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, rest)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_that_fit_in_a_ref_are_accepted() {
        for good in ["US-001", "a", "7", "a.b_c-d", &"x".repeat(MAX_LEN)] {
            assert!(StoryId::try_from(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-a",
            ".a",
            "_a",
            "a b",
            "a/b",
            "../x",
            "a..b",
            "a.lock",
            "a.",
            "ü",
            "a\n",
            "a\0",
            &"x".repeat(MAX_LEN + 1),
        ] {
            assert!(StoryId::try_from(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_id_is_whole_and_new_whatever_the_clock_says() {
        for now in [i128::MIN, -1, 0, 1_800_000_000_000_000_000, i128::MAX] {
            let (one, other) = (unique_id(now), unique_id(now));
            assert_ne!(one, other, "{now}");
            assert_eq!(Uuid::try_parse(&one).unwrap().get_version_num(), 7, "{now}");
        }
    }
}
