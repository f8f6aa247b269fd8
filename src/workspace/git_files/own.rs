//! Everything that ralph has in its own folder in a git folder, by name and kind.
//!
//! That folder is nobody else's. So what is there of another kind was not made by ralph: it moves
//! away before anything uses it, at each start and each time that a task takes the tree. Other names
//! mean nothing.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::files::{self, ReadError, follow, nofollow};
use crate::workspace::error::file_error;
use crate::workspace::moved_away::MovedAway;
use crate::workspace::{OWN_GIT_FOLDER, Result};

use super::Expected::{File, OwnFolder, Written};
use super::{ATTEMPT, Expected, GitFolders, LARGEST, LARGEST_NAME, Mender};

/// Of one work tree.
const OWN: [(&str, Expected); 20] = [
    (OWN_GIT_FOLDER, OwnFolder),
    (ATTEMPT, File(LARGEST_NAME)),
    ("ralph/beside", File(LARGEST)),
    ("ralph/changed", OwnFolder),
    ("ralph/changed/interrupted", OwnFolder),
    ("ralph/changed/replaced", OwnFolder),
    ("ralph/fetched", File(LARGEST)),
    ("ralph/half-done", OwnFolder),
    ("ralph/held.json", File(LARGEST)),
    ("ralph/hidden", File(LARGEST)),
    ("ralph/ignored", OwnFolder),
    ("ralph/ignored.json", File(LARGEST)),
    ("ralph/index", File(LARGEST)),
    ("ralph/lock", Written(LARGEST_NAME)),
    ("ralph/new", File(LARGEST)),
    ("ralph/objects", OwnFolder),
    ("ralph/restoring", File(LONGEST_NOTE)),
    ("ralph/rules", OwnFolder),
    ("ralph/setup.json", File(LARGEST)),
    ("ralph/unseen", OwnFolder),
];

/// Shared by all work trees of a repository.
const SHARED: [(&str, Expected); 9] = [
    (OWN_GIT_FOLDER, OwnFolder),
    ("ralph/journal.db", Written(u64::MAX)),
    ("ralph/journal.db-wal", Written(u64::MAX)),
    ("ralph/journal.db-shm", Written(u64::MAX)),
    ("ralph/journal.db-journal", Written(u64::MAX)),
    ("ralph/journal.db-newest", Written(LARGEST_NAME)),
    ("ralph/kept", Written(LARGEST)),
    ("ralph/kept.new", File(LARGEST)),
    ("ralph/numbers", Written(LARGEST_NAME)),
];

/// Notes about locks, by how their names begin, and files that are not complete yet, by how they end.
const NOTES: &str = "writing-";
const HALF_WRITTEN: &str = ".tmp";
const LONGEST_NOTE: u64 = 1 << 20;

const FILE_RIGHTS: u32 = 0o600;
const FOLDER_RIGHTS: u32 = 0o700;

impl GitFolders {
    /// Folders come before what is in them.
    pub(super) fn own_places(&self) -> impl Iterator<Item = (PathBuf, Expected)> {
        let own = OWN.iter().map(|(name, expected)| (self.own.join(name), *expected));
        let shared = SHARED.iter().map(|(name, expected)| (self.shared.join(name), *expected));
        let folders = [&self.own, &self.shared].map(|git| git.join(OWN_GIT_FOLDER));
        let named = folders.into_iter().flat_map(|folder| {
            let found = nofollow::list(&folder).unwrap_or_default();
            let names = found.into_iter().map(|entry| entry.name);
            let is_declared = |name: &OsString| {
                let name = name.to_string_lossy();
                name.starts_with(NOTES) || (name.starts_with('.') && name.ends_with(HALF_WRITTEN))
            };
            let names: Vec<_> = names.filter(is_declared).collect();
            names.into_iter().map(move |name| (folder.join(name), File(LONGEST_NOTE)))
        });
        own.chain(shared).chain(named)
    }

    pub(super) fn is_ralphs(&self, path: &Path) -> bool {
        [&self.own, &self.shared].iter().any(|git| path.starts_with(git.join(OWN_GIT_FOLDER)))
    }

    fn odd_own(&self) -> Vec<(PathBuf, ReadError)> {
        let odd = self.own_places().filter_map(|(path, expected)| {
            let problem = expected.check(&path).err()?;
            Some((path, problem))
        });
        odd.collect()
    }

    /// What ralph made can be opened by it, whatever became of its mode.
    pub(super) fn open_own(&self) {
        for (path, expected) in self.own_places() {
            let Ok(found) = nofollow::look(&path) else { continue };
            let rights = if expected == OwnFolder { FOLDER_RIGHTS } else { FILE_RIGHTS };
            let is_made = if expected == OwnFolder { found.is_dir() } else { found.is_file() };
            let mode = found.permissions().mode();
            if is_made && mode & rights != rights {
                let _ = nofollow::set_mode(&path, mode | rights);
            }
        }
    }
}

/// In ralph's own folders of the repository that a folder is in. Call before anything looks at it.
/// An active run does this itself.
pub(in crate::workspace) fn mend_own_files(start: &Path) -> Result<Option<MovedAway>> {
    let Some(folders) = GitFolders::of(start) else { return Ok(None) };
    folders.open_own();
    if folders.odd_own().is_empty() {
        return Ok(None);
    }
    let own = follow::real(&folders.own).map_err(file_error("find", &folders.own))?;
    let place = files::open_place(&own).map_err(file_error("open", &own))?;
    if place.try_lock().is_err() {
        return Ok(None);
    }
    let moved = MovedAway::to(&own);
    let mender = Mender { folders: &folders, moved: &moved, branch: None, is_running: false };
    mender.mend_all(folders.odd_own())?;
    // Some could not be opened before a folder was.
    folders.open_own();
    mender.mend_all(folders.odd_own())?;
    Ok(Some(moved))
}
