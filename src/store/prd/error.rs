//! Why the backlog file cannot be used, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::visible;

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
    #[error("{} is not a regular file", shown(path))]
    NotAFile { path: PathBuf },
    #[error("{} is larger than 8 MB; split it into several backlogs", shown(path))]
    TooLarge { path: PathBuf },
    #[error("{}:{line}:{column}: invalid UTF-8; save the file as UTF-8", visible(&path.to_string_lossy()))]
    NotUtf8 { path: PathBuf, line: usize, column: usize },
    #[error("cannot write {}{}: {}", shown(path), in_folder(path, what), reason(source))]
    NotWritable {
        path: PathBuf,
        /// The file itself or the folder it is replaced in.
        what: PathBuf,
        source: io::Error,
    },
    #[error("{} is invalid: {summary}\n\n{rendered}", shown(path))]
    Invalid {
        path: PathBuf,
        /// `2 errors, 1 warning`
        summary: String,
        /// All problems with their lines, ready to print.
        rendered: String,
    },
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
        io::ErrorKind::PermissionDenied => {
            "permission denied; check its owner and mode with `ls -ld`"
        }
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full; free some space"
        }
        io::ErrorKind::NotFound => "the file or its folder does not exist",
        _ => return error.to_string(),
    };
    known.to_owned()
}
