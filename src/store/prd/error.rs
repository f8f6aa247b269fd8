//! Why the backlog file cannot be used, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::visible;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("there is no file {}; `ralph init` writes one to start from", shown(path))]
    NotFound { path: PathBuf },
    #[error(
        "{} is a link to {}, which does not exist; mend or remove the link",
        shown(path),
        shown(to)
    )]
    DanglingLink { path: PathBuf, to: PathBuf },
    #[error("{} cannot be read: {}", shown(path), reason(source))]
    NotReadable { path: PathBuf, source: io::Error },
    #[error("{} is a folder; name the file, for example {}", shown(path), shown(&path.join("PRD.json")))]
    Folder { path: PathBuf },
    #[error("{} is a pipe, socket or device; name a regular file", shown(path))]
    NotAFile { path: PathBuf },
    #[error("{} is larger than 8 MB; split it into several backlogs", shown(path))]
    TooLarge { path: PathBuf },
    #[error("{}:{line}:{column}: this is not UTF-8; save the file as UTF-8", visible(&path.to_string_lossy()))]
    NotUtf8 { path: PathBuf, line: usize, column: usize },
    #[error("{} cannot be written{}: {}", shown(path), in_folder(path, what), reason(source))]
    NotWritable {
        path: PathBuf,
        /// The file itself or the folder it is replaced in.
        what: PathBuf,
        source: io::Error,
    },
    #[error("{} cannot be used as it is: {summary}\n\n{rendered}", shown(path))]
    Invalid {
        path: PathBuf,
        /// `2 errors, 1 warning`
        summary: String,
        /// All problems with their lines, ready to print.
        rendered: String,
    },
}

/// The new text did not get into the file; the old one is still there.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{} could not be written: {}", shown(path), reason(source))]
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

/// What the system said, and what to do about it.
fn reason(error: &io::Error) -> String {
    let known = match error.kind() {
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
        _ => return error.to_string(),
    };
    known.to_owned()
}
