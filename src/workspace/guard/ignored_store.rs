//! Copies of ignored files, in the git folder.

use std::collections::{BTreeSet, HashMap};
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::files::{Dir, FileKind, nofollow};
use crate::model::IgnoredLimits;
use crate::workspace::error::file_error;
use crate::workspace::stamp::FileStamp;
use crate::workspace::{OWN_GIT_FOLDER, Result, WorkTree};

use super::held::MOST_STORED;
use super::ignored::{HeldIgnored, IgnoredContent, IgnoredFile};
use super::ignored_walk::FoundIgnored;

/// The folder of the copies: a folder for each file, with a file for each version.
const FOLDER: &str = "ignored";
const LIST: &str = "ignored.json";
/// Of small files a copy stays in memory too, as long as all of them are at most as large as this:
/// something untrusted could delete the store.
const MOST_IN_MEMORY: usize = 4 << 20;

/// What the last look found, so that the next one reads only what changed.
#[derive(Debug, Default)]
pub(in crate::workspace) struct IgnoredCache {
    pub limits: IgnoredLimits,
    found: FoundIgnored,
    files: HashMap<PathBuf, (Option<FileStamp>, IgnoredFile)>,
    held: Option<Arc<HeldIgnored>>,
    /// By their hashes.
    copies: HashMap<String, Vec<u8>>,
    /// Files, and new stashes by their ids, that were named already: a tool that deletes one in each iteration makes one line.
    pub told: BTreeSet<String>,
}

impl IgnoredCache {
    pub(super) fn stamp(&self, path: &Path) -> Option<FileStamp> {
        self.files.get(path)?.0
    }
}

impl WorkTree {
    /// How much is kept of the human's ignored files.
    pub fn limit_ignored(&self, limits: IgnoredLimits) {
        self.ignored.borrow_mut().limits = limits;
    }

    pub(super) fn ignored_folder(&self) -> PathBuf {
        self.git_dir.join(OWN_GIT_FOLDER).join(FOLDER)
    }

    /// Stores what changed since the last look.
    pub(super) fn hold_ignored(&self) -> Result<Arc<HeldIgnored>> {
        let mut cache = self.ignored.take();
        let held = self.hold_ignored_with(&mut cache);
        self.ignored.replace(cache);
        held
    }

    pub(in crate::workspace) fn with_found_ignored(
        &self,
        look: impl FnOnce(&FoundIgnored),
    ) -> Result<()> {
        let mut cache = self.ignored.take();
        let found = self.find_ignored_again(&mut cache);
        look(&cache.found);
        self.ignored.replace(cache);
        found
    }

    fn find_ignored_again(&self, cache: &mut IgnoredCache) -> Result<()> {
        if !self.is_current(&cache.found) {
            cache.found = self.find_ignored()?;
        }
        Ok(())
    }

    fn hold_ignored_with(&self, cache: &mut IgnoredCache) -> Result<Arc<HeldIgnored>> {
        self.find_ignored_again(cache)?;
        let folder = self.ignored_folder();
        let mut store = None;
        let mut known = HashMap::new();
        let mut paths: BTreeSet<PathBuf> = self.ignored_before().into_iter().collect();
        paths.extend(cache.found.files.iter().cloned());
        for (path, found) in self.within(&paths, &cache.limits) {
            let stamp = FileStamp::settled(&found, SystemTime::now());
            let before =
                cache.files.remove(&path).filter(|(then, _)| then.is_some() && *then == stamp);
            let file = match before {
                Some((_, file)) => file,
                None => {
                    if store.is_none() {
                        store = Some(self.open_store().map_err(file_error("open", &folder))?);
                    }
                    let Some(store) = &store else { continue };
                    // It may have disappeared.
                    let Ok(file) = self.store_ignored(store, &path, &found, cache) else {
                        continue;
                    };
                    file
                }
            };
            known.insert(path, (stamp, file));
        }
        cache.files = known;
        let needed: BTreeSet<&str> =
            cache.files.values().filter_map(|(_, file)| file.hash()).collect();
        cache.copies.retain(|hash, _| needed.contains(hash.as_str()));
        let mut files: Vec<IgnoredFile> =
            cache.files.values().map(|(_, file)| file.clone()).collect();
        files.sort_by(|one, other| one.path().cmp(other.path()));
        let list = folder.with_file_name(LIST);
        if let Some(held) =
            cache.held.as_ref().filter(|held| held.files == files && nofollow::is_file(&list))
        {
            return Ok(Arc::clone(held));
        }
        let text = serde_json::to_vec(&files).unwrap_or_default();
        self.write_whole(&list, &text, 0o600).map_err(file_error("write", &list))?;
        let hash = crate::workspace::hash(&text).unwrap_or_default();
        let held = Arc::new(HeldIgnored { files, hash });
        cache.held = Some(Arc::clone(&held));
        if store.is_some() {
            self.prune_versions(&held, &cache.limits);
        }
        Ok(held)
    }

    /// Small files first, as many as fit.
    fn within(
        &self,
        files: &BTreeSet<PathBuf>,
        limits: &IgnoredLimits,
    ) -> Vec<(PathBuf, Metadata)> {
        let look = |path: &PathBuf| {
            let found = nofollow::look(&self.root.join(path)).ok()?;
            let is_small = found.is_file() && limits.file.is_none_or(|most| found.len() <= most);
            (is_small || found.is_symlink()).then(|| (path.clone(), found))
        };
        let mut found: Vec<_> = files.iter().filter_map(look).collect();
        found.sort_by_key(|(_, found)| found.len());
        let mut total = 0;
        found.retain(|(_, found)| {
            total += found.len();
            limits.total.is_none_or(|most| total <= most)
        });
        found
    }

    fn open_store(&self) -> io::Result<Dir> {
        Dir::open_real(&self.git_dir)?.make_dir(&Path::new(OWN_GIT_FOLDER).join(FOLDER))
    }

    fn store_ignored(
        &self,
        store: &Dir,
        path: &Path,
        found: &Metadata,
        cache: &mut IgnoredCache,
    ) -> io::Result<IgnoredFile> {
        let full = self.root.join(path);
        if found.is_symlink() {
            let target = nofollow::read_link(&full)?.into_os_string().into_vec();
            return Ok(IgnoredFile::new(path, IgnoredContent::Link(target)));
        }
        let bytes = nofollow::read(&full, cache.limits.file.unwrap_or(u64::MAX))?;
        let hash = crate::workspace::hash(&bytes).unwrap_or_default();
        let (size, mode) = (bytes.len() as u64, found.permissions().mode() & 0o777);
        let keep = || {
            let (versions, version) = (store.make_way(path)?, Path::new(&hash));
            let is_kept = versions.read(version, size).ok().as_ref() == Some(&bytes);
            if is_kept { Ok(()) } else { versions.publish(version, &bytes) }
        };
        if keep().is_err() {
            // Something else is in its place, or it cannot be opened.
            let place = self.ignored_folder().join(path);
            self.moved_away.take(&place, &self.shown(&place))?;
            keep()?;
        }
        let total: usize = cache.copies.values().map(Vec::len).sum();
        if total + bytes.len() <= MOST_IN_MEMORY {
            cache.copies.insert(hash.clone(), bytes);
        }
        Ok(IgnoredFile::new(path, IgnoredContent::File { hash, size, mode }))
    }

    pub(super) fn stored_version(&self, version: &Path, hash: &str) -> Option<Vec<u8>> {
        let stored = Dir::open_real(&self.ignored_folder());
        let stored = stored.ok().and_then(|folder| folder.read(version, MOST_STORED).ok());
        let is_sound = |bytes: &Vec<u8>| crate::workspace::hash(bytes).as_deref() == Some(hash);
        stored.filter(is_sound).or_else(|| self.ignored.borrow().copies.get(hash).cloned())
    }

    /// What was held at the last look; None if it is unknown.
    pub(super) fn stored_ignored(&self, hash: &str) -> Option<Arc<HeldIgnored>> {
        let text = nofollow::read(&self.ignored_folder().with_file_name(LIST), MOST_STORED).ok()?;
        let is_the_same = crate::workspace::hash(&text).as_deref() == Some(hash);
        let files = serde_json::from_slice(&text).ok().filter(|_| is_the_same)?;
        Some(Arc::new(HeldIgnored { files, hash: hash.to_owned() }))
    }

    /// Earlier versions stay as long as all of them fit. Errors are ignored: the next look tries again.
    fn prune_versions(&self, held: &HeldIgnored, limits: &IgnoredLimits) {
        let Some(most) = limits.total else { return };
        let folder = self.ignored_folder();
        let needed: BTreeSet<PathBuf> =
            held.files.iter().filter_map(IgnoredFile::version).collect();
        let mut versions = Vec::new();
        list_files(&folder, &mut versions);
        versions.retain(|(path, _)| {
            path.strip_prefix(&folder).is_ok_and(|version| !needed.contains(version))
        });
        versions.sort_by_key(|(_, found)| std::cmp::Reverse(found.modified().ok()));
        let mut total = 0;
        for (path, found) in versions {
            total += found.len();
            if total > most {
                let _ = nofollow::remove(&path);
            }
        }
    }
}

fn list_files(folder: &Path, files: &mut Vec<(PathBuf, Metadata)>) {
    for entry in nofollow::list(folder).unwrap_or_default() {
        let path = folder.join(entry.name);
        if entry.kind == FileKind::Folder {
            list_files(&path, files);
        } else if let Ok(found) = nofollow::look(&path) {
            files.push((path, found));
        }
    }
}
