//! What a work tree has besides git's files when a story begins: ignored files, tools' folders, other
//! repositories, empty folders.
//!
//! It is the user's, whatever becomes of the ignore rules since: no snapshot and no commit gets any of
//! it. Unlike the list of held files, this one does not follow the rules.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::Index;

use crate::files::nofollow;
use crate::model::{LeftOut, WhyLeftOut};
use crate::workspace::branch::tip;
use crate::workspace::error::file_error;
use crate::workspace::tree::{bytes_of, entry_at, path_of};
use crate::workspace::{OWN_GIT_FOLDER, Result, WorkTree};

use super::held::MOST_STORED;
use super::ignored_walk::is_passing;

/// In the work tree's own git folder.
const LIST: &str = "beside";
const IGNORED: u8 = b'i';
const OTHER: u8 = b'o';
/// A path has no such byte.
const END: u8 = 0;

#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::workspace) struct Beside {
    /// Files, and folders of tools.
    ignored: BTreeSet<PathBuf>,
    /// Repositories and empty folders.
    others: BTreeSet<PathBuf>,
}

impl Beside {
    /// The ignored file or folder that the path is, or is in.
    pub fn ignored<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.ancestors().find(|part| self.ignored.contains(*part))
    }

    pub fn has(&self, path: &Path) -> bool {
        self.ignored(path).is_some() || path.ancestors().any(|part| self.others.contains(part))
    }

    /// Each ignored file or folder once, with the number of these paths in it.
    pub fn left_out<'a>(&self, paths: impl Iterator<Item = &'a PathBuf>) -> Vec<LeftOut> {
        let mut found = std::collections::BTreeMap::<&Path, usize>::new();
        for place in paths.filter_map(|path| self.ignored(path)) {
            *found.entry(place).or_default() += 1;
        }
        let found = found.into_iter();
        found.map(|(path, files)| LeftOut::new(path, files, WhyLeftOut::Ignored)).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let mut found = Self::default();
        for line in bytes.split(|byte| *byte == END) {
            match line.split_first() {
                Some((&IGNORED, path)) => found.ignored.insert(path_of(path)),
                Some((&OTHER, path)) => found.others.insert(path_of(path)),
                _ => false,
            };
        }
        found
    }

    fn to_bytes(&self) -> Vec<u8> {
        let kinds = [(IGNORED, &self.ignored), (OTHER, &self.others)];
        let lines = kinds.into_iter().flat_map(|(kind, paths)| {
            paths.iter().map(move |path| [&[kind], bytes_of(path), &[END]].concat())
        });
        lines.flatten().collect()
    }
}

impl WorkTree {
    /// Call where a story begins, before anything untrusted runs. What was noted once stays so, until
    /// it is gone or committed.
    pub fn note_beside(&self) -> Result<()> {
        let head = self.tree_at(tip(&self.repo)?.commit)?;
        let known = self.beside();
        let is_still = |path: &&PathBuf| {
            let is_there = nofollow::exists(&self.root.join(path));
            is_there && entry_at(head.as_ref(), path).is_ok_and(|entry| entry.is_none())
        };
        let still = |paths: &BTreeSet<PathBuf>| paths.iter().filter(is_still).cloned().collect();
        let mut now = Beside { ignored: still(&known.ignored), others: still(&known.others) };
        self.with_found_ignored(|found| {
            let ignored = [&found.files, &found.passing, &found.tools].into_iter().flatten();
            now.ignored.extend(ignored.cloned());
            now.others.extend(found.repositories.iter().chain(&found.empty).cloned());
        })?;
        if now == *known {
            return Ok(());
        }
        self.beside.replace(Some(Arc::new(now)));
        self.write_beside()
    }

    /// The list on the disk is the known one, whatever became of it.
    pub(super) fn write_beside(&self) -> Result<()> {
        let (list, bytes) = (self.beside_list(), self.beside().to_bytes());
        match nofollow::read(&list, MOST_STORED) {
            Ok(now) if now == bytes => Ok(()),
            Err(_) if bytes.is_empty() => Ok(()),
            _ => self.write_whole(&list, &bytes, 0o600).map_err(file_error("write", &list)),
        }
    }

    /// To be held: a character for each byte, because paths may not be UTF-8.
    pub(super) fn held_beside(&self) -> String {
        self.beside().to_bytes().into_iter().map(char::from).collect()
    }

    /// After a crash: the list as it was held. What is on the disk by then may be another one.
    pub(super) fn take_beside(&self, held: &str) {
        let bytes = held.chars().map(u8::try_from).collect::<Result<Vec<u8>, _>>();
        self.beside.replace(bytes.ok().map(|bytes| Arc::new(Beside::from_bytes(&bytes))));
        // Else whoever is guarded next writes it.
        let _ = self.write_beside();
    }

    pub(in crate::workspace) fn beside(&self) -> Arc<Beside> {
        let mut known = self.beside.borrow_mut();
        let read = || {
            let bytes = nofollow::read(&self.beside_list(), MOST_STORED).unwrap_or_default();
            Arc::new(Beside::from_bytes(&bytes))
        };
        Arc::clone(known.get_or_insert_with(read))
    }

    /// Ignored files that no rule may name any more.
    pub(super) fn ignored_before(&self) -> Vec<PathBuf> {
        let beside = self.beside();
        let files = beside.ignored.iter().filter(|path| !is_passing(path));
        files.filter(|path| !nofollow::is_folder(&self.root.join(path))).cloned().collect()
    }

    /// Of what is beside git's files, what is in the index.
    pub(in crate::workspace) fn beside_in(&self, index: &Index) -> Vec<PathBuf> {
        let beside = self.beside();
        let mut found = Vec::new();
        for path in &beside.ignored {
            if index.get_path(path, 0).is_some() {
                found.push(path.clone());
            }
            let folder = [bytes_of(path), b"/"].concat();
            let Ok(first) = index.find_prefix(OsStr::from_bytes(&folder)) else { continue };
            let inside = index.iter().skip(first).map(|entry| path_of(&entry.path));
            found.extend(inside.take_while(|inside| inside.starts_with(path)));
        }
        found
    }

    fn beside_list(&self) -> PathBuf {
        self.git_dir.join(OWN_GIT_FOLDER).join(LIST)
    }
}
