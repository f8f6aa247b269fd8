//! The human's instructions (PROMPT.md), which agents can write.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::super::WorkTree;
use super::super::error::{GitError, file_error};

/// The most bytes to hold.
const LONGEST: u64 = 16 * 1024 * 1024;

/// The file as it was before an attempt.
#[derive(Clone, Debug)]
pub struct Instructions {
    path: PathBuf,
    /// The file itself: PROMPT.md may be a link.
    real: PathBuf,
    bytes: Vec<u8>,
    mode: u32,
}

impl Instructions {
    /// None if they cannot be read.
    pub fn hold(path: &Path) -> Option<Self> {
        let real = fs::canonicalize(path).ok()?;
        let bytes = read(&real).ok()?;
        let mode = fs::metadata(&real).ok()?.permissions().mode() & 0o777;
        Some(Self { path: path.to_owned(), real, bytes, mode })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The current content if it differs; empty if it cannot be read.
    pub fn changed(&self) -> Option<Vec<u8>> {
        let is_same_file = fs::canonicalize(&self.path).is_ok_and(|real| real == self.real);
        match read(&self.real) {
            Ok(now) if is_same_file && now == self.bytes => None,
            Ok(now) if is_same_file => Some(now),
            _ => Some(read(&self.path).unwrap_or_default()),
        }
    }

    /// Never writes through a new link.
    pub fn restore(&self, tree: &WorkTree) -> Result<(), GitError> {
        self.put_back(tree).map_err(file_error("restore", &self.path))
    }

    fn put_back(&self, tree: &WorkTree) -> io::Result<()> {
        let folder = self.real.parent().unwrap_or(&self.real);
        if fs::canonicalize(folder)? != folder {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "its folder is now a link"));
        }
        if fs::symlink_metadata(&self.real).is_ok_and(|found| found.is_symlink()) {
            fs::remove_file(&self.real)?;
        }
        tree.write_whole(&self.real, &self.bytes, self.mode)?;
        if self.changed().is_none() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "the link to it changed"))
    }
}

/// Opens without blocking: the file may have become a pipe.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}
