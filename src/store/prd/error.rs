//! Why the backlog file cannot be used, and what to do about it.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::{fmt, io};

use crate::model::visible;
use crate::text::backlog::{Diagnostic, position, render, summary};

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("there is no file {}; `ralph init` writes one to start from", Shown(path))]
    NotFound { path: PathBuf },
    #[error(
        "{} is a link to {}, which does not exist; mend or remove the link",
        Shown(path),
        Shown(to)
    )]
    DanglingLink { path: PathBuf, to: PathBuf },
    #[error("{} cannot be read: {}", Shown(path), Reason(source))]
    NotReadable { path: PathBuf, source: io::Error },
    #[error("{} is {}", Shown(path), Instead { path, is_folder: *is_folder })]
    NotAFile { path: PathBuf, is_folder: bool },
    #[error("{} is larger than 8 MB; split it into several backlogs", Shown(path))]
    TooLarge { path: PathBuf },
    #[error("{}:{line}:{column}: this is not UTF-8; save the file as UTF-8", visible(&path.to_string_lossy()))]
    NotUtf8 { path: PathBuf, line: usize, column: usize },
    #[error("{} cannot be written{}: {}", Shown(path), InFolder { path, what }, Reason(source))]
    NotWritable {
        path: PathBuf,
        /// The file itself or the folder it is replaced in.
        what: PathBuf,
        source: io::Error,
    },
    #[error("{} cannot be used as it is: {summary}\n\n{rendered}", Shown(path))]
    Invalid {
        path: PathBuf,
        /// `2 errors, 1 warning`
        summary: String,
        /// All problems with their lines, ready to print.
        rendered: String,
        errors: usize,
    },
}

/// The new text did not get into the file; the old one is still there.
#[derive(Debug, thiserror::Error)]
#[error("{} could not be written: {}", Shown(path), Reason(source))]
pub struct WriteError {
    pub path: PathBuf,
    pub source: io::Error,
}

impl LoadError {
    pub(super) fn from_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match (source.kind(), path.read_link()) {
            (io::ErrorKind::NotFound, Ok(to)) => Self::DanglingLink { path, to },
            (io::ErrorKind::NotFound, Err(_)) => Self::NotFound { path },
            _ => Self::NotReadable { path, source },
        }
    }

    pub(super) fn not_utf8(path: &Path, error: &FromUtf8Error) -> Self {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let at = position(&String::from_utf8_lossy(valid), valid.len());
        Self::NotUtf8 { path: path.to_owned(), line: at.line, column: at.column }
    }

    pub(super) fn not_writable(path: &Path, what: &Path, source: io::Error) -> Self {
        Self::NotWritable { path: path.to_owned(), what: what.to_owned(), source }
    }

    pub(super) fn invalid(path: &Path, text: &str, diagnostics: &[Diagnostic]) -> Self {
        Self::Invalid {
            path: path.to_owned(),
            summary: summary(diagnostics),
            rendered: render(&path.to_string_lossy(), text, diagnostics),
            errors: diagnostics.iter().filter(|one| one.is_error()).count(),
        }
    }
}

/// A path in ticks, with nothing in it that acts on a terminal.
struct Shown<'p>(&'p Path);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", visible(&self.0.to_string_lossy()))
    }
}

struct Instead<'p> {
    path: &'p Path,
    is_folder: bool,
}

impl Display for Instead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_folder {
            return f.write_str("a pipe, socket or device; name a regular file");
        }
        let inside = self.path.join("PRD.json");
        write!(f, "a folder; name the file, for example {}", Shown(&inside))
    }
}

struct InFolder<'p> {
    path: &'p Path,
    what: &'p Path,
}

impl Display for InFolder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.what == self.path {
            return Ok(());
        }
        write!(f, " because of {}", Shown(self.what))
    }
}

/// What the system said, and what to do about it.
struct Reason<'e>(&'e io::Error);

impl Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.kind() {
            io::ErrorKind::PermissionDenied => {
                "permission denied; look at its owner and mode with `ls -ld`"
            }
            io::ErrorKind::ReadOnlyFilesystem => {
                "the file system is read-only; mount it writable, or copy the project elsewhere"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "the disk is full; free some space"
            }
            io::ErrorKind::NotFound => "it, or a folder on the way to it, does not exist",
            _ => return write!(f, "{}", self.0),
        })
    }
}
