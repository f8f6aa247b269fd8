//! Changes of files that could be meant: taken out of the work tree, and made there once accepted.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::files::nofollow;
use crate::model::{Base, HeldChange, HeldKind};
use crate::workspace::checkout::remove_if_there;
use crate::workspace::diff::hash;
use crate::workspace::error::file_error;
use crate::workspace::gate_files::shown_diff;
use crate::workspace::tree::{TreeChange, entry_at};
use crate::workspace::{ChangedFile, Result, WorkTree, with_change};

use super::Guard;
use super::held::{HeldContent, HeldFiles};

/// In bytes, of one version.
const LARGEST: u64 = 16 << 20;
const PLAIN: u32 = 0o644;
const PROGRAM: u32 = 0o755;

impl Guard {
    /// What changed of one kind, if all of it can be shown to people: files, and no links or pipes.
    pub fn changed_texts(
        &self,
        tree: &WorkTree,
        whose: HeldKind,
    ) -> Result<Option<Vec<ChangedFile>>> {
        let now = self.held.again(tree.root(), whose)?;
        let version = |held: &HeldFiles, path: &Path| match held.get(path) {
            None => Some(None),
            Some(HeldContent::File { bytes, .. }) => Some(Some(bytes.clone())),
            Some(_) => None,
        };
        let mut found = Vec::new();
        for path in self.held.differences(&now, whose) {
            let (Some(old), Some(new)) = (version(&self.held, &path), version(&now, &path)) else {
                return Ok(None);
            };
            let Ok(path) = path.strip_prefix(tree.root()).map(ToOwned::to_owned) else {
                return Ok(None);
            };
            let diff = shown_diff(&path, old.as_deref(), new.as_deref())?;
            found.push(ChangedFile { path, diff, old, new });
        }
        Ok(Some(found))
    }

    /// Where this guard keeps other versions.
    pub fn folder(&self, tree: &WorkTree) -> PathBuf {
        tree.changed_by(&self.guarded.ran)
    }
}

impl WorkTree {
    /// What is at the path moves into the folder, and the base's version is there again.
    pub fn take_out(&self, base: &Base, path: &Path, folder: &Path) -> Result<()> {
        let place = self.root.join(path);
        if self.can_hold(path) {
            self.move_to(&place, &folder.join(path))?;
        }
        let tree = self.tree(&base.tree)?;
        let new = entry_at(Some(&tree), path)?;
        if new.is_none() {
            return Ok(());
        }
        self.replace_files(&tree, &[TreeChange { path: path.to_owned(), old: None, new }])
    }

    /// `kept` is in the git folder.
    pub(super) fn move_to(&self, place: &Path, kept: &Path) -> Result<()> {
        self.keep(place, kept).map_err(file_error("keep", place))?;
        remove_if_there(place).map_err(file_error("delete", place))
    }

    /// Makes an accepted change in the file as it is now. False: they do not fit together, or the
    /// copy is not what was accepted.
    pub fn make_change(&self, change: &HeldChange) -> Result<bool> {
        let path = Path::new(&change.path);
        if !self.can_hold(path) {
            return Ok(false);
        }
        let copy = |kept: &Option<String>| {
            kept.as_ref().map(|kept| nofollow::read(&self.root.join(kept), LARGEST).ok())
        };
        let (before, changed) = (copy(&change.before), copy(&change.changed));
        let place = self.root.join(path);
        let now = nofollow::read(&place, LARGEST).ok();
        let Some(changed) = changed else {
            let fits = now.is_none() || Some(&now) == before.as_ref();
            if fits {
                remove_if_there(&place).map_err(file_error("delete", &place))?;
            }
            return Ok(fits);
        };
        let is_accepted = |bytes: &Vec<u8>| hash(bytes) == change.hash;
        let Some(changed) = changed.filter(is_accepted) else { return Ok(false) };
        let made = match (before.flatten(), now) {
            (Some(before), Some(now)) => with_change(&before, &changed, &now)?,
            (None, None) => Some(changed),
            (None, Some(now)) => (now == changed).then_some(changed),
            (Some(_), None) => None,
        };
        let Some(bytes) = made else { return Ok(false) };
        let mode = match nofollow::look(&place) {
            Ok(found) => found.permissions().mode() & 0o777,
            Err(_) if bytes.starts_with(b"#!") => PROGRAM,
            Err(_) => PLAIN,
        };
        self.write_held(&place, &HeldContent::File { bytes, mode })
            .map_err(file_error("write", &place))?;
        Ok(true)
    }
}
