//! Waiting for locks that other git processes hold.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use git2::ErrorCode;

use super::error::GitError;

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Repeats `act` as long as it finds a lock taken, at most for `patience`.
///
/// `act` must start from what is on disk: whoever held the lock has changed it.
pub(super) fn patiently<T>(
    patience: Duration,
    lock: &Path,
    mut act: impl FnMut() -> Result<T, GitError>,
) -> Result<T, GitError> {
    let deadline = Instant::now() + patience;
    let mut pause = FIRST_PAUSE;
    loop {
        match act() {
            Err(error) if is_lock(&error) && Instant::now() < deadline => {
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) if is_lock(&error) => return Err(GitError::Locked(lock.to_owned())),
            result => return result,
        }
    }
}

pub(super) fn is_lock(error: &GitError) -> bool {
    match error {
        GitError::Git { source, .. } => source.code() == ErrorCode::Locked,
        error => matches!(error, GitError::Locked(_)),
    }
}
