//! Changes below a folder that is held open: private files and folders, and nothing through a link.
//!
//! A file is never written into: a hard link to a file elsewhere may be in its place.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RawMode, fchmod, fstat, mkdirat, renameat, symlinkat};
use rustix::fs::{chmod, linkat, unlinkat};
use rustix::io::Errno;

use super::dir::{Dir, FileKind, WAY, no_folder};

pub(super) const PRIVATE_FILE: u32 = 0o600;
pub(super) const PRIVATE_FOLDER: RawMode = 0o700;
const OF_OTHERS: RawMode = 0o077;
/// Somebody else may put something in the place again.
const TRIES: usize = 8;

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

    /// A folder, and those on the way to it. Those that exist stay as they are.
    pub fn make_folders(&self, name: &Path, mode: u32) -> io::Result<()> {
        let mut made = None::<Self>;
        for part in name {
            let at = made.as_ref().unwrap_or(self);
            match mkdirat(&at.0, part, Mode::from_raw_mode(mode as RawMode)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            made = Some(at.way(Path::new(part))?);
        }
        Ok(())
    }

    /// A new file to write, if there is nothing at the name.
    pub fn create_new(&self, name: &Path, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(self.open_below(name, flags, Mode::from_raw_mode(mode as RawMode))?.into())
    }

    /// Of a file or a folder, which need not be readable.
    #[cfg(target_os = "linux")]
    pub fn set_mode(&self, name: &Path, mode: u32) -> io::Result<()> {
        let found = self.open_below(name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let path = format!("/proc/self/fd/{}", found.as_raw_fd());
        Ok(chmod(path, Mode::from_raw_mode(mode as RawMode))?)
    }

    #[cfg(not(target_os = "linux"))]
    pub fn set_mode(&self, name: &Path, mode: u32) -> io::Result<()> {
        let (folder, mode) = (self.folder_of(name)?, Mode::from_raw_mode(mode as RawMode));
        let name = name.file_name().unwrap_or_default();
        Ok(rustix::fs::chmodat(&folder, name, mode, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    pub fn make_link(&self, target: &Path, name: &Path) -> io::Result<()> {
        let folder = self.folder_of(name)?;
        Ok(symlinkat(target, &folder, name.file_name().unwrap_or_default())?)
    }

    /// A new private file to read and write. Replaces a file, link, pipe or socket; an error if it
    /// is a folder.
    pub fn create(&self, name: &Path) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            match self.open_below(name, flags, Mode::from_raw_mode(PRIVATE_FILE as RawMode)) {
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

    /// A folder with all that is in it, or whatever else it is; nothing is fine.
    pub fn remove_tree(&self, name: &Path) -> io::Result<()> {
        if self.kind(name) != FileKind::Folder {
            return self.remove(name);
        }
        let folder = self.dir(name)?;
        for entry in folder.list()? {
            folder.remove_tree(Path::new(&entry.name))?;
        }
        self.remove_dir(name)
    }

    /// The file gets another name too, which must be free.
    pub fn link(&self, from: &Path, folder: &Self, to: &Path) -> io::Result<()> {
        let (old, new) = (self.folder_of(from)?, folder.folder_of(to)?);
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        Ok(linkat(&old, name(from), &new, name(to), AtFlags::empty())?)
    }

    /// If it is empty.
    pub fn remove_dir(&self, name: &Path) -> io::Result<()> {
        let folder = self.folder_of(name)?;
        Ok(unlinkat(&folder, name.file_name().unwrap_or_default(), AtFlags::REMOVEDIR)?)
    }

    /// To reach what is below it, not to list it.
    pub(super) fn way(&self, name: &Path) -> io::Result<Self> {
        self.open_below(name, WAY, Mode::empty()).map(Self).map_err(no_folder)
    }

    fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }
}

#[cfg(test)]
mod tests;
