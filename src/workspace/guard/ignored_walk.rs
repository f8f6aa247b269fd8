//! Finds what no commit gets: ignored files and folders, other repositories, empty folders.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::files::{Dir, FileKind, nofollow};
use crate::workspace::stamp::FileStamp;
use crate::workspace::tree::path_of;
use crate::workspace::{OWN_FOLDER, Result, WorkTree};

/// An ignored folder with more is one that a tool fills.
const MOST_ENTRIES: usize = 200;
const GIT: &str = ".git";
const RULES: &str = ".gitignore";
/// Tools mark their folders with it: <https://bford.info/cachedir/>.
const CACHE_MARK: &str = "CACHEDIR.TAG";
/// Folders that a build fills, however small they are.
const OUTPUT: [&str; 5] = ["dist", "build", "coverage", "htmlcov", ".next"];
/// The same of other tools.
#[rustfmt::skip]
const TOOLS: [&str; 13] = [
    "target", "node_modules", "venv", ".venv", ".tox", ".cache", ".gradle", "__pycache__",
    ".terraform", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".eggs",
];
/// Files that come and go. A lock or a database's journal must not come back.
const PASSING: [&str; 9] =
    [".pid", ".lock", ".tmp", ".swp", ".pyc", ".o", "-journal", "-wal", "-shm"];

/// It is all there as long as none of the places changed.
#[derive(Debug, Default)]
pub(in crate::workspace) struct FoundIgnored {
    /// Ignored, outside tools' folders.
    pub files: Vec<PathBuf>,
    /// Ignored files that come and go.
    pub passing: Vec<PathBuf>,
    /// Ignored folders that tools fill.
    pub tools: Vec<PathBuf>,
    pub repositories: Vec<PathBuf>,
    /// Folders.
    pub empty: Vec<PathBuf>,
    /// Folders and files with rules. None: it may change without another stamp.
    places: Vec<(PathBuf, Option<FileStamp>)>,
}

impl FoundIgnored {
    /// Tools' folders that only a build or their size tells from the story's.
    pub fn outputs(&self) -> impl Iterator<Item = &PathBuf> {
        self.tools.iter().filter(|path| !has_name(path, &TOOLS))
    }
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
            let now = nofollow::look(path);
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
        rules
            .into_iter()
            .filter(|place| nofollow::exists(place))
            .for_each(|place| walk.note(place));
        walk.folder(Path::new(""))?;
        Ok(walk.found)
    }
}

impl Walk<'_> {
    fn note(&mut self, place: PathBuf) {
        let found = nofollow::look(&place).ok();
        let stamp = found.and_then(|found| FileStamp::settled(&found, self.now));
        self.found.places.push((place, stamp));
    }

    /// One that is not ignored. Returns whether it has nothing but empty folders.
    fn folder(&mut self, folder: &Path) -> Result<bool> {
        self.note(self.tree.root.join(folder));
        let (mut has_files, mut empty) = (false, Vec::new());
        for entry in nofollow::list(&self.tree.root.join(folder)).unwrap_or_default() {
            let (path, is_folder) = (folder.join(&entry.name), entry.kind == FileKind::Folder);
            let is_plain_folder = is_folder && !self.tracked.contains(&path);
            has_files |= !is_plain_folder;
            if entry.name == GIT || path == Path::new(OWN_FOLDER) {
                has_files = true;
            } else if !is_folder {
                self.entry(path, entry.kind)?;
            } else if !is_plain_folder {
                // A submodule.
            } else if !self.folders.contains(&path) && self.is_foreign(&path)? {
                has_files = true;
            } else if self.folder(&path)? {
                empty.push(path);
            } else {
                has_files = true;
            }
        }
        if has_files || folder.as_os_str().is_empty() {
            self.found.empty.append(&mut empty);
        }
        Ok(!has_files)
    }

    fn entry(&mut self, path: PathBuf, kind: FileKind) -> Result<()> {
        if path.ends_with(RULES) {
            self.note(self.tree.root.join(&path));
        }
        let is_kind = matches!(kind, FileKind::File | FileKind::Link);
        if is_kind && !self.tracked.contains(&path) && self.tree.is_ignored(&path)? {
            self.file(path);
        }
        Ok(())
    }

    /// Another repository, or an ignored folder.
    fn is_foreign(&mut self, folder: &Path) -> Result<bool> {
        if nofollow::exists(&self.tree.root.join(folder).join(GIT)) {
            self.found.repositories.push(folder.to_owned());
        } else if self.tree.is_ignored(folder)? {
            self.ignored(folder);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn file(&mut self, path: PathBuf) {
        let found = &mut self.found;
        if is_passing(&path) { found.passing.push(path) } else { found.files.push(path) }
    }

    fn ignored(&mut self, folder: &Path) {
        let mut listed = Listed { left: Some(MOST_ENTRIES), ..Listed::default() };
        if self.list(folder, &mut listed).is_some() {
            listed.files.into_iter().for_each(|file| self.file(file));
            listed.folders.into_iter().for_each(|folder| self.note(folder));
            self.found.tools.append(&mut listed.tools);
            self.found.repositories.append(&mut listed.repositories);
        } else {
            self.found.tools.push(folder.to_owned());
        }
    }

    /// None: it is a tool's.
    fn list(&self, folder: &Path, listed: &mut Listed) -> Option<()> {
        let full = self.tree.root.join(folder);
        if is_of_tools(&full) {
            return None;
        }
        let opened = Dir::open_real(&full).ok();
        let entries = opened.as_ref().and_then(|opened| opened.list().ok());
        let is_repository = |name: &OsStr| {
            opened
                .as_ref()
                .is_some_and(|it| it.kind(&Path::new(name).join(GIT)) != FileKind::Nothing)
        };
        for entry in entries.unwrap_or_default() {
            listed.left = listed.left.and_then(|left| left.checked_sub(1));
            listed.left?;
            let (path, is_folder) = (folder.join(&entry.name), entry.kind == FileKind::Folder);
            if is_folder && is_repository(&entry.name) {
                listed.repositories.push(path);
            } else if is_folder {
                // A tool's folder in it is left out.
                if self.list(&path, listed).is_none() {
                    listed.left?;
                    listed.tools.push(path);
                }
            } else if matches!(entry.kind, FileKind::File | FileKind::Link) {
                listed.files.push(path);
            }
        }
        listed.folders.push(full);
        Some(())
    }
}

/// What is in an ignored folder.
#[derive(Default)]
struct Listed {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    tools: Vec<PathBuf>,
    repositories: Vec<PathBuf>,
    /// How many entries there may still be.
    left: Option<usize>,
}

pub(in crate::workspace) fn is_of_tools(folder: &Path) -> bool {
    has_name(folder, &TOOLS)
        || has_name(folder, &OUTPUT)
        || nofollow::exists(&folder.join(CACHE_MARK))
}

fn has_name(folder: &Path, names: &[&str]) -> bool {
    folder.file_name().and_then(OsStr::to_str).is_some_and(|name| names.contains(&name))
}

pub(super) fn is_passing(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    PASSING.iter().any(|ending| name.ends_with(ending.as_bytes()))
}
