//! Tells whether a file or a folder changed since a look.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::RawMode;

use crate::files::Dir;

/// Times are that coarse: a younger file may change without another time.
const A_MOMENT: Duration = Duration::from_millis(20);

/// Tells a file or a folder from any other version of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    file: (u64, u64, RawMode),
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    pub fn of(found: &Metadata) -> Self {
        Self {
            file: (found.ino(), found.len(), found.mode() as RawMode),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Of a name in a folder that is held open.
    pub fn of_name(folder: &Dir, name: &Path) -> Option<Self> {
        let found = folder.look(name).ok()?;
        let parts = |nanoseconds| i64::try_from(nanoseconds).unwrap_or_default();
        Some(Self {
            file: (found.st_ino, u64::try_from(found.st_size).ok()?, found.st_mode),
            modified: (found.st_mtime, parts(found.st_mtime_nsec)),
            changed: (found.st_ctime, parts(found.st_ctime_nsec)),
        })
    }

    /// None: it can change without another stamp.
    pub fn settled(found: &Metadata, now: SystemTime) -> Option<Self> {
        Self::of(found).if_settled(now)
    }

    /// The same.
    pub fn if_settled(self, now: SystemTime) -> Option<Self> {
        let (seconds, parts) = self.changed;
        let changed = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(parts).ok()?);
        let age = now.duration_since(SystemTime::UNIX_EPOCH.checked_add(changed)?).ok()?;
        (age > A_MOMENT).then_some(self)
    }
}
