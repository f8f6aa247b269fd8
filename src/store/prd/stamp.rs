//! Tells by its times whether a file is still the one that was read.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Within this time of a change the file may change again without another time stamp.
const RACY: Duration = Duration::from_millis(20);
/// The same where the file system counts whole seconds.
const RACY_SECONDS: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub fn of(found: &Metadata) -> Self {
        Self {
            file: (found.dev(), found.ino()),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Of a file that was the same before and after it was read. None where it may have changed
    /// meanwhile, or can change without another stamp.
    pub fn of_read(before: &Metadata, after: &Metadata) -> Option<Self> {
        let stamp = Self::of(before);
        (stamp == Self::of(after) && stamp.is_settled(SystemTime::now())).then_some(stamp)
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        let has_seconds_only = self.modified.1 == 0 && self.changed.1 == 0;
        let racy = if has_seconds_only { RACY_SECONDS } else { RACY };
        let (seconds, nanoseconds) = self.modified.max(self.changed);
        let since_epoch = u64::try_from(seconds).ok().zip(u32::try_from(nanoseconds).ok());
        let latest = since_epoch.map(|(seconds, rest)| UNIX_EPOCH + Duration::new(seconds, rest));
        latest.is_some_and(|latest| now.duration_since(latest).is_ok_and(|age| age > racy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed_at(seconds: i64, nanoseconds: i64) -> Stamp {
        let times = (seconds, nanoseconds);
        Stamp { file: (1, 2), size: 3, modified: (1, 0), changed: times }
    }

    #[test]
    fn a_young_stamp_is_not_believed() {
        let now = UNIX_EPOCH + Duration::new(1000, 500_000_000);
        for (stamp, settled) in [
            (changed_at(1000, 400_000_000), true),
            (changed_at(1000, 490_000_000), false),
            (changed_at(1000, 500_000_001), false),
            (changed_at(2000, 1), false),
            (changed_at(999, 0), false),
            (changed_at(998, 0), true),
            (changed_at(-5, 1), true),
        ] {
            assert_eq!(stamp.is_settled(now), settled, "{stamp:?}");
        }
    }
}
