//! The git repository the agents work in, through libgit2.
//!
//! Owns every write to branch, index and work tree that the driver makes: the
//! closing commit of a story, setting unfinished work aside and bringing it
//! back, every state of the work tree that is kept at a ref. It must never run
//! the `git` binary (for a signature it runs what git would), never delete
//! somebody's lock, never drop content that is not kept somewhere else, and
//! never decide anything about a story: it is told what to do. All functions
//! are synchronous and hold no lock between calls.

mod altered;
mod belongings;
mod beside;
mod bring_back;
mod changes;
mod closing;
mod commit;
mod cut_short;
mod diff;
mod error;
mod filters;
mod head;
mod holders;
mod index;
mod keep;
mod kept;
mod lock;
mod move_base;
mod open;
mod own_locks;
mod place;
mod program;
mod prune;
mod recall;
mod restore;
mod scratch;
mod seen;
mod set_aside;
mod setup;
mod sign;
mod snapshot;
mod staging;
mod stash;
mod stray;
mod summary;
mod surroundings;
mod switch;
#[cfg(test)]
mod tests;
mod tree_edit;
mod undo;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use altered::Altered;
pub use belongings::Losses;
pub use bring_back::BroughtBack;
pub use closing::{BASE_TRAILER, Closing, UNDONE_TRAILER};
pub use commit::{CommitRequest, Committed, Staging};
pub use diff::Stat;
pub use error::GitError;
pub use head::Head;
pub use keep::{Keepsake, Kind};
pub use kept::Kept;
pub use place::Place;
pub use prune::Keeping;
pub use recall::Recalled;
pub use scratch::init_scratch;
pub use setup::Setup;
pub use snapshot::Difference;
pub use staging::{LeftOut, WhyLeftOut};
pub use stash::Stash;
pub use stray::Whereabouts;
pub use summary::hash;
pub use surroundings::{Surroundings, Uncommitted};
pub use switch::Switched;
pub use undo::{UndoRequest, Undone};

/// The folder at the root of the work tree that belongs to the driver itself.
const OWN_FOLDER: &str = ".ralph";
/// The driver's own folder in a git folder.
const OWN_GIT_FOLDER: &str = "ralph";

/// One work tree with its repository, kept open for the whole run: opening it
/// anew costs more than a commit.
pub struct WorkTree {
    repo: git2::Repository,
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    /// The full name of the branch that the run works on; None with a detached HEAD.
    home: Option<String>,
    signer: Option<sign::Signer>,
    /// The run that is served, if any.
    service: Option<keep::Service>,
    /// What is kept was looked at, so the newest number is known to be right.
    numbers_checked: Cell<bool>,
    lock_patience: Duration,
}

impl WorkTree {
    /// The work tree's root, canonical.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// This work tree's own git folder: in a linked work tree not the shared one.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git folder that all work trees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }
}
