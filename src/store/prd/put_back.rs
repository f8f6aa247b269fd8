//! Puts PRD.json back where something else is now, and keeps that.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::files::{self, ReadError, atomic};
use crate::text::backlog::MAX_BYTES;

use super::{MarkedText, PrdFile, TrackedPrd, WriteError, WrittenText};

/// Of a file that is made anew.
const NEW_MODE: u32 = 0o644;

/// Where the file was when it was opened.
pub(super) struct Place {
    /// The path was a symlink to this.
    link: Option<PathBuf>,
    target: PathBuf,
    mode: u32,
}

impl Place {
    pub fn of(file: &PrdFile) -> io::Result<Self> {
        let target = atomic::resolve(file.path())?;
        let mode = fs::metadata(&target)?.permissions().mode();
        Ok(Self { link: file.path().read_link().ok(), target, mode })
    }

    /// Of a file that may be anything by now. `link`: its path was a symlink to this.
    pub fn known(path: &Path, link: Option<PathBuf>) -> Self {
        let beside = |link: &PathBuf| atomic::folder_of(path).join(link);
        let target = link.as_ref().map_or_else(|| path.to_owned(), beside);
        let found = fs::symlink_metadata(&target).ok().filter(Metadata::is_file);
        let mode = found.map_or(NEW_MODE, |found| found.permissions().mode());
        Self { link, target, mode }
    }

    /// No part of the way to the file is another symlink than it was then.
    pub fn is_at(&self, path: &Path) -> bool {
        self.has_same_link(path) && (self.link.is_none() || !self.target.is_symlink())
    }

    fn has_same_link(&self, path: &Path) -> bool {
        path.read_link().ok() == self.link
    }

    fn put_back(&self, path: &Path, text: &str, keep: &Path) -> io::Result<PutBack> {
        let mut kept = None;
        if !self.has_same_link(path) {
            kept = set_aside(path, keep)?;
            if let Some(link) = &self.link {
                symlink(link, path)?;
            }
        }
        fs::create_dir_all(atomic::folder_of(&self.target))?;
        if self.target.is_symlink() {
            kept = set_aside(&self.target, keep)?;
        }
        let was_file = match files::read(&self.target, MAX_BYTES as u64) {
            Ok(bytes) => {
                let copy = free(keep)?;
                atomic::publish(&copy, &bytes)?;
                kept = Some(copy);
                true
            }
            Err(ReadError::Io(error)) if error.kind() == ErrorKind::NotFound => false,
            Err(_) => {
                kept = set_aside(&self.target, keep)?;
                false
            }
        };
        let metadata = atomic::replace(&self.target, text.as_bytes())?;
        if !was_file {
            fs::set_permissions(&self.target, Permissions::from_mode(self.mode))?;
            return Ok(PutBack { kept, metadata: None });
        }
        Ok(PutBack { kept, metadata })
    }
}

impl PrdFile {
    /// Its path leads where it did: it was a symlink to `link`, or none.
    pub fn has_link(&self, link: Option<&Path>) -> bool {
        Place::known(self.path(), link.map(Path::to_owned)).is_at(self.path())
    }

    /// Like `TrackedPrd::put_back`, for a file that this process has not opened.
    pub fn put_back(
        &self,
        link: Option<&Path>,
        text: &str,
        keep: &Path,
    ) -> Result<Option<PathBuf>, WriteError> {
        let path = self.path().to_owned();
        let done = Place::known(&path, link.map(Path::to_owned)).put_back(&path, text, keep);
        done.map(|done| done.kept).map_err(|source| WriteError::Failed { path, source })
    }
}

struct PutBack {
    kept: Option<PathBuf>,
    metadata: Option<Metadata>,
}

impl TrackedPrd {
    /// Writes the text regardless of what is at its path. That is kept as `keep`, or under a similar
    /// name if that is taken; returns the name, unless nothing was there.
    pub fn put_back(
        &mut self,
        text: MarkedText,
        keep: &Path,
    ) -> Result<Option<PathBuf>, WriteError> {
        let path = self.file.path().to_owned();
        let done = self.place.put_back(&path, text.text(), keep);
        let PutBack { kept, metadata } =
            done.map_err(|source| WriteError::Failed { path, source })?;
        self.take_written(WrittenText { marked: text, metadata });
        Ok(kept)
    }
}

/// A folder, pipe or link is moved and not read.
fn set_aside(path: &Path, keep: &Path) -> io::Result<Option<PathBuf>> {
    let (keep, beside) = (free(keep)?, free(&with_suffix(path, ".replaced"))?);
    match fs::rename(path, &keep) {
        Ok(()) => Ok(Some(keep)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            fs::rename(path, &beside).map(|()| Some(beside))
        }
        Err(error) => Err(error),
    }
}

/// The name itself, or with a number if it is taken.
fn free(name: &Path) -> io::Result<PathBuf> {
    let numbered = (2..).map(|number| with_suffix(name, &format!("-{number}")));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let is_free = |name: &PathBuf| fs::symlink_metadata(name).is_err();
    names.find(is_free).ok_or_else(|| ErrorKind::AlreadyExists.into())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
