//! The git repository the agents work in, through libgit2.
//!
//! Owns every write to branch, index and work tree that the driver makes: closing commits, shelving
//! and unshelving, snapshots. It must never run the `git` binary (signing runs git's helper
//! programs), never delete a lock of another process, never drop content that is not stored
//! elsewhere, and never decide about a story. All functions are synchronous and hold no lock
//! between calls.

mod authors;
mod base;
mod branch;
mod catalog;
mod checkout;
mod collect;
mod commit;
mod diff;
mod edits;
mod error;
mod fetched;
mod gate_files;
mod git_files;
mod guard;
mod index;
mod integrate;
mod known;
mod locks;
mod moved_away;
mod object_copies;
mod objects;
mod open;
mod own_commits;
mod packed_refs;
mod pipes;
pub mod reading;
mod restore;
mod rights;
mod scan;
mod secret_refs;
mod shelve;
mod sign;
mod snapshot;
mod staging;
mod stamp;
#[cfg(test)]
mod tests;
mod tree;
mod undo;
mod unseen;
mod versions;

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use authors::{GATES, HumanCommits, REFLOG_ACTION, reflog_action};
pub use base::Difference;
pub use branch::{BranchState, Head, Switched};
pub use catalog::{Keeping, SnapshotKind, SnapshotRef};
pub use commit::{BASE_TRAILER, ClosedStory, UNDONE_TRAILER};
pub use diff::{hash, text_diff};
pub use edits::UserEdits;
pub use error::GitError;
pub use gate_files::{ChangedFile, look_at};
pub use git_files::shared_git_folder;
pub use guard::{Guard, GuardPart, Guarded, HeldPlace, Losses, MayStay, Stash, Writes, mend_heads};
pub use integrate::{Committed, ReadyCommit, Replacement, StoredBlob};
pub use moved_away::Moved;
pub use objects::{GRACE, PATIENCE, damaged_object};
pub use open::{FileLocation, Surroundings, Uncommitted, init_scratch};
pub use restore::Restored;
pub use shelve::{Reset, Unshelved};
pub use staging::{CollectRequest, Contribution, Staging};
pub use undo::{ReadyUndo, UndoRequest, Undone};
pub use versions::with_change;

use moved_away::MovedAway;

type Result<T, E = GitError> = std::result::Result<T, E>;

/// The driver's own folder at the root of the work tree.
const OWN_FOLDER: &str = ".ralph";
/// The driver's own folder in a git folder.
const OWN_GIT_FOLDER: &str = "ralph";
/// The folder for versions that were replaced, in that one.
const CHANGED: &str = "changed";
/// In that one, for what was in the way.
const REPLACED: &str = "replaced";

/// One work tree with its repository, kept open for the whole run: opening it again costs more than
/// a commit.
pub struct WorkTree {
    repo: git2::Repository,
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    /// The full name of the branch that the run works on; None with a detached HEAD.
    run_branch: Option<String>,
    signer: Option<sign::Signer>,
    /// The active run, if any.
    service: Option<snapshot::RunLabel>,
    /// The highest number of a snapshot, once it is known.
    highest: Cell<Option<u64>>,
    /// The in-memory index differs from the one on disk.
    index_is_modified: Cell<bool>,
    /// The held copy of the index is that of the last look before something untrusted ran.
    holds_index: Cell<bool>,
    /// Ignored files that decide what gates run, as of the story's begin.
    gate_scripts: RefCell<Vec<PathBuf>>,
    /// What was read, or may be believed without that.
    known: RefCell<known::KnownFiles>,
    /// The hash of that copy, with what index and copy looked like.
    held_index_hash: RefCell<Option<known::HeldIndex>>,
    lock_patience: Duration,
    moved_away: MovedAway,
    known_folders: git_files::KnownFolders,
    /// The tips of what was fetched from elsewhere, before anything untrusted ran.
    fetched: RefCell<Vec<Option<git2::Oid>>>,
    /// What is known of the human's ignored files.
    ignored: RefCell<guard::IgnoredCache>,
    /// The held files as the last guard left them.
    last_look: RefCell<Option<guard::HeldFiles>>,
    /// Refs of snapshots, as they were before something untrusted ran, and since.
    own_refs: RefCell<guard::OwnRefs>,
    /// Where git's objects have their second names.
    copied_folders: RefCell<object_copies::CopiedFolders>,
    /// What was beside git's files when the story began, once it is read.
    beside: RefCell<Option<Arc<guard::Beside>>>,
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

    /// What was in git's or ralph's way and moved since the last call.
    pub fn moved_away(&self) -> Vec<Moved> {
        self.moved_away.news()
    }

    /// The git folder that all work trees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }
}
