//! The backlog file on disk: reading, checking and writing PRD.json.
//!
//! Owns the file and its exact text. It never re-serialises the backlog: a
//! change touches the bytes of the marks and nothing else.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{Access, OFlags};

use crate::model::Backlog;
use crate::text::backlog;
use crate::text::backlog::{Diagnostic, MAX_BYTES};

use super::atomic;

mod edit;
mod error;
mod stamp;
#[cfg(test)]
mod tests;
mod tracked;

use stamp::Stamp;

pub use edit::{EditError, Mark, set_mark};
pub use error::{LoadError, WriteError};
pub use tracked::{MarkedText, PrdLook, TrackedPrd};

/// A backlog file by its path. Symlinks are followed anew at each use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrdFile {
    path: PathBuf,
}

/// The file's exact text and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    pub text: String,
    pub backlog: Backlog,
    pub warnings: Vec<Diagnostic>,
}

impl PrdFile {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// As it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn load(&self) -> Result<Loaded, LoadError> {
        self.understand(self.text()?.0)
    }

    fn understand(&self, text: String) -> Result<Loaded, LoadError> {
        let parsed = backlog::parse(&text);
        match parsed.backlog {
            Some(backlog) => Ok(Loaded { text, backlog, warnings: parsed.diagnostics }),
            None => Err(LoadError::invalid(&self.path, &text, &parsed.diagnostics)),
        }
    }

    /// Can `write` replace the file? That takes the right to write the file and its folder.
    pub fn check_writable(&self) -> Result<(), LoadError> {
        self.check_is_file(fs::metadata(&self.path))?;
        let target = atomic::resolve(&self.path).map_err(|error| self.failed(error))?;
        let folder = atomic::folder_of(&target);
        for (what, access) in [(target.as_path(), Access::WRITE_OK), (folder, FOLDER_ACCESS)] {
            rustix::fs::access(what, access)
                .map_err(|error| LoadError::not_writable(&self.path, what, error.into()))?;
        }
        Ok(())
    }

    /// Replaces the file's text at once: whoever reads sees the old or the new one, whole.
    pub fn write(&self, text: &str) -> Result<(), WriteError> {
        atomic::replace(&self.path, text.as_bytes())
            .map(drop)
            .map_err(|source| WriteError { path: self.path.clone(), source })
    }

    /// With a stamp to tell whether it is still this text; None where the times cannot tell.
    fn text(&self) -> Result<(String, Option<Stamp>), LoadError> {
        let (bytes, stamp) = self.bytes()?;
        if bytes.len() > MAX_BYTES {
            return Err(LoadError::TooLarge { path: self.path.clone() });
        }
        let text = String::from_utf8(bytes);
        Ok((text.map_err(|error| LoadError::not_utf8(&self.path, &error))?, stamp))
    }

    fn bytes(&self) -> Result<(Vec<u8>, Option<Stamp>), LoadError> {
        // Before it is opened, because opening a device may already act on it.
        self.check_is_file(fs::metadata(&self.path))?;
        let file = open_without_waiting(&self.path).map_err(|error| self.failed(error))?;
        let before = self.check_is_file(file.metadata())?;
        // One more than there should be, so that the end is found without another buffer.
        let size = usize::try_from(before.len()).unwrap_or(MAX_BYTES).min(MAX_BYTES);
        let mut bytes = Vec::with_capacity(size + 1);
        let most = MAX_BYTES as u64 + 1;
        (&file).take(most).read_to_end(&mut bytes).map_err(|error| self.failed(error))?;
        let after = file.metadata().map_err(|error| self.failed(error))?;
        Ok((bytes, Stamp::of_read(&before, &after)))
    }

    fn check_is_file(&self, found: io::Result<Metadata>) -> Result<Metadata, LoadError> {
        let found = found.map_err(|error| self.failed(error))?;
        if found.is_file() {
            return Ok(found);
        }
        Err(LoadError::NotAFile { path: self.path.clone(), is_folder: found.is_dir() })
    }

    fn failed(&self, error: io::Error) -> LoadError {
        LoadError::from_io(&self.path, error)
    }
}

const FOLDER_ACCESS: Access = Access::WRITE_OK.union(Access::EXEC_OK);

/// A file can have become a pipe since it was looked at, and opening one waits for a writer.
fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits();
    OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)
}
