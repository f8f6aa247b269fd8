//! Packs and deletes many refs in one write of git's `packed-refs` file.
//!
//! libgit2 would rewrite the file for every deleted ref, and pack branches and tags too.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid};

use crate::files::{FileKind, nofollow};

use super::error::{GitError, file_error};
use super::{Result, WorkTree};

const FILE: &str = "packed-refs";
const SORTED: &[u8] = b"sorted";
/// In bytes.
const LARGEST_PACKED: u64 = 1 << 30;
const LARGEST_REF: u64 = 64 << 10;
const NEW_FILE: u32 = 0o666;
/// Fewer loose refs are not packed.
const WORTH_IT: usize = 64;

/// A ref's line, and the one that follows an annotated tag.
type Lines = Vec<u8>;

impl WorkTree {
    /// Packs the refs below these folders, and deletes the refs in `gone` if they still have the
    /// given commit; returns the deleted ones. Locked refs and refs that changed stay as they are.
    pub(super) fn pack_refs<'a>(
        &self,
        folders: &[&str],
        gone: &[(&'a str, &str)],
    ) -> Result<HashSet<&'a str>> {
        let mut loose = Vec::new();
        for folder in folders {
            self.find_loose(Path::new(folder), &mut loose);
        }
        if gone.is_empty() && loose.len() < WORTH_IT {
            return Ok(HashSet::new());
        }
        let file = self.common_dir.join(FILE);
        let lock = self.ref_lock(FILE);
        let (loose, deleted) = self.with_lock_note(&[&lock], || {
            // Deleting a ref needs this lock, so no deleted ref is packed again.
            let held = nofollow::create_new(&lock, NEW_FILE).map_err(file_error("lock", &file))?;
            let read = |name: &String| read_ref(&self.common_dir.join(name));
            let loose = loose.iter().filter_map(|name| Some((name.as_str(), read(name)?)));
            let loose: BTreeMap<&str, Oid> = loose.collect();
            let done = repacked(&file, &loose, gone).and_then(|(bytes, deleted)| {
                replace(&file, &lock, held, &bytes)?;
                Ok(deleted)
            });
            let done = done.inspect_err(|_| drop(nofollow::remove(&lock)));
            Ok((loose, done.map_err(file_error("write", &file))?))
        })?;
        self.delete_loose(&loose)?;
        Ok(deleted)
    }

    /// Sets and deletes (None) refs in the file; loose refs stay as they are.
    pub(super) fn change_packed(&self, changes: &BTreeMap<String, Option<Oid>>) -> Result<()> {
        let (file, lock) = (self.common_dir.join(FILE), self.ref_lock(FILE));
        self.with_lock(&lock, || {
            let held =
                nofollow::create_new(&lock, NEW_FILE).map_err(|error| match error.kind() {
                    ErrorKind::AlreadyExists => GitError::Locked(lock.clone()),
                    _ => file_error("lock", &file)(error),
                })?;
            let done =
                self.changed(&file, changes).and_then(|bytes| replace(&file, &lock, held, &bytes));
            let done = done.inspect_err(|_| drop(nofollow::remove(&lock)));
            done.map_err(file_error("write", &file))
        })
    }

    /// The new file. Git reads the commit of an annotated tag from it.
    fn changed(&self, file: &Path, changes: &BTreeMap<String, Option<Oid>>) -> io::Result<Vec<u8>> {
        let (mut bytes, mut refs) = parse(&read_packed(file)?);
        for (name, to) in changes {
            let key = name.as_bytes().to_owned();
            let Some(id) = to else {
                refs.remove(&key);
                continue;
            };
            let tag = self.repo.find_tag(*id).ok();
            let target = tag.and_then(|tag| tag.into_object().peel(ObjectType::Any).ok());
            let peeled = target.map(|target| format!("^{}\n", target.id())).unwrap_or_default();
            refs.insert(key, format!("{id} {name}\n{peeled}").into_bytes());
        }
        bytes.extend(refs.into_values().flatten());
        Ok(bytes)
    }

    fn find_loose(&self, folder: &Path, found: &mut Vec<String>) {
        for entry in nofollow::list(&self.common_dir.join(folder)).unwrap_or_default() {
            let path = folder.join(entry.name);
            let is_free = |name: &&str| !nofollow::exists(&self.ref_lock(name));
            if entry.kind == FileKind::Folder {
                self.find_loose(&path, found);
            } else if let Some(name) = path.to_str().filter(is_free) {
                found.push(name.to_owned());
            }
        }
    }

    /// Deletes the files of refs that are now packed or deleted, if they still have these values.
    pub(super) fn delete_loose(&self, loose: &BTreeMap<&str, Oid>) -> Result<()> {
        let locks: Vec<PathBuf> = loose.keys().map(|name| self.ref_lock(name)).collect();
        let locks: Vec<&Path> = locks.iter().map(PathBuf::as_path).collect();
        self.with_lock_note(&locks, || {
            let mut folders = BTreeSet::new();
            for (name, lock) in loose.keys().zip(&locks) {
                let file = self.common_dir.join(name);
                if nofollow::create_new(lock, NEW_FILE).is_err() {
                    continue;
                }
                if read_ref(&file) == loose.get(name).copied() {
                    let _ = nofollow::remove(&file);
                }
                nofollow::remove(lock).map_err(file_error("delete", lock))?;
                folders.extend(file.parent().map(Path::to_owned));
            }
            // A folder that is not empty stays.
            folders.iter().for_each(|folder| drop(nofollow::remove_folder(folder)));
            Ok(())
        })
    }
}

/// The new file, and the refs that were deleted from it.
fn repacked<'a>(
    file: &Path,
    loose: &BTreeMap<&str, Oid>,
    gone: &[(&'a str, &str)],
) -> io::Result<(Vec<u8>, HashSet<&'a str>)> {
    let (mut bytes, mut refs) = parse(&read_packed(file)?);
    for (name, id) in loose {
        refs.insert(name.as_bytes().to_owned(), format!("{id} {name}\n").into_bytes());
    }
    let mut deleted = HashSet::new();
    for (name, id) in gone {
        let line = format!("{id} {name}\n").into_bytes();
        if refs.get(name.as_bytes()) == Some(&line) && refs.remove(name.as_bytes()).is_some() {
            deleted.insert(*name);
        }
    }
    bytes.extend(refs.into_values().flatten());
    Ok((bytes, deleted))
}

fn read_packed(file: &Path) -> io::Result<Vec<u8>> {
    match nofollow::read(file, LARGEST_PACKED).map_err(io::Error::from) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        text => text,
    }
}

fn read_ref(file: &Path) -> Option<Oid> {
    let text = nofollow::read_text(file, LARGEST_REF).ok()?;
    Oid::from_str(text.trim_end()).ok()
}

fn parse(text: &[u8]) -> (Vec<u8>, BTreeMap<Vec<u8>, Lines>) {
    // In a file without a header, it is unknown which refs are annotated tags.
    let traits = if text.is_empty() { " peeled fully-peeled" } else { "" };
    let mut header = format!("# pack-refs with:{traits} sorted \n").into_bytes();
    let mut refs: BTreeMap<Vec<u8>, Lines> = BTreeMap::new();
    let mut last = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.first() {
            Some(b'#') => header = with_sorted(line),
            Some(b'^') => refs.entry(last.clone()).or_default().extend(line),
            _ => {
                let name = line.splitn(2, |byte| *byte == b' ').nth(1).unwrap_or_default();
                last = name.trim_ascii_end().to_owned();
                refs.insert(last.clone(), line.to_owned());
            }
        }
    }
    (header, refs)
}

/// The header stays true: the added refs are commits and need no peeling.
fn with_sorted(header: &[u8]) -> Vec<u8> {
    let header = header.trim_ascii_end();
    let is_sorted = header.split(|byte| *byte == b' ').any(|word| word == SORTED);
    let words = if is_sorted { vec![header] } else { vec![header, SORTED] };
    [words.join(&b' '), b" \n".to_vec()].concat()
}

/// Syncs before loose refs are deleted; otherwise a power cut could lose both.
fn replace(file: &Path, lock: &Path, mut new: File, bytes: &[u8]) -> io::Result<()> {
    if let Ok(old) = nofollow::look(file) {
        new.set_permissions(old.permissions())?;
    }
    new.write_all(bytes)?;
    new.sync_all()?;
    nofollow::rename(lock, file)
}
