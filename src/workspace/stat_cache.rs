//! The stat cache: times and hashes of untracked and edited files, so that scans do not read them
//! again.
//!
//! Git's index covers unchanged tracked files. This cache is a small index file of the driver's
//! own.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use git2::{Index, IndexEntry, Odb};

use super::WorkTree;
use super::error::GitContext;
use super::index::{statted, unstatted};
use super::tree::{TreeEntry, path_of};

const FILE_NAME: &str = "seen";
/// A file that was just written can change again without another time stamp.
const A_MOMENT: Duration = Duration::from_secs(2);
/// Fewer files are read again instead of cached.
const WORTH_IT: usize = 64;
/// The same for few but large files, in bytes.
const WORTH_IT_BYTES: u64 = 1 << 20;

/// The cache during one scan: the known entries, and what the scan found.
pub(super) struct StatCache {
    root: PathBuf,
    file: PathBuf,
    known: HashMap<PathBuf, IndexEntry>,
    began: SystemTime,
    /// Files that match their entries.
    pub unchanged: BTreeMap<PathBuf, IndexEntry>,
    /// Files that had to be read, with their metadata from right before.
    read: Vec<(PathBuf, Metadata)>,
}

impl WorkTree {
    pub(super) fn stat_cache(&self) -> StatCache {
        let file = self.git_dir.join(super::OWN_GIT_FOLDER).join(FILE_NAME);
        let known = Index::open(&file).ok().filter(|index| !index.is_empty());
        let known = known.map(|index| index.iter().map(|e| (path_of(&e.path), e)).collect());
        StatCache {
            root: self.root.clone(),
            file,
            known: known.unwrap_or_default(),
            began: SystemTime::now(),
            unchanged: BTreeMap::new(),
            read: Vec::new(),
        }
    }
}

impl StatCache {
    /// Whether the file matches its entry; if not, the scan reads it.
    pub fn knows(&mut self, path: &Path) -> bool {
        let Ok(found) = fs::symlink_metadata(self.root.join(path)) else {
            return false;
        };
        match self.known.remove(path).filter(|entry| is_same(entry, &found)) {
            Some(entry) => {
                self.unchanged.insert(path.to_owned(), entry);
                true
            }
            None => {
                self.read.push((path.to_owned(), found));
                false
            }
        }
    }

    /// Reads files again whose objects the repository has lost.
    pub fn verify(&mut self, odb: &Odb<'_>, index: &mut Index) -> Result<(), git2::Error> {
        let lost = self.unchanged.extract_if(.., |_, entry| !odb.exists(entry.id));
        lost.into_iter().try_for_each(|(path, _)| index.add_path(&path))
    }

    /// Writes the cache from the in-memory index. Errors are ignored: the cache only saves time.
    pub fn remember(&self, tree: &WorkTree, index: &Index) {
        let bytes: u64 = self.read.iter().map(|(_, found)| found.len()).sum();
        if self.read.len() >= WORTH_IT || bytes >= WORTH_IT_BYTES {
            let lock = self.file.with_extension("lock");
            let _ = tree.noting(&[&lock], || self.write(index).doing("remember files"));
        }
    }

    fn write(&self, index: &Index) -> Result<(), git2::Error> {
        let folder = self.file.parent().unwrap_or(&self.root);
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let mut file = Index::open(&self.file)?;
        file.clear()?;
        for entry in self.unchanged.values() {
            file.add(entry)?;
        }
        for (path, found) in self.read.iter().filter(|(_, found)| self.is_settled(found)) {
            if let Some(entry) = index.get_path(path, 0) {
                file.add(&statted(entry, found))?;
            }
        }
        file.write()?;
        let _ = fs::set_permissions(&self.file, Permissions::from_mode(0o600));
        Ok(())
    }

    fn is_settled(&self, found: &Metadata) -> bool {
        let limit = self.began.checked_sub(A_MOMENT).unwrap_or(UNIX_EPOCH);
        found.modified().is_ok_and(|time| time < limit)
    }
}

/// The file's metadata matches the entry.
fn is_same(entry: &IndexEntry, found: &Metadata) -> bool {
    let now = statted(unstatted(Path::new(""), TreeEntry::from(entry)), found);
    let looks = |e: &IndexEntry| (e.mtime, e.ctime, e.ino, e.file_size);
    looks(entry) == looks(&now)
}
