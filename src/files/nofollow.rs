//! Paths none of whose parts may be a link: in the work tree, `.ralph` and the git folder.
//!
//! Their roots are looked up once, without links. A link on the way was planted later, and what it
//! leads to is not there. A link at the path itself is never followed either.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};

use super::Dir;
use super::atomic::naming;
use super::dir::{self, FOLDER, FileKind, FolderEntry, WAY, no_folder, open_real};
use super::read::{NON_BLOCKING, ReadResult, read_from, text};
use super::write_below::PRIVATE_FOLDER;

const NEW_FILE: u32 = 0o666;
const NEW_FOLDER: u32 = 0o777;

/// What is there, such as its size and times.
#[cfg(target_os = "linux")]
pub fn look(path: &Path) -> io::Result<Metadata> {
    let found = open_real(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    File::from(found.map_err(no_folder)?).metadata()
}

#[cfg(not(target_os = "linux"))]
pub fn look(path: &Path) -> io::Result<Metadata> {
    in_folder(path)?;
    std::fs::symlink_metadata(path)
}

/// What cannot be looked at is not there either.
pub fn kind(path: &Path) -> FileKind {
    in_folder(path).map_or(FileKind::Nothing, |(folder, name)| folder.kind(name))
}

pub fn exists(path: &Path) -> bool {
    kind(path) != FileKind::Nothing
}

pub fn is_file(path: &Path) -> bool {
    kind(path) == FileKind::File
}

pub fn is_folder(path: &Path) -> bool {
    kind(path) == FileKind::Folder
}

/// What is in a folder, in no order.
pub fn list(path: &Path) -> io::Result<Vec<FolderEntry>> {
    let folder = open_real(path, FOLDER, Mode::empty()).map_err(no_folder)?;
    dir::list(rustix::fs::Dir::new(folder)?)
}

pub fn read_link(path: &Path) -> io::Result<PathBuf> {
    let (folder, name) = in_folder(path)?;
    folder.read_link(name)
}

pub fn open(path: &Path) -> ReadResult<File> {
    let (folder, name) = in_folder(path)?;
    folder.open_file(name)
}

/// The whole content; an error if it is longer than `limit`.
pub fn read(path: &Path, limit: u64) -> ReadResult<Vec<u8>> {
    let file = open(path)?;
    read_from(&file, &file.metadata()?, limit)
}

/// The same as text.
pub fn read_text(path: &Path, limit: u64) -> ReadResult<String> {
    text(read(path, limit)?)
}

/// A folder as others make one, and those on the way to it.
pub fn make_folders(path: &Path) -> io::Result<()> {
    make_folders_with(path, NEW_FOLDER)
}

/// The same for their owner only. Those that exist stay as they are.
pub fn make_private_folders(path: &Path) -> io::Result<()> {
    make_folders_with(path, PRIVATE_FOLDER)
}

/// One more folder, for its owner only; it becomes so if it exists.
pub fn private_folder(path: &Path) -> io::Result<()> {
    let make = || {
        let (folder, name) = in_folder(path)?;
        folder.make_dir(name).map(drop)
    };
    make().map_err(naming(path))
}

fn make_folders_with(path: &Path, mode: u32) -> io::Result<()> {
    let is_there = |path: &&Path| kind(path) == FileKind::Folder;
    let Some(there) = path.ancestors().find(is_there) else { return Ok(()) };
    let missing = path.strip_prefix(there).map_err(io::Error::other)?;
    Dir(open_real(there, WAY, Mode::empty()).map_err(no_folder)?).make_folders(missing, mode)
}

/// To write, if there is nothing at the path.
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    let (folder, name) = in_folder(path)?;
    folder.create_new(name, mode)
}

/// To read and write; a new file if there is none.
pub(super) fn open_or_create(path: &Path, more: OFlags, mode: u32) -> io::Result<File> {
    let flags = more | OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | NON_BLOCKING;
    Ok(open_real(path, flags, Mode::from_raw_mode(mode)).map_err(no_folder)?.into())
}

/// Writes a new file, if there is nothing at the path.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_new(path, NEW_FILE)?.write_all(bytes)
}

/// To write, in a folder and without a name in it.
#[cfg(target_os = "linux")]
pub(super) fn create_unnamed(folder: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(open_real(folder, flags, Mode::from_raw_mode(mode)).map_err(no_folder)?.into())
}

/// To a file without one.
pub(super) fn give_name(file: &File, path: &Path) -> io::Result<()> {
    let (folder, name) = in_folder(path)?;
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, own.as_str(), &folder.0, name, AtFlags::SYMLINK_FOLLOW)?)
}

pub fn make_link(target: &Path, path: &Path) -> io::Result<()> {
    let (folder, name) = in_folder(path)?;
    folder.make_link(target, name)
}

/// Replaces a file.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let ((old, from), (new, to)) = (in_folder(from)?, in_folder(to)?);
    old.rename(from, &new, to)
}

/// A file or a link; nothing is fine.
pub fn remove(path: &Path) -> io::Result<()> {
    if_there(in_folder(path).and_then(|(folder, name)| folder.remove(name)))
}

/// A folder, if it is empty.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    let (folder, name) = in_folder(path)?;
    folder.remove_dir(name)
}

/// A folder with all that is in it, or whatever else it is; nothing is fine.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    if_there(in_folder(path).and_then(|(folder, name)| folder.remove_tree(name)))
}

fn if_there(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Of a file or a folder.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let (folder, name) = in_folder(path)?;
    folder.set_mode(name, mode)
}

pub(super) fn in_folder(path: &Path) -> io::Result<(Dir, &Path)> {
    let no_name = || io::Error::from(io::ErrorKind::InvalidInput);
    let (folder, name) = path.parent().zip(path.file_name()).ok_or_else(no_name)?;
    let folder = open_real(folder, WAY, Mode::empty()).map_err(no_folder)?;
    Ok((Dir(folder), Path::new(name)))
}

#[cfg(test)]
mod tests;
