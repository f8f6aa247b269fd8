//! Reading a file without blocking, and no more of it than wanted.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Why a file's content is not available. The text goes after "cannot read `name`: ".
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it is a folder instead of a file")]
    Folder,
    /// What it is instead.
    #[error("it is a {0} instead of a file")]
    NotAFile(&'static str),
    #[error("it is larger than {}", size(*.limit))]
    TooLarge { limit: u64 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

pub type ReadResult<T> = Result<T, ReadError>;

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            ReadError::Folder => Self::new(io::ErrorKind::IsADirectory, error),
            ReadError::TooLarge { .. } => Self::new(io::ErrorKind::FileTooLarge, error),
            ReadError::NotAFile(_) => Self::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

/// Whether a regular file is at the path. Links are followed.
pub fn find(path: &Path) -> ReadResult<Metadata> {
    require_file(fs::metadata(path)?)
}

/// Opens a regular file. Links are followed, as for every path that the human chose.
pub fn open(path: &Path) -> ReadResult<(File, Metadata)> {
    // Before it is opened, because opening a device may already act on it.
    find(path)?;
    let file = open_without_waiting(path)?;
    let found = require_file(file.metadata()?)?;
    Ok((file, found))
}

/// The file may have become a pipe since the check, and opening a pipe waits for a writer.
fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = NON_BLOCKING.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// For a lock: whatever is at the path, a folder too, without waiting for it.
pub fn open_place(path: &Path) -> io::Result<File> {
    open_without_waiting(path)
}

pub(super) const NON_BLOCKING: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// The whole content; an error if it is longer than `limit`.
pub fn read(path: &Path, limit: u64) -> ReadResult<Vec<u8>> {
    let (file, found) = open(path)?;
    read_from(&file, &found, limit)
}

/// The same as text.
pub fn read_text(path: &Path, limit: u64) -> ReadResult<String> {
    text(read(path, limit)?)
}

pub(super) fn text(bytes: Vec<u8>) -> ReadResult<String> {
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8");
    Ok(String::from_utf8(bytes).map_err(no_text)?)
}

/// The rest of an open file.
pub fn read_from(file: &File, found: &Metadata, limit: u64) -> ReadResult<Vec<u8>> {
    let too_large = ReadError::TooLarge { limit };
    if found.len() > limit {
        return Err(too_large);
    }
    // One more than expected, so that the end is found without another buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or_default() + 1);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large) } else { Ok(bytes) }
}

pub(super) fn require_file(found: Metadata) -> ReadResult<Metadata> {
    match found.file_type() {
        kind if kind.is_file() => Ok(found),
        kind if kind.is_dir() => Err(ReadError::Folder),
        kind => Err(ReadError::NotAFile(name_of(kind))),
    }
}

fn name_of(kind: FileType) -> &'static str {
    if kind.is_symlink() {
        "link"
    } else if kind.is_fifo() {
        "pipe"
    } else if kind.is_socket() {
        "socket"
    } else {
        "device"
    }
}

fn size(bytes: u64) -> String {
    const MEGABYTE: u64 = 1024 * 1024;
    if bytes >= MEGABYTE { format!("{} MB", bytes / MEGABYTE) } else { format!("{bytes} bytes") }
}

#[cfg(test)]
mod tests;
