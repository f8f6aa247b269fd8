//! How much room is left.

use std::path::Path;

/// Bytes that may still be written where the path is. None where nobody can tell, as on some
/// network file systems.
pub fn free(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_found_where_something_is() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free(folder.path()).is_some_and(|bytes| bytes > 0));
        assert_eq!(free(&folder.path().join("nothing")), None);
        // A file system without blocks has no room to run out of.
        #[cfg(target_os = "linux")]
        assert_eq!(free(Path::new("/proc")), None);
    }
}
