//! What was in the way of git or of ralph, and where it is now.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::files::keep;

/// Nothing is lost: it all goes to a folder.
pub(super) struct MovedAway {
    folder: PathBuf,
    found: Mutex<Vec<Moved>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// For people.
    pub path: PathBuf,
    pub kept: PathBuf,
}

impl MovedAway {
    pub fn to(folder: PathBuf) -> Self {
        Self { folder, found: Mutex::default() }
    }

    /// `shown`: its name for people, and in the folder.
    pub fn take(&self, path: &Path, shown: &Path) -> io::Result<()> {
        let kept = self.folder.join(shown);
        keep(path, &kept)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.found().push(Moved { path: shown.to_owned(), kept });
        Ok(())
    }

    /// What moved since the last call.
    pub fn news(&self) -> Vec<Moved> {
        std::mem::take(&mut self.found())
    }

    fn found(&self) -> MutexGuard<'_, Vec<Moved>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
