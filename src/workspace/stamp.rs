//! Tells whether a file or a folder changed since a look.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::files::nofollow;

/// Times are that coarse: a younger file may change without another time.
const A_MOMENT: Duration = Duration::from_millis(20);

/// Tells a file or a folder from any other version of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    file: (u64, u64, u32),
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    pub fn of(found: &Metadata) -> Self {
        Self {
            file: (found.ino(), found.len(), found.mode()),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Of a place; the same None.
    pub fn settled_at(path: &Path) -> Option<Self> {
        Self::settled(&nofollow::look(path).ok()?, SystemTime::now())
    }

    /// None: it can change without another stamp.
    pub fn settled(found: &Metadata, now: SystemTime) -> Option<Self> {
        let changed = Duration::new(
            u64::try_from(found.ctime()).ok()?,
            u32::try_from(found.ctime_nsec()).ok()?,
        );
        let age = now.duration_since(SystemTime::UNIX_EPOCH.checked_add(changed)?).ok()?;
        (age > A_MOMENT).then(|| Self::of(found))
    }
}
