//! Private files and folders, and how much room is left for them.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::{fs, io};

/// Readable by its owner only: transcripts may hold what nobody else should see.
pub fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).mode(0o600);
    options.open(path).map_err(naming(path))
}

/// The same, keeping what is in it already, to write anywhere in it.
pub fn keep_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).open(path).map_err(naming(path))
}

/// An empty file with that mode where there is none yet. A file that exists is not even opened:
/// closing it again would drop the locks that SQLite holds on it in this process.
pub fn ensure_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(naming(path)(error)),
        _ => Ok(()),
    }
}

/// The same, after what is in it already.
pub fn append_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(naming(path))
}

/// Also one that was there before, with a wider mode.
pub fn private_folder(path: &Path) -> io::Result<()> {
    let make = || {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        if path.metadata()?.mode() & 0o077 != 0 {
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
        }
        Ok(())
    };
    make().map_err(naming(path))
}

/// What the system says does not name the file.
pub fn naming(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| {
        let text = format!("`{}` cannot be written: {error}", path.display());
        io::Error::new(error.kind(), text)
    }
}

/// Bytes that may still be written at the path. None where the system cannot tell, as on some
/// network file systems.
pub fn free_space(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_is_found_where_something_is() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_space(folder.path()).is_some_and(|bytes| bytes > 0));
        assert_eq!(free_space(&folder.path().join("nothing")), None);
        // A file system without blocks has no room to run out of.
        #[cfg(target_os = "linux")]
        assert_eq!(free_space(Path::new("/proc")), None);
    }

    #[test]
    fn a_file_that_exists_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        ensure_private(&path).unwrap();
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        fs::write(&path, "kept").unwrap();
        ensure_private(&path).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode()), ("kept", 0o600));
        // A socket cannot be opened, so this shows that it is not tried.
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        ensure_private(&socket).unwrap();
    }
}
