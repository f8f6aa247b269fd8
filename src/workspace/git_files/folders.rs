//! Folders of git's with many files: refs, their logs, and objects.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::files::{Dir, FileKind, ReadError, follow, nofollow};

use super::{Expected, LARGEST, LARGEST_NAME, OBJECTS};

const REFS: &str = "refs";
const LOGS: &str = "logs";
/// Refs that only ralph makes.
const OWN_REFS: [&str; 2] = ["ralph", "worktree"];
/// Only read.
const PACKS: &str = "objects/pack";
/// A folder that changed this recently can change again without another time.
const A_MOMENT: Duration = Duration::from_secs(1);

/// Folders of objects that had nothing odd, with their times: there are many objects, and they do not
/// change.
#[derive(Default)]
pub(in crate::workspace) struct KnownFolders(RefCell<HashMap<PathBuf, SystemTime>>);

impl KnownFolders {
    /// `has_objects`: the folder that work trees share.
    pub(super) fn look(&self, git: &Path, has_objects: bool, odd: &mut Vec<(PathBuf, ReadError)>) {
        let refs = git.join(REFS);
        let is_own = |path: &Path| OWN_REFS.iter().any(|own| path.starts_with(refs.join(own)));
        for path in files_below(&refs) {
            let expected = if is_own(&path) { Expected::File } else { Expected::Readable };
            note(path, expected(LARGEST_NAME), odd);
        }
        for path in files_below(&git.join(LOGS)) {
            note(path, Expected::File(LARGEST), odd);
        }
        if has_objects {
            self.look_at_objects(git, odd);
        }
    }

    fn look_at_objects(&self, git: &Path, odd: &mut Vec<(PathBuf, ReadError)>) {
        let objects = git.join(OBJECTS);
        let entries = nofollow::list(&objects).unwrap_or_default().into_iter();
        for entry in entries.filter(|entry| entry.name.len() == 2) {
            let path = objects.join(entry.name);
            if entry.kind == FileKind::Folder {
                self.look_into(&path, Expected::File(LARGEST), odd);
            } else {
                odd.push((path, ReadError::NotAFile("link or a pipe, and no folder,")));
            }
        }
        self.look_into(&git.join(PACKS), Expected::Readable(u64::MAX), odd);
    }

    fn look_into(&self, folder: &Path, expected: Expected, odd: &mut Vec<(PathBuf, ReadError)>) {
        // The folder of packs may be a link of the human's.
        let time = follow::look(folder).and_then(|found| found.modified()).ok();
        if time.is_some() && self.0.borrow().get(folder).copied() == time {
            return;
        }
        let before = odd.len();
        let entries = Dir::open(folder).and_then(|folder| folder.list()).unwrap_or_default();
        for entry in entries.into_iter().filter(|entry| entry.kind != FileKind::Folder) {
            note(folder.join(entry.name), expected, odd);
        }
        let is_settled = |time: &SystemTime| time.elapsed().is_ok_and(|age| age > A_MOMENT);
        if let Some(time) = time.filter(is_settled).filter(|_| odd.len() == before) {
            self.0.borrow_mut().insert(folder.to_owned(), time);
        }
    }
}

fn note(path: PathBuf, expected: Expected, odd: &mut Vec<(PathBuf, ReadError)>) {
    match expected.check(&path) {
        // A link of the human's.
        Err(ReadError::Folder) | Ok(()) => {}
        Err(problem) => odd.push((path, problem)),
    }
}

/// Whatever is no folder; links are not followed.
pub(super) fn files_below(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in nofollow::list(&folder).unwrap_or_default() {
            let path = folder.join(entry.name);
            if entry.kind == FileKind::Folder { folders.push(path) } else { files.push(path) }
        }
    }
    files.into_iter()
}
