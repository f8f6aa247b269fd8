//! Changes below a folder that is held open: private files and folders, and nothing through a link.
//!
//! A file is never written into: a hard link to a file elsewhere may be in its place.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, fchmod, fstat, mkdirat, renameat};
use rustix::fs::{statat, unlinkat};
use rustix::io::Errno;

use super::dir::{Dir, FOLDER, no_folder};

const PRIVATE_FILE: RawMode = 0o600;
const PRIVATE_FOLDER: RawMode = 0o700;
const OF_OTHERS: RawMode = 0o077;
/// Somebody else may put something in the place again.
const TRIES: usize = 8;

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
}

impl Dir {
    /// Also makes a folder private that exists with a wider mode. An error of the kind
    /// `NotADirectory`: something else is in the place of one of its parts.
    pub fn make_dir(&self, name: &Path) -> io::Result<Self> {
        let mut made = self.again()?;
        for part in name {
            let part = Path::new(part);
            match mkdirat(&made.0, part, Mode::from_raw_mode(PRIVATE_FOLDER)) {
                Ok(()) | Err(Errno::EXIST) => made = made.dir(part)?,
                Err(error) => return Err(error.into()),
            }
            if fstat(&made.0)?.st_mode & OF_OTHERS != 0 {
                fchmod(&made.0, Mode::from_raw_mode(PRIVATE_FOLDER))?;
            }
        }
        Ok(made)
    }

    /// A new private file to read and write. Replaces a file, link, pipe or socket; an error if it
    /// is a folder.
    pub fn create(&self, name: &Path) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            match self.open_below(name, flags, Mode::from_raw_mode(PRIVATE_FILE)) {
                Err(Errno::EXIST) => self.remove(name)?,
                made => return Ok(made.map(File::from)?),
            }
        }
        Err(Errno::EXIST.into())
    }

    /// Writes a private file whole for every reader. Not synced: it may be lost in a power cut.
    pub fn publish(&self, name: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut half = std::ffi::OsString::from(".");
        half.push(name.file_name().unwrap_or_default());
        half.push(".tmp");
        let half = name.with_file_name(half);
        self.create(&half)?.write_all(bytes)?;
        self.rename(&half, self, name)
    }

    /// Whatever it is, a link included. Replaces a file.
    pub fn rename(&self, from: &Path, folder: &Self, to: &Path) -> io::Result<()> {
        let (old, new) = (self.folder_of(from)?, folder.folder_of(to)?);
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        Ok(renameat(&old, name(from), &new, name(to))?)
    }

    /// A file or a link; nothing is fine.
    pub fn remove(&self, name: &Path) -> io::Result<()> {
        let folder = self.folder_of(name)?;
        // Whoever waits for a pipe to be opened would wait for ever.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let is_special = self.kind(name) == FileKind::Other;
        let writer = is_special.then(|| self.open_below(name, flags, Mode::empty()));
        let removed = unlinkat(&folder, name.file_name().unwrap_or_default(), AtFlags::empty());
        drop(writer);
        match removed {
            Err(Errno::NOENT) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// If it is empty.
    pub fn remove_dir(&self, name: &Path) -> io::Result<()> {
        let folder = self.folder_of(name)?;
        Ok(unlinkat(&folder, name.file_name().unwrap_or_default(), AtFlags::REMOVEDIR)?)
    }

    /// What cannot be looked at is not there either.
    pub fn kind(&self, name: &Path) -> FileKind {
        let Ok(folder) = self.folder_of(name) else { return FileKind::Nothing };
        let name = name.file_name().unwrap_or_default();
        let Ok(found) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return FileKind::Nothing;
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Folder,
            FileType::Symlink => FileKind::Link,
            _ => FileKind::Other,
        }
    }

    fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    fn folder_of(&self, name: &Path) -> io::Result<OwnedFd> {
        match name.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) => self.open_below(folder, FOLDER, Mode::empty()).map_err(no_folder),
            None => Ok(self.0.try_clone()?),
        }
    }
}

#[cfg(test)]
mod tests;
