//! How many files ralph can open.

use std::os::fd::{AsFd, OwnedFd};

use super::CommandError;

/// More than a run has open at a time before its first agent, and than any other command ever has.
const DESCRIPTORS: usize = 64;

/// With fewer a command would fail in its middle, take a file for one that is not there, or be unable to say why.
pub fn require_descriptors() -> Result<(), CommandError> {
    let stderr = std::io::stderr();
    let open = |_| stderr.as_fd().try_clone_to_owned();
    let needed = DESCRIPTORS;
    let all: std::io::Result<Vec<OwnedFd>> = (0..needed).map(open).collect();
    all.map(drop).map_err(|source| CommandError::FewDescriptors { needed, source })
}
