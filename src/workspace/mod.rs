//! The git repository the agents work in, through libgit2.
//!
//! Owns every write to branch, index and work tree that the driver makes: closing commits, shelving
//! and unshelving, snapshots. It must never run the `git` binary (signing runs git's helper
//! programs), never delete a lock of another process, never drop content that is not stored
//! elsewhere, and never decide about a story. All functions are synchronous and hold no lock
//! between calls.

mod attributes;
mod base;
mod branch;
mod checkout;
mod closing;
mod collect;
mod commit;
mod diff;
mod error;
mod guard;
mod holders;
mod index;
mod integrate;
mod keep;
mod kept;
mod locks;
mod merge;
mod open;
mod packed_refs;
mod preflight;
mod prune;
mod restore;
mod scan;
mod shelve;
mod sign;
mod staging;
mod stat_cache;
#[cfg(test)]
mod tests;
mod tree;
mod undo;
mod user_edits;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use base::Difference;
pub use branch::{Head, Switched, Whereabouts};
pub use closing::{BASE_TRAILER, ClosedStory as Closing, ClosedStory, UNDONE_TRAILER};
pub use collect::CollectRequest;
pub use diff::{Altered, DiffStat, hash};
pub use error::GitError;
pub use guard::{GitSetup as Setup, GitSetup, Guard, GuardPart, GuardedAttempt, Losses, Stash};
pub use integrate::{Committed, ReadyCommit, Replacement, StoredBlob};
pub use kept::{SnapshotKind as Kind, SnapshotKind, SnapshotRef as Kept, SnapshotRef};
pub use open::init_scratch;
pub use preflight::{FileLocation as Place, FileLocation, Surroundings, Uncommitted};
pub use prune::Keeping;
pub use restore::Recalled;
pub use shelve::BroughtBack;
pub use staging::{Contribution, LeftOut, Staging, WhyLeftOut};
pub use undo::{UndoRequest, Undone};

/// The driver's own folder at the root of the work tree.
const OWN_FOLDER: &str = ".ralph";
/// The driver's own folder in a git folder.
const OWN_GIT_FOLDER: &str = "ralph";

/// One work tree with its repository, kept open for the whole run: opening it again costs more than
/// a commit.
pub struct WorkTree {
    repo: git2::Repository,
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    /// The full name of the branch that the run works on; None with a detached HEAD.
    home: Option<String>,
    signer: Option<sign::Signer>,
    /// The active run, if any.
    service: Option<keep::ServedRun>,
    /// The highest number of a snapshot, once it is known.
    highest: Cell<Option<u64>>,
    /// The in-memory index differs from the one on disk.
    index_is_altered: Cell<bool>,
    lock_patience: Duration,
}

impl WorkTree {
    /// The work tree's root, canonical.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// This work tree's own git folder; in a linked work tree it is not the shared one.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git folder that all work trees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }
}
