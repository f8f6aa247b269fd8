//! The human's files with uncommitted changes before a story began.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::model::Base;
use crate::workspace::checkout::{is_absence, remove_if_there};
use crate::workspace::error::{GitContext, file_error};
use crate::workspace::tree::{TreeChange, TreeEntry, entry_at};
use crate::workspace::{Result, WorkTree};

/// What an attempt did to files that were uncommitted before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Deleted, or reset to the committed version; can be restored.
    pub lost: Vec<PathBuf>,
    /// Lost, and something else is in their place.
    pub blocked: Vec<PathBuf>,
}

impl WorkTree {
    /// Files that were uncommitted at the story's base and that the attempt deleted or reset. Files
    /// that it edited do not count: that is the agent's work.
    pub fn losses(&self, base: &Base, before: &Base) -> Result<Losses> {
        let mut losses = Losses::default();
        if self.is_committed(base)? {
            return Ok(losses);
        }
        let before = self.tree(&before.tree)?;
        for change in self.uncommitted_at(base)? {
            let wanted = entry_at(Some(&before), &change.path)?;
            if wanted == change.old {
                continue;
            }
            match self.on_disk(&change.path)? {
                OnDisk::Other if wanted.is_some() => losses.blocked.push(change.path),
                OnDisk::Entry(now) if now != wanted && (now.is_none() || now == change.old) => {
                    losses.lost.push(change.path);
                }
                _ => {}
            }
        }
        Ok(losses)
    }

    /// Repairs these files: they are as they were right before the attempt.
    pub fn repair_user_files(&self, before: &Base, paths: &[PathBuf]) -> Result<()> {
        let tree = self.tree(&before.tree)?;
        let mut changes = Vec::new();
        for path in paths {
            let OnDisk::Entry(old) = self.on_disk(path)? else { continue };
            let new = entry_at(Some(&tree), path)?;
            changes.push(TreeChange { path: path.clone(), old, new });
        }
        self.require_writable(&changes)?;
        self.replace_files(&tree, &changes)
    }

    /// A file as it was right before an attempt, if it is another now. `folder`: for that version.
    pub fn return_file(&self, before: &Base, path: &Path, folder: &Path) -> Result<()> {
        let wanted = entry_at(Some(&self.tree(&before.tree)?), path)?;
        if wanted.is_none() || matches!(self.on_disk(path)?, OnDisk::Entry(now) if now == wanted) {
            return Ok(());
        }
        let place = self.root.join(path);
        let kept = self.keep(&place, &folder.join(path)).map_err(file_error("keep", &place));
        kept.and_then(|()| remove_if_there(&place).map_err(file_error("delete", &place)))?;
        self.repair_user_files(before, &[path.to_owned()])
    }

    pub(super) fn on_disk(&self, path: &Path) -> Result<OnDisk> {
        if !self.can_hold(path) || self.is_too_large(path) {
            return Ok(OnDisk::Other);
        }
        match fs::symlink_metadata(self.root.join(path)) {
            Err(error) if is_absence(&error) => return Ok(OnDisk::Entry(None)),
            Err(_) => return Ok(OnDisk::Other),
            Ok(found) if !found.is_file() && !found.is_symlink() => return Ok(OnDisk::Other),
            Ok(_) => {}
        }
        let mut index = self.fresh_index()?;
        self.index_is_modified.set(true);
        index.add_path(path).doing("read one of your files")?;
        let entry = index.get_path(path, 0);
        Ok(OnDisk::Entry(entry.map(|entry| TreeEntry::from(&entry))))
    }

    /// Whether no parent folder is a link, so that nothing is written through one.
    pub(in crate::workspace) fn can_hold(&self, path: &Path) -> bool {
        let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        folders.into_iter().all(|folder| match fs::symlink_metadata(self.root.join(folder)) {
            Ok(found) => found.is_dir(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        })
    }
}

/// What is at a path.
pub(super) enum OnDisk {
    /// A file, a link, or nothing.
    Entry(Option<TreeEntry>),
    Other,
}
