//! Finds ignored files, without build and dependency folders.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::workspace::tree::path_of;
use crate::workspace::{OWN_FOLDER, Result, WorkTree};

use super::ignored_store::FileStamp;

/// An ignored folder with more is one that a tool fills. So are more ignored files in one folder.
const MOST_ENTRIES: usize = 200;
const GIT: &str = ".git";
const RULES: &str = ".gitignore";
/// Tools mark their folders with it: <https://bford.info/cachedir/>.
const CACHE_MARK: &str = "CACHEDIR.TAG";
/// Folders that tools fill, however small they are.
const OUTPUT: [&str; 17] = [
    "target",
    "node_modules",
    "dist",
    "build",
    "out",
    "coverage",
    "htmlcov",
    "tmp",
    "log",
    "logs",
    "venv",
    ".venv",
    ".tox",
    ".cache",
    ".next",
    ".gradle",
    "__pycache__",
];
/// Files that come and go. A lock or a database's journal must not come back.
const PASSING: [&str; 10] =
    [".log", ".pid", ".lock", ".tmp", ".swp", ".pyc", ".o", "-journal", "-wal", "-shm"];

/// Ignored files, as long as none of the places changed.
#[derive(Debug, Default)]
pub(super) struct FoundIgnored {
    pub files: Vec<PathBuf>,
    /// Folders and files with rules. None: it may change without another stamp.
    places: Vec<(PathBuf, Option<FileStamp>)>,
}

struct Walk<'a> {
    tree: &'a WorkTree,
    tracked: HashSet<PathBuf>,
    /// With tracked files.
    folders: HashSet<PathBuf>,
    found: FoundIgnored,
    now: SystemTime,
}

impl WorkTree {
    pub(super) fn is_current(&self, found: &FoundIgnored) -> bool {
        let is_same = |(path, then): &(PathBuf, Option<FileStamp>)| {
            let now = fs::symlink_metadata(path);
            then.is_some() && now.is_ok_and(|now| Some(FileStamp::of(&now)) == *then)
        };
        !found.places.is_empty() && found.places.iter().all(is_same)
    }

    pub(super) fn find_ignored(&self) -> Result<FoundIgnored> {
        let index = self.fresh_index()?;
        let tracked: HashSet<PathBuf> = index.iter().map(|entry| path_of(&entry.path)).collect();
        let folders = tracked.iter().flat_map(|path| path.ancestors().skip(1));
        let folders = folders.map(Path::to_owned).collect();
        let (found, now) = (FoundIgnored::default(), SystemTime::now());
        let mut walk = Walk { tree: self, tracked, folders, found, now };
        let rules = ["info", "info/exclude"].map(|name| self.common_dir.join(name));
        rules.into_iter().filter(|place| place.exists()).for_each(|place| walk.note(place));
        walk.folder(Path::new(""))?;
        Ok(walk.found)
    }
}

impl Walk<'_> {
    fn note(&mut self, place: PathBuf) {
        let found = fs::symlink_metadata(&place).ok();
        let stamp = found.and_then(|found| FileStamp::settled(&found, self.now));
        self.found.places.push((place, stamp));
    }

    /// One that is not ignored.
    fn folder(&mut self, folder: &Path) -> Result<()> {
        self.note(self.tree.root.join(folder));
        let mut files = Vec::new();
        for entry in fs::read_dir(self.tree.root.join(folder)).into_iter().flatten().flatten() {
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
            let path = folder.join(&name);
            if name == GIT || path == Path::new(OWN_FOLDER) {
                continue;
            }
            if name == RULES {
                self.note(entry.path());
            }
            if !kind.is_dir() {
                let is_kind = kind.is_file() || kind.is_symlink();
                if is_kind && !self.tracked.contains(&path) && self.is_held(&path)? {
                    files.push(path);
                }
            } else if self.folders.contains(&path) {
                self.folder(&path)?;
            } else if entry.path().join(GIT).exists() {
                // Another repository.
            } else if self.tree.is_ignored(&path)? {
                self.ignored(&path);
            } else {
                self.folder(&path)?;
            }
        }
        if files.len() <= MOST_ENTRIES {
            self.found.files.append(&mut files);
        }
        Ok(())
    }

    fn is_held(&self, path: &Path) -> Result<bool> {
        Ok(!is_passing(path) && self.tree.is_ignored(path)?)
    }

    fn ignored(&mut self, folder: &Path) {
        let (mut files, mut folders, mut left) = (Vec::new(), Vec::new(), Some(MOST_ENTRIES));
        if self.list(folder, &mut files, &mut folders, &mut left).is_some() {
            self.found.files.append(&mut files);
            folders.into_iter().for_each(|folder| self.note(folder));
        }
    }

    /// None: it is a tool's.
    fn list(
        &self,
        folder: &Path,
        files: &mut Vec<PathBuf>,
        folders: &mut Vec<PathBuf>,
        left: &mut Option<usize>,
    ) -> Option<()> {
        let full = self.tree.root.join(folder);
        let is_output =
            folder.file_name().and_then(OsStr::to_str).is_some_and(|n| OUTPUT.contains(&n));
        if is_output || full.join(CACHE_MARK).exists() {
            return None;
        }
        for entry in fs::read_dir(&full).into_iter().flatten().flatten() {
            *left = left.and_then(|left| left.checked_sub(1));
            left.as_ref()?;
            let (path, Ok(kind)) = (folder.join(entry.file_name()), entry.file_type()) else {
                continue;
            };
            if kind.is_dir() && !entry.path().join(GIT).exists() {
                // A tool's folder in it is left out.
                let length = files.len();
                if self.list(&path, files, folders, left).is_none() {
                    files.truncate(length);
                    left.as_ref()?;
                }
            } else if (kind.is_file() || kind.is_symlink()) && !is_passing(&path) {
                files.push(path);
            }
        }
        folders.push(full);
        Some(())
    }
}

fn is_passing(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    PASSING.iter().any(|ending| name.ends_with(ending.as_bytes()))
}
