//! The human's ignored files, such as `.env`, outside build and dependency folders.
//!
//! What tools write is ignored too, so a change is not put back: only a file that is gone, empty, or
//! no file any more. They are not stored as git objects: they have passwords, and objects can be
//! pushed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::nofollow;
use crate::model::Violation;
use crate::workspace::checkout::is_absence;
use crate::workspace::error::file_error;
use crate::workspace::{Result, WorkTree};

use super::below;
use super::held::HeldContent;

/// More names make the journal large, and nobody reads them.
const MOST_NAMES: usize = 50;

/// An ignored file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IgnoredFile {
    /// In the work tree. It may not be UTF-8.
    path: Vec<u8>,
    content: IgnoredContent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum IgnoredContent {
    File { hash: String, size: u64, mode: u32 },
    Link(Vec<u8>),
}

impl IgnoredFile {
    pub fn new(path: &Path, content: IgnoredContent) -> Self {
        Self { path: path.as_os_str().as_bytes().to_vec(), content }
    }

    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }

    pub fn hash(&self) -> Option<&str> {
        match &self.content {
            IgnoredContent::File { hash, .. } => Some(hash),
            IgnoredContent::Link(_) => None,
        }
    }

    /// Where its content is stored.
    pub fn version(&self) -> Option<PathBuf> {
        self.hash().map(|hash| self.path().join(hash))
    }
}

/// What was there before something untrusted ran.
#[derive(Debug)]
pub(super) struct HeldIgnored {
    pub files: Vec<IgnoredFile>,
    /// Of the list, as it is stored.
    pub hash: String,
}

/// Files that are lost, with what they were; None: it cannot be restored.
type LostFiles<'a> = Vec<(&'a Path, Option<HeldContent>)>;

impl WorkTree {
    pub(super) fn ignored_violation(&self, held: &HeldIgnored) -> Option<Violation> {
        let lost = self.lost_ignored(held);
        if lost.is_empty() {
            return None;
        }
        let cache = self.ignored.borrow();
        let (back, blocked): (Vec<_>, Vec<_>) = lost.iter().partition(|(_, then)| then.is_some());
        let names = |files: &[&(&Path, Option<HeldContent>)]| -> Vec<String> {
            let paths = files.iter().map(|(path, _)| path.to_string_lossy().into_owned());
            paths.filter(|path| !cache.told.contains(path)).take(MOST_NAMES).collect()
        };
        let kept = below(&self.root, &self.ignored_folder());
        let (lost, blocked, count) = (names(&back), names(&blocked), back.len());
        Some(Violation::IgnoredFiles { lost, count, blocked, kept })
    }

    fn lost_ignored<'a>(&self, held: &'a HeldIgnored) -> LostFiles<'a> {
        let lost = held.files.iter().filter(|file| self.is_lost(file));
        lost.map(|file| (file.path(), self.restorable(file))).collect()
    }

    fn is_lost(&self, file: &IgnoredFile) -> bool {
        match (nofollow::look(&self.root.join(file.path())), &file.content) {
            (Err(error), _) => is_absence(&error),
            (Ok(found), IgnoredContent::File { size, .. }) => {
                !found.is_file() || (found.len() == 0 && *size > 0)
            }
            (Ok(found), IgnoredContent::Link(_)) => !found.is_symlink() && !found.is_file(),
        }
    }

    pub(super) fn restorable(&self, file: &IgnoredFile) -> Option<HeldContent> {
        if !self.can_hold(file.path()) {
            return None;
        }
        match &file.content {
            IgnoredContent::Link(target) => Some(HeldContent::Link(target.clone())),
            IgnoredContent::File { hash, mode, .. } => {
                let bytes = self.stored_version(&file.version()?, hash)?;
                Some(HeldContent::File { bytes, mode: *mode })
            }
        }
    }

    pub(super) fn repair_ignored(&self, held: &HeldIgnored, ran: &str) -> Result<()> {
        let lost = self.lost_ignored(held);
        for (name, then) in &lost {
            let Some(then) = then else { continue };
            let path = self.root.join(name);
            let is_file = nofollow::is_file(&path);
            let moved =
                if is_file { Ok(()) } else { self.keep(&path, &self.changed_by(ran).join(name)) };
            let done = moved.and_then(|()| self.write_held(&path, then));
            done.map_err(file_error("restore", &path))?;
        }
        let names = lost.iter().map(|(path, _)| path.to_string_lossy().into_owned());
        self.ignored.borrow_mut().told.extend(names);
        Ok(())
    }
}
