//! One run per work tree.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::core::text::visible_line;

/// Held as long as it lives; the system lets go of it when the process dies, however it dies.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another `ralph run` works in this work tree ({holder}); wait for it or stop it")]
    Held { holder: String },
    #[error("the lock `{path}` cannot be used: {source}")]
    Io { path: String, source: io::Error },
}

impl RunLock {
    /// `about` is told to whoever comes second.
    pub fn take(path: &Path, about: &str) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.display().to_string(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = visible_line(&fs::read_to_string(path).unwrap_or_default());
                return Err(LockError::Held { holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0).and_then(|()| file.write_all(about.as_bytes())).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// Who holds it, when somebody does.
pub fn holder(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(fs::read_to_string(path).unwrap_or_default()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_is_first_and_gets_it_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = RunLock::take(&path, "pid 7").unwrap();
        let error = RunLock::take(&path, "pid 8").unwrap_err().to_string();
        assert!(error.contains("pid 7"), "{error}");
        assert_eq!(holder(&path).as_deref(), Some("pid 7"));
        drop(first);
        assert_eq!(holder(&path), None);
        RunLock::take(&path, "pid 8").unwrap();
    }
}
