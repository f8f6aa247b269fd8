//! Private files and folders, and files that are replaced as a whole.
//!
//! A reader, a kill or a power cut sees the old or the new version of a replaced file, whole. The
//! file itself is never written into, and a symlink never becomes a file. Hard links, access lists
//! and extended attributes do not survive a replacement.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Gid, OFlags, Uid};
use tempfile::{Builder, NamedTempFile};

use super::read::require_file;
use super::{FileKind, nofollow};

const RANDOM_LEN: usize = 6;
const SUFFIX: &str = ".tmp";
const NEW_FILE_MODE: u32 = 0o644;
const PRIVATE: u32 = 0o600;
const LARGEST_COPY: u64 = 64 << 20;

/// A file for its owner only, to write anywhere in it. No part of the path may be a link. The error does
/// not name the file.
pub fn keep_private(path: &Path) -> io::Result<File> {
    own(path, || nofollow::open_or_create(path, OFlags::empty(), PRIVATE))
}

/// The same, to read and append.
pub fn append_private(path: &Path) -> io::Result<File> {
    own(path, || nofollow::open_or_create(path, OFlags::APPEND, PRIVATE))
}

/// Neither through a link nor into something that is not a file, where the opening would block. A file
/// that has a name elsewhere too is replaced by a copy.
fn own(path: &Path, open: impl Fn() -> io::Result<File>) -> io::Result<File> {
    let file = open()?;
    if require_file(file.metadata()?)?.nlink() <= 1 {
        return Ok(file);
    }
    publish(path, &nofollow::read(path, LARGEST_COPY)?)?;
    open()
}

/// Creates a private file. A file that exists is not even opened: closing it again would drop the
/// locks that SQLite holds on it in this process.
pub fn ensure_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(naming(path)(error)),
        _ => Ok(()),
    }
}

/// Also makes a folder private that exists with a wider mode.
pub fn private_folder(path: &Path) -> io::Result<()> {
    let make = || {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        if path.metadata()?.mode() & 0o077 != 0 {
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
        }
        Ok(())
    };
    make().map_err(naming(path))
}

/// The system's own errors do not name the file.
pub fn naming(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| {
        let text = format!("cannot write `{}`: {error}", path.display());
        io::Error::new(error.kind(), text)
    }
}

/// Bytes that may still be written at the path. None if the system does not know, as on some
/// network file systems.
pub fn free_space(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Replaces the whole file, through symlinks, and keeps its mode and, if allowed, its owner.
///
/// Returns the new file's metadata if its times tell it from any later version.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<Option<Metadata>> {
    replace_real(&resolve(path)?, bytes)
}

/// The same, and no part of the path may be a link.
pub fn replace_real(target: &Path, bytes: &[u8]) -> io::Result<Option<Metadata>> {
    let old = existing_file(target)?;
    let mut new = temporary(target, |name| nofollow::create_new(name, NEW_FILE_MODE))?;
    new.as_file_mut().write_all(bytes)?;
    let own_time = finish(new.as_file(), old.as_ref())?;
    let file = persist(new, target)?;
    sync_folder_of(target)?;
    Ok(as_written(&file, own_time, bytes.len()))
}

/// The next version of a file, on the disk already and without a name: a kill leaves nothing.
pub struct PreparedFile {
    file: File,
    target: PathBuf,
    own_time: Option<SystemTime>,
    size: usize,
}

/// No part of the path may be a link. None if the system has no files without a name.
#[cfg(target_os = "linux")]
pub fn prepare(target: &Path, bytes: &[u8]) -> Option<PreparedFile> {
    let mut file = nofollow::create_unnamed(folder_of(target), NEW_FILE_MODE).ok()?;
    file.write_all(bytes).ok()?;
    let own_time = finish(&file, existing_file(target).ok()?.as_ref()).ok()?;
    Some(PreparedFile { file, target: target.to_owned(), own_time, size: bytes.len() })
}

#[cfg(not(target_os = "linux"))]
pub fn prepare(_: &Path, _: &[u8]) -> Option<PreparedFile> {
    None
}

impl PreparedFile {
    /// Like `replace`, with a rename instead of writing. The folder is not synced.
    pub fn replace(self) -> io::Result<Option<Metadata>> {
        if let Some(old) = existing_file(&self.target)? {
            keep_owner_and_mode(&self.file, &old)?;
        }
        let named = temporary(&self.target, |name| nofollow::give_name(&self.file, name))?;
        persist(named, &self.target)?;
        Ok(as_written(&self.file, self.own_time, self.size))
    }
}

/// Writes a small file atomically, readable only by its owner. Not synced: it may be lost in a
/// power cut. No part of the path may be a link; one in the file's place is replaced.
pub fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = temporary(path, |name| nofollow::create_new(name, PRIVATE))?;
    new.as_file_mut().write_all(bytes)?;
    persist(new, path).map(drop)
}

/// Removes temporary files that a killed `replace` or `publish` of this file left.
///
/// Only for the holder of the lock: the temporary file of a running `replace` is removed too.
pub fn remove_leftovers(path: &Path) -> io::Result<()> {
    let target = resolve(path)?;
    let prefix = prefix_for(&target)?;
    for entry in nofollow::list(folder_of(&target))? {
        if is_leftover(&entry.name, &prefix) && entry.kind == FileKind::File {
            let path = target.with_file_name(entry.name);
            nofollow::remove(&path).map_err(naming(&path))?;
        }
    }
    Ok(())
}

/// Where the file really is, or would be. A symlink to nothing is an error.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => {
            let name = path.file_name().unwrap_or_default();
            fs::canonicalize(folder_of(path)).map(|folder| folder.join(name))
        }
    }
}

/// The folder of a file; for a bare name the current one.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn existing_file(target: &Path) -> io::Result<Option<Metadata>> {
    match nofollow::look(target) {
        Ok(found) if found.is_file() => Ok(Some(found)),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file next to the target, such as `.PRD.json.ralph-a1B2c3.tmp`.
fn temporary<F>(
    target: &Path,
    make: impl FnMut(&Path) -> io::Result<F>,
) -> io::Result<NamedTempFile<F>> {
    let prefix = prefix_for(target)?;
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(RANDOM_LEN).make_in(folder_of(target), make)
}

fn persist<F>(new: NamedTempFile<F>, target: &Path) -> io::Result<F> {
    nofollow::rename(new.path(), target)?;
    let (file, mut path) = new.into_parts();
    path.disable_cleanup(true);
    Ok(file)
}

/// `.PRD.json.ralph-`
fn prefix_for(target: &Path) -> io::Result<OsString> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name");
    let mut prefix = OsString::from(".");
    prefix.push(target.file_name().ok_or_else(no_name)?);
    prefix.push(".ralph-");
    Ok(prefix)
}

fn is_leftover(name: &OsStr, prefix: &OsStr) -> bool {
    let rest = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
    let random = rest.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    random.is_some_and(|random| {
        random.len() == RANDOM_LEN && random.iter().all(u8::is_ascii_alphanumeric)
    })
}

/// Completes and syncs a new version. Returns the time that was set on it.
fn finish(file: &File, old: Option<&Metadata>) -> io::Result<Option<SystemTime>> {
    if let Some(old) = old {
        keep_owner_and_mode(file, old)?;
    }
    let own_time = set_own_time(file);
    file.sync_all()?;
    Ok(own_time)
}

fn keep_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only root may give a file away; for others the file becomes theirs.
        let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
        let _ = rustix::fs::fchown(file, Some(owner), Some(group));
    }
    // After the owner, because giving a file away clears bits of its mode.
    file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))
}

/// To the nanosecond, while the system's own times are some milliseconds apart: any later write to
/// the file leaves another time.
fn set_own_time(file: &File) -> Option<SystemTime> {
    let now = SystemTime::now();
    file.set_modified(now).ok().map(|()| now)
}

fn as_written(file: &File, own_time: Option<SystemTime>, size: usize) -> Option<Metadata> {
    let found = file.metadata().ok()?;
    let is_own = found.modified().ok() == Some(own_time?) && found.len() == size as u64;
    is_own.then_some(found)
}

/// Makes a renamed file survive a power cut.
pub fn sync_folder_of(target: &Path) -> io::Result<()> {
    match super::open_place(folder_of(target))?.sync_all() {
        // Some network file systems cannot; the new file is in place anyway.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests;
