//! The git setup of the repository (configuration, hooks, attributes and excludes) and its stashes.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use git2::Oid;
use serde::{Deserialize, Serialize};

use crate::workspace::checkout::{is_absence, remove_if_there};
use crate::workspace::error::{GitContext, file_error, if_found};
use crate::workspace::locks::private_parent;
use crate::workspace::{OWN_GIT_FOLDER, Result, WorkTree};

const SHARED: [&str; 3] = ["config", "info/attributes", "info/exclude"];
/// Of this work tree alone.
const OWN: &str = "config.worktree";
const HOOKS: &str = "hooks";
/// Git's examples; it runs none of them.
const EXAMPLE: &str = ".sample";
/// Larger files are compared by size.
const LARGEST: u64 = 16 << 20;
/// The setup before the last attempt, for recovery after a crash.
const HELD_SETUP: &str = "setup.json";
/// The folder for attempts' versions.
const CHANGED: &str = "changed";

/// Files of the git folder by their names in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSetup(BTreeMap<String, Part>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    File { bytes: Vec<u8>, mode: u32 },
    Link(PathBuf),
    Large { size: u64 },
}

impl GitSetup {
    /// Names of the parts that differ.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let names = self.0.keys().chain(other.0.keys());
        let mut other_parts: Vec<String> =
            names.filter(|name| self.0.get(*name) != other.0.get(*name)).cloned().collect();
        other_parts.sort();
        other_parts.dedup();
        other_parts
    }
}

impl WorkTree {
    /// As it is now.
    pub fn setup(&self) -> Result<GitSetup> {
        let mut setup = GitSetup::default();
        for name in SHARED.into_iter().chain([OWN]) {
            self.note_part(name, &mut setup)?;
        }
        self.note_hooks(HOOKS, &mut setup)?;
        Ok(setup)
    }

    /// The current setup, stored for recovery after a crash.
    pub fn hold_setup(&self) -> Result<GitSetup> {
        let setup = self.setup()?;
        let path = self.git_dir.join(OWN_GIT_FOLDER).join(HELD_SETUP);
        let text = serde_json::to_vec(&setup).unwrap_or_default();
        if fs::read(&path).ok().as_ref() != Some(&text) {
            self.write_whole(&path, &text, 0o600).map_err(file_error("write", &path))?;
        }
        Ok(setup)
    }

    /// The setup right before the last attempt; None if it is unknown.
    pub fn held_setup(&self) -> Option<GitSetup> {
        let text = fs::read(self.git_dir.join(OWN_GIT_FOLDER).join(HELD_SETUP)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// The folder for an attempt's version.
    pub fn changed_by(&self, attempt: &str) -> PathBuf {
        self.git_dir.join(OWN_GIT_FOLDER).join(CHANGED).join(attempt)
    }

    /// Repairs these parts. The current versions are kept.
    pub fn repair_setup(&self, before: &GitSetup, names: &[String], attempt: &str) -> Result<()> {
        let folder = self.changed_by(attempt);
        // Removals first: another part may need the place.
        let (gone, others): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| !before.0.contains_key(*name));
        for name in gone.into_iter().chain(others) {
            let path = self.part(name);
            let done = Self::keep_part(&path, &folder.join(name))
                .and_then(|()| self.repair_part(&path, before.0.get(name)));
            done.map_err(file_error("restore", &path))?;
        }
        Ok(())
    }

    fn part(&self, name: &str) -> PathBuf {
        if name == OWN { self.git_dir.join(name) } else { self.common_dir.join(name) }
    }

    fn note_part(&self, name: &str, setup: &mut GitSetup) -> Result<()> {
        let path = self.part(name);
        match part_at(&path) {
            Err(error) if is_absence(&error) => {}
            part => {
                let part = part.map_err(file_error("read", &path))?;
                setup.0.extend(part.map(|part| (name.to_owned(), part)));
            }
        }
        Ok(())
    }

    fn note_hooks(&self, folder: &str, setup: &mut GitSetup) -> Result<()> {
        let path = self.part(folder);
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            return self.note_part(folder, setup);
        }
        for entry in fs::read_dir(&path).map_err(file_error("list", &path))? {
            let entry = entry.map_err(file_error("list", &path))?;
            // Git has no hooks with names that are not UTF-8.
            let Some(name) = entry.file_name().to_str().map(|name| format!("{folder}/{name}"))
            else {
                continue;
            };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.note_hooks(&name, setup)?;
            } else if !name.ends_with(EXAMPLE) {
                self.note_part(&name, setup)?;
            }
        }
        Ok(())
    }

    /// Links a file instead of moving it, so that it is never missing.
    fn keep_part(path: &Path, kept: &Path) -> io::Result<()> {
        let found = match fs::symlink_metadata(path) {
            Err(error) if is_absence(&error) => return Ok(()),
            found => found?,
        };
        private_parent(kept)?;
        let kept = free(kept);
        if found.is_file() { fs::hard_link(path, kept) } else { fs::rename(path, kept) }
    }

    fn repair_part(&self, path: &Path, part: Option<&Part>) -> io::Result<()> {
        match part {
            Some(Part::File { bytes, mode }) => {
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder)?;
                }
                self.write_whole(path, bytes, *mode)
            }
            Some(Part::Link(target)) => {
                remove_if_there(path)?;
                symlink(target, path)
            }
            // Its content is unknown: it stays as it is.
            Some(Part::Large { .. }) => Ok(()),
            None => remove_if_there(path),
        }
    }

    /// Atomic, even in a power cut.
    pub(super) fn write_whole(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let new = self.git_dir.join(OWN_GIT_FOLDER).join("new");
        private_parent(&new)?;
        remove_if_there(&new)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(bytes)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        match fs::rename(&new, path) {
            // The repository is on another disk than its files.
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                remove_if_there(path)?;
                let mut file =
                    File::options().write(true).create_new(true).mode(mode).open(path)?;
                file.write_all(bytes)
            }
            renamed => renamed,
        }
    }
}

fn part_at(path: &Path) -> io::Result<Option<Part>> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Ok(Some(Part::Link(fs::read_link(path)?)));
    }
    if !found.is_file() {
        return Ok(None);
    }
    if found.len() > LARGEST {
        return Ok(Some(Part::Large { size: found.len() }));
    }
    Ok(Some(Part::File { bytes: fs::read(path)?, mode: mode(&found) }))
}

fn mode(found: &Metadata) -> u32 {
    found.permissions().mode() & 0o777
}

/// A killed process may have used the first name.
fn free(path: &Path) -> PathBuf {
    let numbered = (1..).map(|number| path.with_added_extension(number.to_string()));
    let mut names = std::iter::once(path.to_owned()).chain(numbered);
    let is_free = |name: &PathBuf| fs::symlink_metadata(name).is_err();
    names.find(is_free).unwrap_or_default()
}

const STASH: &str = "refs/stash";
const HELD_STASHES: &str = "refs/ralph/stashes";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stash {
    id: Oid,
    /// Its message in `git stash list`.
    pub message: String,
}

impl WorkTree {
    /// All stashes, newest first; protects them from `git gc`.
    pub fn hold_stashes(&self) -> Result<Vec<Stash>> {
        let stashes = self.stashes()?;
        for stash in &stashes {
            let name = format!("{HELD_STASHES}/{}", stash.id);
            self.set_ref(&name, stash.id, "ralph", "protect the stashes")?;
        }
        Ok(stashes)
    }

    pub(super) fn dropped_stashes(&self, before: &[Stash]) -> Result<Vec<Stash>> {
        if before.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.stashes()?;
        Ok(before.iter().filter(|stash| !now.contains(stash)).cloned().collect())
    }

    /// Restores dropped stashes as the newest, and returns them.
    pub fn repair_stashes(&self, before: &[Stash]) -> Result<Vec<Stash>> {
        let gone = self.dropped_stashes(before)?;
        for stash in gone.iter().rev() {
            self.repo.reference_ensure_log(STASH).doing("restore a stash")?;
            self.set_ref(STASH, stash.id, &stash.message, "restore a stash")?;
        }
        Ok(gone)
    }

    /// Releases stashes that the human dropped.
    pub(in crate::workspace) fn release_stashes(&self) -> Result<()> {
        let held = self.repo.references_glob(&format!("{HELD_STASHES}/*"));
        let known = self.stashes()?;
        for held in held.doing("list the stashes")?.flatten() {
            if !known.iter().any(|stash| Some(stash.id) == held.target()) {
                // The next run tries again.
                let _ = self.delete_ref(held);
            }
        }
        Ok(())
    }

    fn stashes(&self) -> Result<Vec<Stash>> {
        if if_found(self.repo.refname_to_id(STASH)).doing("look for stashes")?.is_none() {
            return Ok(Vec::new());
        }
        let log = self.repo.reflog(STASH).doing("list the stashes")?;
        let stash = |entry: git2::ReflogEntry<'_>| Stash {
            id: entry.id_new(),
            message: String::from_utf8_lossy(entry.message_bytes().unwrap_or_default()).into(),
        };
        Ok(log.iter().map(stash).collect())
    }
}
