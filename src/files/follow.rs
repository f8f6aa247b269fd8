//! Paths that the human chose, or that nothing untrusted can change: links are followed.
//!
//! Such as a backlog in a linked folder, programs, temporary folders, and what the system shows of
//! processes. Reading them does not block either: `read` and `open` are for these paths too.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// What is there, such as its size and times.
pub fn look(path: &Path) -> io::Result<Metadata> {
    fs::metadata(path)
}

/// The same of a link itself, if there is one at the end.
pub fn look_at_end(path: &Path) -> io::Result<Metadata> {
    fs::symlink_metadata(path)
}

pub fn exists(path: &Path) -> bool {
    path.exists()
}

pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// The path without links.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

pub fn read_link(path: &Path) -> io::Result<PathBuf> {
    fs::read_link(path)
}

/// Names in a folder; none if it cannot be read.
pub fn names(folder: &Path) -> impl Iterator<Item = OsString> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name())
}

pub fn make_folders(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// For its other end, which waits for it. Neither reads nor writes.
pub fn open_pipe(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// A device or a terminal, to read and write.
pub fn open_device(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}
