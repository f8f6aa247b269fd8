//! Opens the repository, or refuses it; creates scratch repositories.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{
    ErrorClass, ErrorCode, Index, Repository, RepositoryInitOptions, RepositoryOpenFlags,
    RepositoryState,
};

use super::error::{GitContext, GitError, file_error};
use super::merge::unmerged;
use super::scan::{differences, stage_all};
use super::sign::Signer;
use super::{WorkTree, branch};

/// How long to wait for a lock of another process.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// The search goes up to the root.
const NO_CEILING: &[&Path] = &[];

impl WorkTree {
    /// Finds the repository from a folder upward and checks that ralph can work in it. A branch
    /// without commits is fine.
    pub fn open(start: &Path) -> Result<Self, GitError> {
        let tree = Self::look(start)?;
        tree.settled_index()?;
        tree.require_identity()?;
        Ok(tree)
    }

    /// Like `open`, for commands that commit nothing: accepts any state of the repository.
    pub fn look(start: &Path) -> Result<Self, GitError> {
        // Else libgit2 looks up each object that a new tree names. Ours were just written, or come
        // from the index or another tree; those that are only remembered are looked up.
        git2::opts::strict_object_creation(false);
        // Git does not verify the hashes of objects that it reads either.
        git2::opts::strict_hash_verification(false);
        // Not `discover`, which forgets where it found a `.git` file and takes the folder round the
        // git folder for the work tree.
        let repo = Repository::open_ext(start, RepositoryOpenFlags::CROSS_FS, NO_CEILING)
            .map_err(|error| refusal(start, error))?;
        let folder = repo.workdir().ok_or_else(|| GitError::Bare(repo.path().to_owned()))?;
        Ok(Self {
            root: canonical(folder)?,
            git_dir: canonical(repo.path())?,
            common_dir: canonical(repo.commondir())?,
            home: branch::tip(&repo)?.reference,
            signer: Signer::of(&repo)?,
            service: None,
            highest: Cell::new(None),
            index_is_altered: Cell::new(true),
            lock_patience: LOCK_PATIENCE,
            repo,
        })
    }

    /// The index; fails during a merge, rebase or the like, because a commit would record half of
    /// it.
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

    /// Fails unless git has an identity.
    pub fn require_identity(&self) -> Result<(), GitError> {
        match self.repo.committer_from_env().and(self.repo.author_from_env()) {
            Ok(_) => Ok(()),
            Err(error) if error.code() == ErrorCode::NotFound => Err(GitError::NoIdentity),
            Err(error) => Err(error).doing("read the git identity"),
        }
    }
}

fn refusal(start: &Path, error: git2::Error) -> GitError {
    let path = start.to_owned();
    match (error.code(), error.class()) {
        (ErrorCode::Owner, _) => GitError::NotOwned(path),
        (ErrorCode::NotFound, ErrorClass::Repository) => GitError::NotARepository(path),
        _ => GitError::Format { path, reason: error.message().to_owned() },
    }
}

/// Git's name of the operation, as in `git WHAT --abort`.
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

/// `git init` with an identity of its own, and one commit of all files in the folder.
pub fn init_scratch(folder: &Path) -> Result<WorkTree, GitError> {
    let mut options = RepositoryInitOptions::new();
    options.initial_head("main").external_template(false).no_reinit(true);
    let repo = Repository::init_opts(folder, &options).doing("make a scratch repository")?;
    identify(&repo).doing("set the identity of the scratch repository")?;
    commit_all(&repo).doing("commit the scratch files")?;
    WorkTree::open(folder)
}

fn identify(repo: &Repository) -> Result<(), git2::Error> {
    let mut config = repo.config()?.open_level(git2::ConfigLevel::Local)?;
    config.set_bool("commit.gpgsign", false)?;
    config.set_str("user.name", "ralph")?;
    config.set_str("user.email", "ralph@localhost")
}

fn commit_all(repo: &Repository) -> Result<(), git2::Error> {
    let mut index = repo.index()?;
    let found = differences(repo, &index)?;
    stage_all(&found, &mut index, &mut |_| false)?;
    index.write()?;
    let tree = repo.find_tree(index.write_tree()?)?;
    let me = repo.signature()?;
    repo.commit(Some("HEAD"), &me, &me, "The files as they were\n", &tree, &[])?;
    Ok(())
}
