//! Finding the repository, and refusing one that cannot be worked in.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{ErrorClass, ErrorCode, Index, Repository, RepositoryState};

use super::error::{Doing, GitError, file_error};
use super::sign::Signer;
use super::{WorkTree, head};

/// How long somebody else may hold a lock before an operation gives up.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

impl WorkTree {
    /// Finds the repository from a folder upward and makes sure that it can be
    /// worked in. A branch without commits is fine.
    pub fn open(start: &Path) -> Result<Self, GitError> {
        let tree = Self::look(start)?;
        tree.settled_index()?;
        tree.require_identity()?;
        Ok(tree)
    }

    /// As `open`, for those who commit nothing: any state of the repository will do.
    pub fn look(start: &Path) -> Result<Self, GitError> {
        // Else libgit2 looks up each object that a new tree names. Ours were just written, or come
        // from the index or another tree; those that are only remembered are looked up.
        git2::opts::strict_object_creation(false);
        let repo = Repository::discover(start).map_err(|error| refusal(start, error))?;
        let folder = repo.workdir().ok_or_else(|| GitError::Bare(repo.path().to_owned()))?;
        Ok(Self {
            root: canonical(folder)?,
            git_dir: canonical(repo.path())?,
            common_dir: canonical(repo.commondir())?,
            home: head::tip(&repo)?.reference,
            signer: Signer::of(&repo)?,
            service: None,
            numbers_checked: Cell::new(false),
            lock_patience: LOCK_PATIENCE,
            repo,
        })
    }

    /// The index, unless a merge, rebase or the like is in progress: a commit
    /// now would record half of it, conflict markers included.
    pub(super) fn settled_index(&self) -> Result<Index, GitError> {
        if let Some(what) = operation(self.repo.state()) {
            return Err(GitError::InProgress { what });
        }
        let index = self.fresh_index().map_err(|error| match error {
            GitError::Git { source, .. } => self.unreadable(&source),
            other => other,
        })?;
        match unmerged(&index)? {
            paths if paths.is_empty() => Ok(index),
            paths => Err(GitError::Unmerged(paths)),
        }
    }

    fn unreadable(&self, error: &git2::Error) -> GitError {
        GitError::Format { path: self.root.clone(), reason: error.message().to_owned() }
    }

    /// Git knows who commits.
    pub fn require_identity(&self) -> Result<(), GitError> {
        match self.repo.committer_from_env().and(self.repo.author_from_env()) {
            Ok(_) => Ok(()),
            Err(error) if error.code() == ErrorCode::NotFound => Err(GitError::NoIdentity),
            Err(error) => Err(error).doing("read who commits"),
        }
    }
}

pub(super) fn unmerged(index: &Index) -> Result<Vec<String>, GitError> {
    if !index.has_conflicts() {
        return Ok(Vec::new());
    }
    let conflicts = index.conflicts().doing("read the unmerged files")?;
    Ok(conflicts.flatten().filter_map(|conflict| conflict_path(&conflict)).collect())
}

/// The path of a conflict, for people.
pub(super) fn conflict_path(conflict: &git2::IndexConflict) -> Option<String> {
    let sides = [&conflict.our, &conflict.their, &conflict.ancestor];
    let entry = sides.into_iter().flatten().next()?;
    Some(String::from_utf8_lossy(&entry.path).into_owned())
}

fn refusal(start: &Path, error: git2::Error) -> GitError {
    let path = start.to_owned();
    match (error.code(), error.class()) {
        (ErrorCode::Owner, _) => GitError::NotOwned(path),
        (ErrorCode::NotFound, ErrorClass::Repository) => GitError::NotARepository(path),
        _ => GitError::Format { path, reason: error.message().to_owned() },
    }
}

/// What git calls the operation, as in `git WHAT --abort`.
fn operation(state: RepositoryState) -> Option<&'static str> {
    use RepositoryState as State;
    match state {
        State::Clean => None,
        State::Merge => Some("merge"),
        State::Revert | State::RevertSequence => Some("revert"),
        State::CherryPick | State::CherryPickSequence => Some("cherry-pick"),
        State::Bisect => Some("bisect"),
        State::Rebase | State::RebaseInteractive | State::RebaseMerge => Some("rebase"),
        State::ApplyMailbox | State::ApplyMailboxOrRebase => Some("am"),
    }
}

fn canonical(path: &Path) -> Result<PathBuf, GitError> {
    path.canonicalize().map_err(file_error("find", path))
}
