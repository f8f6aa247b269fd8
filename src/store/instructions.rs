//! The human's instructions on the disk, while agents work beside them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::atomic;

/// A longer file is no text that anybody reads.
const LONGEST: u64 = 16 * 1024 * 1024;

/// The file as it was before an attempt.
#[derive(Clone, Debug)]
pub struct Instructions {
    path: PathBuf,
    /// Where the file itself is: PROMPT.md may be a link of the human's.
    real: PathBuf,
    bytes: Vec<u8>,
}

impl Instructions {
    /// None when it cannot be told what they are.
    pub fn hold(path: &Path) -> Option<Self> {
        let real = fs::canonicalize(path).ok()?;
        let bytes = read(&real).ok()?;
        Some(Self { path: path.to_owned(), real, bytes })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// What is there now, when it is something else; empty when nothing can be read there.
    pub fn changed(&self) -> Option<Vec<u8>> {
        let is_same_file = fs::canonicalize(&self.path).is_ok_and(|real| real == self.real);
        match read(&self.real) {
            Ok(now) if is_same_file && now == self.bytes => None,
            Ok(now) if is_same_file => Some(now),
            _ => Some(read(&self.path).unwrap_or_default()),
        }
    }

    /// Nothing is written through a link that was not there before.
    pub fn put_back(&self) -> io::Result<()> {
        if fs::symlink_metadata(&self.real).is_ok_and(|found| found.is_symlink()) {
            fs::remove_file(&self.real)?;
        }
        let folder = atomic::folder_of(&self.real);
        if fs::canonicalize(folder)? != folder {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "its folder is a link now"));
        }
        atomic::replace(&self.real, &self.bytes)?;
        if self.changed().is_none() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "the link that led to it is another one"))
    }
}

/// A file can have become a pipe since it was looked at, and opening one waits for a writer.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn held() -> (tempfile::TempDir, PathBuf, Instructions) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("PROMPT.md");
        fs::write(&path, "Work.\n").unwrap();
        let held = Instructions::hold(&path).unwrap();
        (folder, path, held)
    }

    #[test]
    fn whatever_happened_to_the_file_it_is_put_back() {
        let (folder, path, held) = held();
        let outside = folder.path().join("outside");
        fs::write(&outside, "not ours").unwrap();
        let changes: [(&str, &dyn Fn()); 3] = [
            ("edited", &|| fs::write(&path, "Obey.\n").unwrap()),
            ("deleted", &|| fs::remove_file(&path).unwrap()),
            ("a link now", &|| {
                fs::remove_file(&path).unwrap();
                symlink(&outside, &path).unwrap();
            }),
        ];
        for (case, change) in changes {
            assert_eq!(held.changed(), None, "before: {case}");
            change();
            assert!(held.changed().is_some(), "{case}");
            held.put_back().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "Work.\n", "{case}");
            assert!(fs::symlink_metadata(&path).unwrap().is_file(), "{case}");
        }
        assert_eq!(fs::read_to_string(&outside).unwrap(), "not ours");
    }

    #[test]
    fn a_link_of_the_humans_stays_one() {
        let (folder, path, _) = held();
        let link = folder.path().join("link.md");
        symlink(&path, &link).unwrap();
        let held = Instructions::hold(&link).unwrap();
        fs::write(&path, "Obey.\n").unwrap();
        assert_eq!(held.changed().unwrap(), b"Obey.\n");
        held.put_back().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::remove_file(&link).unwrap();
        fs::write(&link, "Obey.\n").unwrap();
        assert_eq!(held.changed().unwrap(), b"Obey.\n");
        assert!(held.put_back().is_err(), "it is told that the link is gone");
    }

    #[test]
    fn what_cannot_be_written_is_told() {
        let (_folder, path, held) = held();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(held.changed().unwrap(), b"");
        assert!(held.put_back().is_err());
    }
}
