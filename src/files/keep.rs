//! Keeps what is replaced, under another name.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Appended to a name on the same disk if the other one is on another.
const CHANGED: &str = "changed";

/// Links a file instead of moving it, so that it is never missing.
pub fn keep(path: &Path, kept: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if is_absence(&error) => return Ok(()),
        found => found?,
    };
    if let Some(folder) = kept.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let kept = free_name(kept);
    if found.is_dir() {
        // A folder moves only if it can be written.
        let _ = fs::set_permissions(path, Permissions::from_mode(0o700));
    }
    let done = if found.is_file() { fs::hard_link(path, &kept) } else { fs::rename(path, &kept) };
    match done {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            if found.is_file() {
                fs::copy(path, &kept).map(drop)
            } else {
                fs::rename(path, free_name(&path.with_added_extension(CHANGED)))
            }
        }
        done => done,
    }
}

/// A killed process may have used the first name.
pub fn free_name(path: &Path) -> PathBuf {
    let numbered = (1..).map(|number| path.with_added_extension(number.to_string()));
    let mut names = std::iter::once(path.to_owned()).chain(numbered);
    let is_free = |name: &PathBuf| fs::symlink_metadata(name).is_err();
    names.find(is_free).unwrap_or_default()
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
