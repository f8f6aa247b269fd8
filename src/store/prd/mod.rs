//! The backlog file on disk: reading, checking and writing PRD.json.
//!
//! The backlog is never serialized again: a change touches the bytes of the marks and nothing else.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Access;

use crate::files::atomic::{self, PreparedFile};
use crate::files::{self, ReadError, ReadResult, follow, nofollow};
use crate::model::{Backlog, visible};
use crate::text::backlog;
use crate::text::backlog::{Diagnostic, MAX_BYTES, Position, position, render, summary};

mod broken;
mod edit;
mod place;
mod put_back;
mod replace;
#[cfg(test)]
mod tests;
mod tracked;

pub use broken::{broken_beside, broken_name};
pub use edit::{EditError, Mark, set_mark};
pub use replace::text_with_marks;
pub use tracked::{MarkedText, PrdLook, TextAhead, TextOnDisk, TrackedPrd, WrittenText};

/// A backlog file by its path. Symlinks are resolved at each use, until it is known where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrdFile {
    path: PathBuf,
    /// Where it was when a run opened it. From then on no link is followed.
    real: Option<PathBuf>,
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
        Self { path: path.into(), real: None }
    }

    pub(super) fn at(self, real: &Path) -> Self {
        Self { real: Some(real.to_owned()), ..self }
    }

    /// As it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn load(&self) -> Result<Loaded, LoadError> {
        self.parse(self.text()?.0)
    }

    pub fn parse(&self, text: String) -> Result<Loaded, LoadError> {
        let parsed = backlog::parse(&text);
        match parsed.backlog {
            Some(backlog) => Ok(Loaded { text, backlog, warnings: parsed.diagnostics }),
            None => Err(LoadError::Invalid {
                path: self.path.clone(),
                summary: summary(&parsed.diagnostics),
                rendered: render(&self.path.to_string_lossy(), &text, &parsed.diagnostics),
            }),
        }
    }

    /// `write` needs the right to write the file and its folder.
    pub fn check_writable(&self) -> Result<(), LoadError> {
        files::find(&self.path).map_err(|error| self.refused(error))?;
        let target = self.target().map_err(|error| self.failed(error))?;
        let folder = atomic::folder_of(&target);
        for (what, access) in [(target.as_path(), Access::WRITE_OK), (folder, FOLDER_ACCESS)] {
            rustix::fs::access(what, access).map_err(|error| {
                let (path, what, source) = (self.path.clone(), what.to_owned(), error.into());
                LoadError::NotWritable { path, what, source }
            })?;
        }
        Ok(())
    }

    /// Replaces the file's text: a reader sees the old or the new one, whole.
    ///
    /// Returns its metadata like `atomic::replace`.
    pub fn write(&self, text: &str) -> Result<Option<Metadata>, WriteError> {
        let target = self.target();
        let written = target.and_then(|target| atomic::replace_real(&target, text.as_bytes()));
        written.map_err(|source| WriteError::Failed { path: self.path.clone(), source })
    }

    /// Where it is now, without links.
    fn target(&self) -> io::Result<PathBuf> {
        self.real.clone().map_or_else(|| atomic::resolve(&self.path), Ok)
    }

    fn stamp(&self) -> Option<Stamp> {
        let found = match &self.real {
            Some(real) => nofollow::look(real),
            None => follow::look(&self.path),
        };
        found.ok().map(|found| Stamp::of(&found))
    }

    /// None if the system cannot.
    fn prepare(&self, text: &str) -> Option<PreparedFile> {
        atomic::prepare(&self.target().ok()?, text.as_bytes())
    }

    fn open(&self) -> ReadResult<(File, Metadata)> {
        let Some(real) = &self.real else { return files::open(&self.path) };
        let file = nofollow::open(real)?;
        let found = file.metadata()?;
        Ok((file, found))
    }

    /// With a stamp that recognizes this version; None if the times cannot tell.
    fn text(&self) -> Result<(String, Option<Stamp>), LoadError> {
        let (file, before) = self.open().map_err(|error| self.refused(error))?;
        let bytes = files::read_from(&file, &before, MAX_BYTES as u64);
        let bytes = bytes.map_err(|error| self.refused(error))?;
        let after = file.metadata().map_err(|error| self.failed(error))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.as_bytes().get(..error.utf8_error().valid_up_to());
            let valid = String::from_utf8_lossy(valid.unwrap_or_default());
            let Position { line, column } = position(&valid, valid.len());
            LoadError::NotUtf8 { path: self.path.clone(), line, column }
        })?;
        Ok((text, Stamp::of_read(&before, &after)))
    }

    fn refused(&self, error: ReadError) -> LoadError {
        let path = self.path.clone();
        match error {
            ReadError::Folder => LoadError::Folder { path },
            ReadError::NotAFile(_) => LoadError::NotAFile { path },
            ReadError::TooLarge { .. } => LoadError::TooLarge { path },
            ReadError::Io(source) => self.failed(source),
        }
    }

    fn failed(&self, source: io::Error) -> LoadError {
        let path = self.path.clone();
        match (source.kind(), follow::read_link(&path)) {
            (ErrorKind::NotFound, Ok(to)) => LoadError::DanglingLink { path, to },
            (ErrorKind::NotFound, Err(_)) => LoadError::NotFound { path },
            _ => LoadError::NotReadable { path, source },
        }
    }
}

const FOLDER_ACCESS: Access = Access::WRITE_OK.union(Access::EXEC_OK);

/// Within this time of a change the file may change again without another time stamp.
const RACY: Duration = Duration::from_millis(20);
/// The same if the file system counts whole seconds.
const RACY_SECONDS: Duration = Duration::from_secs(2);

/// Tells by its times whether a file is still the version that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Self {
            file: (found.dev(), found.ino()),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Of a file that was the same before and after it was read. None if it may have changed in
    /// between, or can change without another stamp.
    fn of_read(before: &Metadata, after: &Metadata) -> Option<Self> {
        let stamp = Self::of(before);
        (stamp == Self::of(after) && stamp.is_settled(SystemTime::now())).then_some(stamp)
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        let has_seconds_only = self.modified.1 == 0 && self.changed.1 == 0;
        let racy = if has_seconds_only { RACY_SECONDS } else { RACY };
        let (seconds, nanoseconds) = self.modified.max(self.changed);
        let since_epoch = u64::try_from(seconds).ok().zip(u32::try_from(nanoseconds).ok());
        let latest = since_epoch.map(|(seconds, rest)| UNIX_EPOCH + Duration::new(seconds, rest));
        latest.is_some_and(|latest| now.duration_since(latest).is_ok_and(|age| age > racy))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("no file {}; create one with `ralph init`", shown(path))]
    NotFound { path: PathBuf },
    #[error(
        "{} is a link to {}, which does not exist; fix or remove the link",
        shown(path),
        shown(to)
    )]
    DanglingLink { path: PathBuf, to: PathBuf },
    #[error("cannot read {}: {}", shown(path), reason(source))]
    NotReadable { path: PathBuf, source: io::Error },
    #[error("{} is a folder; did you mean {}?", shown(path), shown(&path.join("PRD.json")))]
    Folder { path: PathBuf },
    /// Writing a mark would change what it links to.
    #[error("{} is or was a link, and is not the same one any more", shown(path))]
    OtherLink { path: PathBuf },
    #[error("{} is not a regular file", shown(path))]
    NotAFile { path: PathBuf },
    #[error("{} is larger than 8 MB; split it into several backlogs", shown(path))]
    TooLarge { path: PathBuf },
    #[error("{}:{line}:{column}: invalid UTF-8; save the file as UTF-8", visible(&path.to_string_lossy()))]
    NotUtf8 { path: PathBuf, line: usize, column: usize },
    /// `what` is the file itself or the folder it is replaced in.
    #[error("cannot write {}{}: {}", shown(path), in_folder(path, what), reason(source))]
    NotWritable { path: PathBuf, what: PathBuf, source: io::Error },
    /// The summary is `2 errors, 1 warning`; all problems are rendered with their lines.
    #[error("{} is invalid: {summary}\n\n{rendered}", shown(path))]
    Invalid { path: PathBuf, summary: String, rendered: String },
}

/// The file was not written; it has its old text.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("cannot write {}: {}", shown(path), reason(source))]
    Failed { path: PathBuf, source: io::Error },
    #[error("{} changed in the meantime, so it was not written; try again", shown(path))]
    Changed { path: PathBuf },
}

/// A path in ticks, without control characters for the terminal.
fn shown(path: &Path) -> String {
    format!("`{}`", visible(&path.to_string_lossy()))
}

fn in_folder(path: &Path, what: &Path) -> String {
    if what == path { String::new() } else { format!(" because of {}", shown(what)) }
}

/// The system's error, with a remedy.
fn reason(error: &io::Error) -> String {
    let known = match error.kind() {
        ErrorKind::PermissionDenied => "permission denied; check its owner and mode with `ls -ld`",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the disk is full; free some space",
        ErrorKind::NotFound => "the file or its folder does not exist",
        _ => return error.to_string(),
    };
    known.to_owned()
}
