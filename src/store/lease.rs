//! One run per work tree.

use std::fs;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::model::visible_line;

use super::error::{Problem, StoreError};

/// Held as long as it lives; the system ends it when the process dies, however it dies.
#[derive(Debug)]
pub struct Lease {
    _file: File,
}

impl Lease {
    /// `about` is shown to whoever comes second.
    pub fn take(path: &Path, about: &str) -> Result<Self, StoreError> {
        let failed = |source| Problem::Lock { path: path.display().to_string(), source };
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
                return Err(Problem::Held { holder }.into());
            }
            Err(TryLockError::Error(source)) => return Err(failed(source).into()),
        }
        file.set_len(0).and_then(|()| file.write_all(about.as_bytes())).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// Who holds it; None when it is free.
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
        let first = Lease::take(&path, "pid 7").unwrap();
        let error = Lease::take(&path, "pid 8").unwrap_err().to_string();
        assert!(error.contains("pid 7"), "{error}");
        assert_eq!(holder(&path).as_deref(), Some("pid 7"));
        drop(first);
        assert_eq!(holder(&path), None);
        Lease::take(&path, "pid 8").unwrap();
    }
}
