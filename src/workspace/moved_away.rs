//! What was in the way of git or of ralph, and where it is now.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::files::{Dir, keep};

use super::checkout::remove_if_there;
use super::{CHANGED, OWN_GIT_FOLDER, REPLACED};

/// Nothing is lost: it all goes to a folder.
pub(super) struct MovedAway {
    git_dir: PathBuf,
    found: Mutex<Vec<Moved>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// For people.
    pub path: PathBuf,
    pub kept: PathBuf,
}

impl MovedAway {
    /// To a folder in the git folder of a work tree.
    pub fn to(git_dir: &Path) -> Self {
        Self { git_dir: git_dir.to_owned(), found: Mutex::default() }
    }

    /// `shown`: its name for people, and in the folder.
    pub fn take(&self, path: &Path, shown: &Path) -> io::Result<()> {
        let folder = Path::new(OWN_GIT_FOLDER).join(CHANGED).join(REPLACED);
        let kept = if self.git_dir.join(&folder).starts_with(path) {
            // The folder itself, which gets another name.
            Dir::open_real(&self.git_dir)?.make_way(&folder)?;
            path.parent().unwrap_or(path).to_owned()
        } else {
            let kept = keep(path, &self.git_dir, &folder.join(shown))?;
            remove_if_there(path)?;
            kept
        };
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
