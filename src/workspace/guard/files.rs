//! The human's files with uncommitted changes before a story began.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::files::nofollow;
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
    /// Lost, and a file is in their place that is too large to be read.
    pub blocked: Vec<PathBuf>,
    /// Untracked ones that have other content.
    pub changed: Vec<PathBuf>,
}

impl WorkTree {
    /// Files that were uncommitted at the story's base and that the attempt deleted or reset, or put
    /// something else in the place of. Those that it edited are not lost: that is the agent's work.
    /// Of untracked ones no commit has it.
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
            let is_other = |now: TreeEntry| wanted.is_some_and(|wanted| !now.is_like(wanted));
            match self.on_disk(&change.path)? {
                OnDisk::Large if wanted.is_some() => losses.blocked.push(change.path),
                OnDisk::Other if wanted.is_some() => losses.lost.push(change.path),
                OnDisk::Entry(now) if now == wanted => {}
                OnDisk::Entry(now) if now.is_none_or(is_other) || now == change.old => {
                    losses.lost.push(change.path);
                }
                OnDisk::Entry(_) if change.old.is_none() && wanted.is_some() => {
                    losses.changed.push(change.path);
                }
                _ => {}
            }
        }
        Ok(losses)
    }

    /// Repairs these files: they are as they were right before the attempt. A folder or a link that is
    /// in the place of one, or of its folder, moves away.
    pub fn repair_user_files(&self, before: &Base, paths: &[PathBuf]) -> Result<()> {
        let tree = self.tree(&before.tree)?;
        let mut changes = Vec::new();
        for path in paths {
            let new = entry_at(Some(&tree), path)?;
            let old = match self.on_disk(path)? {
                OnDisk::Large => continue,
                OnDisk::Entry(old)
                    if old.is_none_or(|old| new.is_none_or(|new| old.is_like(new))) =>
                {
                    old
                }
                // What is below a link is outside.
                _ if !self.can_hold(path) => None,
                _ => {
                    let place = self.root.join(path);
                    self.moved_away.take(&place, path).map_err(file_error("move", &place))?;
                    None
                }
            };
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
        if !self.can_hold(path) {
            return Ok(OnDisk::Other);
        }
        if self.is_too_large(path) {
            return Ok(OnDisk::Large);
        }
        match nofollow::look(&self.root.join(path)) {
            Err(error) if is_absence(&error) => return Ok(OnDisk::Entry(None)),
            Err(_) => return Ok(OnDisk::Other),
            Ok(found) if !found.is_file() && !found.is_symlink() => return Ok(OnDisk::Other),
            Ok(_) => {}
        }
        self.release_rules_for(path);
        let mut index = self.fresh_index()?;
        self.index_is_modified.set(true);
        index.add_path(path).doing("read one of your files")?;
        let entry = index.get_path(path, 0);
        Ok(OnDisk::Entry(entry.map(|entry| TreeEntry::from(&entry))))
    }

    /// Whether no parent folder is a link, so that nothing is written through one.
    pub(in crate::workspace) fn can_hold(&self, path: &Path) -> bool {
        match nofollow::look(&self.root.join(path.parent().unwrap_or(path))) {
            Ok(found) => found.is_dir(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }
}

/// What is at a path.
pub(super) enum OnDisk {
    /// A file, a link, or nothing.
    Entry(Option<TreeEntry>),
    /// A file that is too large to be read.
    Large,
    Other,
}
