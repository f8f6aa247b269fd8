//! Keeps what is replaced, under another name.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, linkat, renameat};

use super::nofollow;
use super::write_below::{PRIVATE_FILE, PRIVATE_FOLDER};
use super::{Dir, FileKind};

/// Appended to a name on the same disk if the other one is on another.
const CHANGED: &str = "changed";
/// Of a file on another disk.
const LARGEST_COPY: u64 = 1 << 30;

/// Keeps it as `name` below the folder, and nothing on the way to it is followed if it is a link.
/// Links a file instead of moving it, so that it is never missing. Returns where it is.
pub fn keep(path: &Path, folder: &Path, name: &Path) -> io::Result<PathBuf> {
    let found = match nofollow::look(path) {
        Err(error) if is_absence(&error) => return Ok(folder.join(name)),
        found => found?,
    };
    let parent = name.parent().unwrap_or(Path::new(""));
    let kept_in = Dir::open_real(folder)?.make_way(parent)?;
    // A killed process may have used the first name.
    let kept = first_free(Path::new(name.file_name().unwrap_or_default()), |name| {
        kept_in.kind(name) == FileKind::Nothing
    });
    if found.is_dir() {
        // A folder moves only if it can be written.
        let _ = nofollow::set_mode(path, PRIVATE_FOLDER);
    }
    let (from, own) = nofollow::in_folder(path)?;
    let done = if found.is_file() {
        linkat(&from.0, own, &kept_in.0, &kept, AtFlags::empty())
    } else {
        renameat(&from.0, own, &kept_in.0, &kept)
    };
    match done.map_err(io::Error::from) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            if found.is_file() {
                kept_in.publish(&kept, &nofollow::read(path, LARGEST_COPY)?)?;
            } else {
                let kept = free_name(&path.with_added_extension(CHANGED));
                return nofollow::rename(path, &kept).map(|()| kept);
            }
        }
        done => done?,
    }
    Ok(folder.join(parent).join(kept))
}

impl Dir {
    /// Writes and syncs a private file under this name, or with a number if that is taken; returns
    /// the name.
    pub fn keep_bytes(&self, name: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
        let name = first_free(name, |name| self.kind(name) == FileKind::Nothing);
        let mut file = self.create_new(&name, PRIVATE_FILE)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(name)
    }

    /// A folder below this one. What is in the place of one of its parts gets another name.
    pub fn make_way(&self, name: &Path) -> io::Result<Self> {
        let mut parts: Vec<&Path> =
            name.ancestors().filter(|part| *part != Path::new("")).collect();
        parts.reverse();
        for part in parts {
            if self.kind(part).is_in_the_way() {
                let free = first_free(part, |name| self.kind(name) == FileKind::Nothing);
                self.rename(part, self, &free)?;
            }
        }
        self.make_dir(name)
    }
}

pub fn free_name(path: &Path) -> PathBuf {
    first_free(path, |name| !nofollow::exists(name))
}

fn first_free(path: &Path, is_free: impl Fn(&Path) -> bool) -> PathBuf {
    let numbered = (1..).map(|number| path.with_added_extension(number.to_string()));
    let mut names = std::iter::once(path.to_owned()).chain(numbered);
    names.find(|name| is_free(name)).unwrap_or_default()
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
