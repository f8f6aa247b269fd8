//! Which content files have, so that scans need not read them again.
//!
//! That is believed only if the driver has read the file itself, or if it was in git's index before
//! anything untrusted ran: what runs can write whatever it likes to the index.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use git2::{Index, IndexEntry, IndexTime, Odb, Oid};

use crate::files::nofollow;

use super::error::LibResult;
use super::index::{Staged, is_hidden, shown, stage_of, statted, unstatted};
use super::tree::{TreeEntry, path_of};
use super::{Result, WorkTree};

/// A file that was just written can change again without another time stamp: for how long depends on
/// whether the file system knows parts of seconds.
const A_MOMENT: Duration = Duration::from_millis(100);
const WITHOUT_PARTS: Duration = Duration::from_secs(2);

/// What a file looked like when it had this content.
type Looks = (IndexTime, IndexTime, u32, u32);

/// What tells whether a file was written again: only the system sets the last two.
pub(super) type Stamp = (u64, u64, i64, i64);

/// The index and its held copy, and the copy's hash.
pub(super) type HeldIndex = ((Option<Stamp>, Option<Stamp>), String);

#[derive(Default)]
pub(super) struct KnownFiles {
    /// Entries of the index. None: nothing untrusted has run, and all are believed.
    indexed: Option<HashMap<Vec<u8>, Known>>,
    /// The index that had no other entries.
    believed: Option<Stamp>,
    /// Files that differ from the index.
    pub(super) others: HashMap<PathBuf, Known>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    looks: Looks,
    mode: u32,
    pub(super) id: Oid,
    is_hidden: bool,
}

impl Known {
    fn of(entry: &IndexEntry) -> Self {
        let is_hidden = is_hidden(entry);
        Self { looks: looks(entry), mode: entry.mode, id: entry.id, is_hidden }
    }

    fn entry(&self) -> TreeEntry {
        TreeEntry { id: self.id, mode: self.mode }
    }

    /// Whether the file is as it was.
    fn is_like(&self, found: &Metadata) -> bool {
        self.looks == looks_of(found)
    }
}

impl KnownFiles {
    fn doubtful(&self, index: &Index) -> Vec<IndexEntry> {
        let Some(known) = &self.indexed else { return Vec::new() };
        let is_known = |entry: &IndexEntry| known.get(&entry.path) == Some(&Known::of(entry));
        index.iter().filter(|entry| stage_of(entry) == 0 && !is_known(entry)).collect()
    }

    /// After a crash, whether files are hidden from git is not known.
    fn knows_hidden(&self) -> bool {
        self.indexed.as_ref().is_some_and(|known| !known.is_empty())
    }

    fn believe(&mut self, entry: &IndexEntry) {
        if let Some(known) = &mut self.indexed {
            known.insert(entry.path.clone(), Known::of(entry));
        }
    }
}

/// What is known during one scan, and what it found.
pub(super) struct FilesFound {
    root: PathBuf,
    began: SystemTime,
    index: Option<Stamp>,
    known: HashMap<PathBuf, Known>,
    /// Files that match what is known of them.
    pub unchanged: BTreeMap<PathBuf, IndexEntry>,
    /// Files that had to be read, with their metadata from right before.
    read: Vec<(PathBuf, Metadata)>,
    /// Files whose entries in the index are not believed, with the same.
    doubted: Vec<(PathBuf, Metadata)>,
}

impl WorkTree {
    /// Call before anything untrusted starts: what is in the index later is not believed, unless it is
    /// there now.
    pub(super) fn believe_index(&self) -> Result<()> {
        if self.known.borrow().indexed.is_none() {
            let stamp = self.index_stamp();
            self.believe_only(&self.fresh_index()?);
            self.known.borrow_mut().believed = stamp;
        }
        Ok(())
    }

    /// What the index has now may be from something untrusted.
    pub(super) fn believe_only(&self, index: &Index) {
        let entries = index.iter().map(|entry| (entry.path.clone(), Known::of(&entry)));
        let indexed = Some(entries.collect());
        *self.known.borrow_mut() = KnownFiles { indexed, ..KnownFiles::default() };
    }

    pub(super) fn believe_nothing(&self) {
        let indexed = Some(HashMap::new());
        *self.known.borrow_mut() = KnownFiles { indexed, ..KnownFiles::default() };
    }

    fn index_stamp(&self) -> Option<Stamp> {
        stamp(&self.git_dir.join("index"))
    }

    pub(super) fn known_files(&self) -> FilesFound {
        FilesFound {
            root: self.root.clone(),
            began: SystemTime::now(),
            index: self.index_stamp(),
            known: std::mem::take(&mut self.known.borrow_mut().others),
            unchanged: BTreeMap::new(),
            read: Vec::new(),
            doubted: Vec::new(),
        }
    }

    /// In memory, entries that are not believed are as if git had never read their files. Returns
    /// whether there are any.
    pub(super) fn doubt(&self, index: &mut Index, files: &mut FilesFound) -> LibResult<bool> {
        let mut known = self.known.borrow_mut();
        if known.believed.is_some() && known.believed == files.index {
            return Ok(false);
        }
        let doubtful = known.doubtful(index);
        if doubtful.is_empty() {
            known.believed = files.index;
            return Ok(false);
        }
        self.index_is_modified.set(true);
        for entry in doubtful {
            let path = path_of(&entry.path);
            let entry = if known.knows_hidden() { shown(entry) } else { entry };
            let found = nofollow::look(&self.root.join(&path)).ok();
            let has = TreeEntry::from(&entry);
            let is_read = |found: &&Metadata| {
                files
                    .known
                    .get(&path)
                    .is_some_and(|read| read.is_like(found) && read.entry() == has)
            };
            match found.as_ref().filter(is_read) {
                Some(found) => index.add(&statted(entry, found))?,
                None => index.add(&unread(entry))?,
            }
            files.doubted.extend(found.map(|found| (path, found)));
        }
        Ok(true)
    }

    /// Doubted entries that do not differ from their files are believed from now on.
    pub(super) fn believe_same(
        &self,
        files: &FilesFound,
        index: &Index,
        differences: &[(PathBuf, bool)],
    ) {
        let differ: BTreeSet<&PathBuf> = differences.iter().map(|(path, _)| path).collect();
        let mut known = self.known.borrow_mut();
        for (path, found) in files.doubted.iter().filter(|(path, _)| !differ.contains(path)) {
            let entry = index.get_path(path, 0).filter(|_| files.is_settled(found));
            entry.into_iter().for_each(|entry| known.believe(&statted(entry, found)));
        }
    }

    /// Keeps what a scan has read.
    pub(super) fn remember(&self, files: &FilesFound, index: &Index) {
        let mut known = self.known.borrow_mut();
        let unchanged = files.unchanged.iter().map(|(path, e)| (path.clone(), Known::of(e)));
        known.others = unchanged.collect();
        let settled = |(path, found): &(PathBuf, Metadata)| {
            let entry = index.get_path(path, 0).filter(|_| files.is_settled(found));
            entry.map(|entry| (path.clone(), Known::of(&statted(entry, found))))
        };
        known.others.extend(files.read.iter().filter_map(settled));
    }

    /// Git believes entries with a file's times. Those with other content than the file, and those that
    /// hide a file from git, are corrected.
    pub(super) fn correct_index(&self) -> Result<()> {
        let files = self.known_files();
        let mut index = self.fresh_index()?;
        let doubtful = match self.known.borrow().believed {
            Some(believed) if Some(believed) == files.index => Vec::new(),
            _ => self.known.borrow().doubtful(&index),
        };
        let held = if doubtful.is_empty() { None } else { self.index_before() };
        let mut wrong: Vec<Staged> = Vec::new();
        for entry in doubtful {
            let path = path_of(&entry.path);
            let plain = Some(unstatted(&path, TreeEntry::from(&entry)));
            if is_hidden(&entry) && self.known.borrow().knows_hidden() {
                // If the held copy has it as it was, the guard tells of it.
                let before = held.as_ref().and_then(|held| held.get_path(&path, 0));
                let is_told = before.is_some_and(|before| !is_hidden(&before));
                wrong.extend((!is_told).then_some((path, plain)));
                continue;
            }
            let found = nofollow::look(&self.root.join(&path)).ok();
            let Some(found) = found.filter(|found| can_be_read(found) && may_pass(&entry, found))
            else {
                continue;
            };
            self.release_rules_for(&path);
            self.index_is_modified.set(true);
            // What cannot be read is not believed by a scan either.
            if index.add_path(&path).is_err() {
                continue;
            }
            match index.get_path(&path, 0) {
                Some(now) if TreeEntry::from(&now) == TreeEntry::from(&entry) => {
                    if looks(&entry) == looks_of(&found) && files.is_settled(&found) {
                        self.known.borrow_mut().believe(&entry);
                    }
                }
                _ => wrong.push((path, plain)),
            }
        }
        self.known.borrow_mut().others = files.known;
        self.update_index(&wrong)
    }
}

impl FilesFound {
    /// Whether the file is as it was when it was read; if not, the scan reads it.
    pub fn knows(&mut self, path: &Path) -> bool {
        let Ok(found) = nofollow::look(&self.root.join(path)) else { return false };
        let known = self.known.get(path).filter(|known| known.is_like(&found));
        let is_known = known.is_some();
        match known.map(|known| statted(unstatted(path, known.entry()), &found)) {
            Some(entry) => drop(self.unchanged.insert(path.to_owned(), entry)),
            None => self.read.push((path.to_owned(), found)),
        }
        is_known
    }

    /// Reads files again whose objects the repository has lost.
    pub fn verify(&mut self, odb: &Odb<'_>, index: &mut Index) -> LibResult<()> {
        let lost = self.unchanged.extract_if(.., |_, entry| !odb.exists(entry.id));
        lost.into_iter().try_for_each(|(path, _)| index.add_path(&path))
    }

    /// By the time that no program can set.
    fn is_settled(&self, found: &Metadata) -> bool {
        let nanos = u32::try_from(found.ctime_nsec()).unwrap_or_default();
        let changed = Duration::new(u64::try_from(found.ctime()).unwrap_or_default(), nanos);
        let moment = if nanos == 0 { WITHOUT_PARTS } else { A_MOMENT };
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default();
        changed + moment < began
    }
}

fn looks(entry: &IndexEntry) -> Looks {
    (entry.mtime, entry.ctime, entry.ino, entry.file_size)
}

fn looks_of(found: &Metadata) -> Looks {
    let nothing = TreeEntry { id: Oid::ZERO_SHA1, mode: 0 };
    looks(&statted(unstatted(Path::new(""), nothing), found))
}

/// Some git may take the entry for what the file has: not all compare all times.
fn may_pass(entry: &IndexEntry, found: &Metadata) -> bool {
    let (mtime, _, _, size) = looks_of(found);
    entry.file_size == size && entry.mtime.seconds() == mtime.seconds()
}

/// As if git had not looked at the file yet.
fn unread(entry: IndexEntry) -> IndexEntry {
    let never = IndexTime::new(0, 0);
    IndexEntry { mtime: never, ctime: never, file_size: 0, ..entry }
}

fn can_be_read(found: &Metadata) -> bool {
    (found.is_file() && found.len() <= super::scan::LARGEST) || found.is_symlink()
}

pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let found = nofollow::look(path).ok()?;
    Some((found.ino(), found.len(), found.ctime(), found.ctime_nsec()))
}
