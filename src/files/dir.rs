//! A folder that is held open, and what is below it, without following a link.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::read::{NON_BLOCKING, ReadError, ReadResult, read_from, require_file};

/// Names are relative and have no `..`. A link in any part of them is an error.
#[derive(Debug)]
pub struct Dir(pub(super) OwnedFd);

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);
pub(super) const FOLDER: OFlags = READ.union(OFlags::DIRECTORY);

impl Dir {
    /// The path to the folder itself may have links.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY.bits().cast_signed();
        Ok(Self(OpenOptions::new().read(true).custom_flags(flags).open(path)?.into()))
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
            Err(Errno::NOSYS | Errno::PERM) => self.open_by_parts(name, flags, mode),
            opened => opened,
        }
    }

    fn open_by_parts(&self, name: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let mut folder: Option<OwnedFd> = None;
        let folders = name.parent().into_iter().flat_map(Path::components);
        for part in folders {
            let at = folder.as_ref().unwrap_or(&self.0);
            folder = Some(openat(at, part, FOLDER | OFlags::NOFOLLOW, Mode::empty())?);
        }
        let at = folder.as_ref().unwrap_or(&self.0);
        openat(at, name.file_name().unwrap_or_default(), flags | OFlags::NOFOLLOW, mode)
    }
}

#[cfg(target_os = "linux")]
fn open_at_once(
    at: &OwnedFd,
    name: &Path,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    openat2(at, name, flags, mode, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

#[cfg(not(target_os = "linux"))]
fn open_at_once(_: &OwnedFd, _: &Path, _: OFlags, _: Mode) -> rustix::io::Result<OwnedFd> {
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
