//! A folder that is held open, and what is below it, without following a link.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::read::{NON_BLOCKING, ReadError, ReadResult, read_from, require_file};

/// Names are relative and have no `..`. A link in any part of them is an error.
#[derive(Debug)]
pub struct Dir(pub(super) OwnedFd);

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);
pub(super) const FOLDER: OFlags = READ.union(OFlags::DIRECTORY);
/// A folder on the way, which need not be readable.
#[cfg(target_os = "linux")]
pub(super) const WAY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
pub(super) const WAY: OFlags = FOLDER;

/// What is at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Nothing,
    File,
    Folder,
    Link,
    /// A pipe, a socket or a device.
    Other,
}

impl FileKind {
    /// Something that no folder can be in the place of.
    pub fn is_in_the_way(self) -> bool {
        matches!(self, Self::File | Self::Link | Self::Other)
    }

    fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

#[derive(Clone, Debug)]
pub struct FolderEntry {
    pub name: OsString,
    pub kind: FileKind,
}

impl Dir {
    /// The path to the folder itself may have links.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY.bits().cast_signed();
        Ok(Self(OpenOptions::new().read(true).custom_flags(flags).open(path)?.into()))
    }

    /// No part of the path may be a link: an absolute one, as the system writes it.
    pub fn open_real(path: &Path) -> io::Result<Self> {
        open_real(path, FOLDER, Mode::empty()).map(Self).map_err(no_folder)
    }

    pub fn dir(&self, name: &Path) -> io::Result<Self> {
        self.open_below(name, FOLDER, Mode::empty()).map(Self).map_err(no_folder)
    }

    pub fn open_file(&self, name: &Path) -> ReadResult<File> {
        let opened = self.open_below(name, READ | NON_BLOCKING, Mode::empty());
        let file = File::from(opened.map_err(|error| match error {
            Errno::LOOP => ReadError::NotAFile("link"),
            Errno::NXIO => ReadError::NotAFile("socket"),
            error => ReadError::Io(error.into()),
        })?);
        require_file(file.metadata()?)?;
        Ok(file)
    }

    pub fn read(&self, name: &Path, limit: u64) -> ReadResult<Vec<u8>> {
        let file = self.open_file(name)?;
        read_from(&file, &file.metadata()?, limit)
    }

    /// What cannot be looked at is not there either.
    pub fn kind(&self, name: &Path) -> FileKind {
        let Ok(folder) = self.folder_of(name) else { return FileKind::Nothing };
        kind_in(&folder, name.file_name().unwrap_or_default())
    }

    /// What is in the folder, in no order.
    pub fn list(&self) -> io::Result<Vec<FolderEntry>> {
        list(rustix::fs::Dir::read_from(&self.0)?)
    }

    /// What is at a name, such as its size and times.
    pub fn look(&self, name: &Path) -> io::Result<Stat> {
        let folder = self.folder_of(name)?;
        Ok(statat(&folder, name.file_name().unwrap_or_default(), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    pub fn read_link(&self, name: &Path) -> io::Result<PathBuf> {
        let folder = self.folder_of(name)?;
        let target = readlinkat(&folder, name.file_name().unwrap_or_default(), Vec::new())?;
        Ok(OsStr::from_bytes(target.as_bytes()).into())
    }

    pub(super) fn folder_of(&self, name: &Path) -> io::Result<Folder<'_>> {
        match name.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) => {
                Ok(Folder::Below(self.open_below(folder, WAY, Mode::empty()).map_err(no_folder)?))
            }
            None => Ok(Folder::Own(self.0.as_fd())),
        }
    }

    /// In one call where the system can, else part by part.
    pub(super) fn open_below(
        &self,
        name: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> rustix::io::Result<OwnedFd> {
        if !name.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(Errno::XDEV);
        }
        match open_at_once(&self.0, name, flags, mode) {
            // Unknown to the system, or forbidden by a sandbox.
            Err(Errno::NOSYS | Errno::PERM) => open_by_parts(&self.0, name, flags, mode),
            opened => opened,
        }
    }
}

/// The folder that a name is in.
pub(super) enum Folder<'a> {
    Own(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl AsFd for Folder<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(folder) => *folder,
            Self::Below(folder) => folder.as_fd(),
        }
    }
}

pub(super) fn list(mut folder: rustix::fs::Dir) -> io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    while let Some(entry) = folder.read() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let kind = match entry.file_type() {
            _ if name == "." || name == ".." => continue,
            FileType::Unknown => kind_in(folder.fd()?, name),
            kind => FileKind::of(kind),
        };
        entries.push(FolderEntry { name: name.to_owned(), kind });
    }
    Ok(entries)
}

fn kind_in(folder: impl AsFd, name: &OsStr) -> FileKind {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    found.map_or(FileKind::Nothing, |found| FileKind::of(FileType::from_raw_mode(found.st_mode)))
}

/// At an absolute path without `..`, none of whose parts is a link. At another one nothing is found.
pub(super) fn open_real(path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    let root = Path::new("/");
    let below = path.strip_prefix(root).map_err(|_| Errno::NOENT)?;
    if !below.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(Errno::NOENT);
    }
    match open_at_once(rustix::fs::CWD, path, flags | OFlags::NOFOLLOW, mode) {
        Err(Errno::NOSYS | Errno::PERM) => {
            open_by_parts(rustix::fs::open(root, WAY, Mode::empty())?, below, flags, mode)
        }
        opened => opened,
    }
}

fn open_by_parts(
    at: impl AsFd,
    name: &Path,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let mut folder: Option<OwnedFd> = None;
    for part in name.parent().into_iter().flat_map(Path::components) {
        let at = folder.as_ref().map_or(at.as_fd(), AsFd::as_fd);
        folder = Some(openat(at, part, WAY | OFlags::NOFOLLOW, Mode::empty())?);
    }
    let at = folder.as_ref().map_or(at.as_fd(), AsFd::as_fd);
    openat(at, name.file_name().unwrap_or(OsStr::new(".")), flags | OFlags::NOFOLLOW, mode)
}

#[cfg(target_os = "linux")]
fn open_at_once(
    at: impl AsFd,
    name: &Path,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let beneath = if name.is_absolute() { ResolveFlags::empty() } else { ResolveFlags::BENEATH };
    openat2(at, name, flags, mode, beneath | ResolveFlags::NO_SYMLINKS)
}

#[cfg(not(target_os = "linux"))]
fn open_at_once(_: impl AsFd, _: &Path, _: OFlags, _: Mode) -> rustix::io::Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// A link where a folder should be is the one or the other, by the way it was found.
pub(super) fn no_folder(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::NOTDIR => io::Error::new(
            io::ErrorKind::NotADirectory,
            "it is a link or a file instead of a folder",
        ),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests;
