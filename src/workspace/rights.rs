//! Rights of the owner's that something untrusted took away: ralph gives them back to itself.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::files::{FileKind, nofollow};

use super::error::file_error;
use super::{Result, WorkTree};

const READ: u32 = 0o400;
const ENTER: u32 = 0o700;

impl WorkTree {
    /// Does the work; if something cannot be read, once more with the rights that an owner has. It may
    /// also have been written at that very moment.
    pub(super) fn with_rights<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        work().or_else(|_| {
            give_back(&self.root);
            work()
        })
    }

    /// A file in a folder that cannot be entered is not gone.
    pub(super) fn require_gone(&self, path: &Path) -> Result<()> {
        let path = self.root.join(path);
        match nofollow::look(&path) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Err(file_error("read", &path)(error))
            }
            _ => Ok(()),
        }
    }
}

/// Of files and folders below this one.
fn give_back(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in nofollow::list(&folder).unwrap_or_default() {
            let wanted = match entry.kind {
                FileKind::Folder => ENTER,
                FileKind::File => READ,
                _ => continue,
            };
            let path = folder.join(&entry.name);
            let Ok(found) = nofollow::look(&path) else { continue };
            let mode = found.permissions().mode();
            if mode & wanted != wanted {
                // Only the owner can.
                let _ = nofollow::set_mode(&path, mode | wanted);
            }
            if found.is_dir() && entry.name != ".git" {
                folders.push(path);
            }
        }
    }
}
