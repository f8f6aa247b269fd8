//! Opens the repository, or refuses it; creates scratch repositories.
//!
//! Also the facts about a repository that are shown before a run: uncommitted changes, hooks,
//! attributes, and whether a file can be committed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{
    ErrorClass, ErrorCode, Index, Repository, RepositoryInitOptions, RepositoryOpenFlags,
    RepositoryState, StatusOptions,
};

use crate::files::{follow, nofollow};

use super::error::{GitContext, GitError, LibResult, file_error};
use super::git_files::{
    KnownFolders, mend_after_interruption, mend_own_files, require_plain_files,
};
use super::moved_away::MovedAway;
use super::scan::{differences, left_out_by_sparse_checkout, stage_all};
use super::sign::Signer;
use super::tree::{conflicting_paths, path_of};
use super::{OWN_FOLDER, Result, WorkTree, branch};

/// How long to wait for a lock of another process.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// The search goes up to the root.
const NO_CEILING: &[&Path] = &[];

impl WorkTree {
    /// Finds the repository from a folder upward and checks that ralph can work in it. A branch
    /// without commits is fine.
    pub fn open(start: &Path) -> Result<Self> {
        let tree = Self::look(start)?;
        tree.require_ready()?;
        Ok(tree)
    }

    /// That ralph can work in it.
    pub fn require_ready(&self) -> Result<()> {
        self.settled_index()?;
        self.require_identity()
    }

    /// Like `open`, for commands that commit nothing: accepts any state of the repository.
    pub fn look(start: &Path) -> Result<Self> {
        let moved_away = mend_own_files(start)?;
        require_plain_files(start)?;
        // Else libgit2 looks up each object that a new tree names. Ours were just written, or come
        // from the index or another tree; those that are only remembered are looked up.
        git2::opts::strict_object_creation(false);
        // Git does not verify the hashes of objects that it reads either.
        git2::opts::strict_hash_verification(false);
        // Not `discover`, which forgets where it found a `.git` file and takes the folder around
        // the git folder for the work tree.
        let repo = Repository::open_ext(start, RepositoryOpenFlags::CROSS_FS, NO_CEILING)
            .map_err(|error| refusal(start, error))?;
        let folder = repo.workdir().ok_or_else(|| GitError::Bare(repo.path().to_owned()))?;
        let git_dir = canonical(repo.path())?;
        Ok(Self {
            root: canonical(folder)?,
            moved_away: moved_away.unwrap_or_else(|| MovedAway::to(&git_dir)),
            git_dir,
            common_dir: canonical(repo.commondir())?,
            run_branch: branch::tip(&repo)?.reference,
            signer: Signer::of(&repo)?,
            service: None,
            highest: Cell::new(None),
            index_is_modified: Cell::new(true),
            holds_index: Cell::new(false),
            known: RefCell::default(),
            gate_scripts: RefCell::default(),
            held_index_hash: RefCell::default(),
            lock_patience: LOCK_PATIENCE,
            fetched: RefCell::default(),
            ignored: RefCell::default(),
            known_folders: KnownFolders::default(),
            beside: RefCell::default(),
            last_look: RefCell::default(),
            copied_folders: RefCell::default(),
            own_refs: RefCell::default(),
            repo,
        })
    }

    /// Opened once more: its configuration was put back.
    pub fn again(&self) -> Result<Self> {
        let (run_branch, known) = (self.run_branch.clone(), RefCell::new(self.known.take()));
        Ok(Self { run_branch, known, ..Self::look(&self.root)? })
    }

    /// Like `look`, for a run: what something left in git's way before it was interrupted makes room.
    pub fn look_for_run(start: &Path) -> Result<Self> {
        let moved_away = mend_after_interruption(start)?;
        let tree = Self::look(start)?;
        Ok(match moved_away {
            Some(moved_away) => Self { moved_away, ..tree },
            None => tree,
        })
    }

    /// Opened again: what moved away before is still to be told.
    pub fn after(self, earlier: Self) -> Self {
        Self { moved_away: earlier.moved_away, ..self }
    }

    /// The index; fails during a merge, rebase or the like, because a commit would record half of
    /// it.
    pub(super) fn settled_index(&self) -> Result<Index> {
        if let Some(what) = self.operation() {
            return Err(GitError::InProgress { what });
        }
        let index = self.fresh_index().map_err(|error| match error {
            GitError::Git { source, .. } => {
                let reason = source.message().to_owned();
                GitError::Format { path: self.root.clone(), reason }
            }
            other => other,
        })?;
        match conflicting_paths(&index)? {
            paths if paths.is_empty() => Ok(index),
            paths => Err(GitError::Unmerged(paths)),
        }
    }

    /// The merge, rebase or the like that is in progress.
    pub fn operation(&self) -> Option<&'static str> {
        operation(self.repo.state())
    }

    /// Fails unless git has an identity.
    pub fn require_identity(&self) -> Result<()> {
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

fn canonical(path: &Path) -> Result<PathBuf> {
    follow::real(path).map_err(file_error("find", path))
}

/// `git init` with an identity of its own, and one commit of all files in the folder.
pub fn init_scratch(folder: &Path) -> Result<WorkTree> {
    let mut options = RepositoryInitOptions::new();
    options.initial_head("main").external_template(false).no_reinit(true);
    let repo = Repository::init_opts(folder, &options).doing("make a scratch repository")?;
    identify(&repo).doing("set the identity of the scratch repository")?;
    commit_all(&repo).doing("commit the scratch files")?;
    WorkTree::open(folder)
}

fn identify(repo: &Repository) -> LibResult<()> {
    let mut config = repo.config()?.open_level(git2::ConfigLevel::Local)?;
    config.set_bool("commit.gpgsign", false)?;
    config.set_str("user.name", "ralph")?;
    config.set_str("user.email", "ralph@localhost")
}

fn commit_all(repo: &Repository) -> LibResult<()> {
    let mut index = repo.index()?;
    let found = differences(repo, &index)?;
    stage_all(&found, &mut index, &mut |_| false)?;
    index.write()?;
    let tree = repo.find_tree(index.write_tree()?)?;
    let me = repo.signature()?;
    repo.commit(Some("HEAD"), &me, &me, "The files as they were\n", &tree, &[])?;
    Ok(())
}

/// Hooks that git would run when it commits.
const COMMIT_HOOKS: [&str; 4] = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];
const SUBMODULE: u32 = 0o160_000;

/// What is not committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uncommitted {
    /// Tracked files with edits, staged or not.
    pub edited: Vec<PathBuf>,
    /// Untracked files, and folders with only untracked files.
    pub untracked: Vec<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Relative to the root where they are below it.
    pub hooks: Vec<PathBuf>,
    /// As .gitattributes has them: `filter=lfs`.
    pub attributes: BTreeSet<String>,
    pub is_sparse: bool,
    pub submodules: Vec<PathBuf>,
}

/// Where a path is; paths are relative to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileLocation {
    /// Tracked, or could be.
    Inside(PathBuf),
    Ignored(PathBuf),
    /// Outside of the work tree, in the git folder, or in a nested repository.
    Outside,
}

impl WorkTree {
    /// Waits for a running git process, up to the lock timeout.
    pub fn require_unlocked(&self) -> Result<()> {
        let lock = self.git_dir.join("index.lock");
        let found =
            || if nofollow::exists(&lock) { Err(GitError::Locked(lock.clone())) } else { Ok(()) };
        self.retry(&lock, found)
    }

    /// Ignores changes inside submodules and files that a sparse checkout excludes.
    pub fn uncommitted(&self, except: &[PathBuf]) -> Result<Uncommitted> {
        let sparse = left_out_by_sparse_checkout(&self.fresh_index()?);
        let mut options = StatusOptions::new();
        options.include_untracked(true).exclude_submodules(true);
        let statuses = self.without_pipes(|| self.repo.statuses(Some(&mut options)));
        let statuses = statuses.doing("find uncommitted edits")?;
        let mut found = Uncommitted::default();
        for entry in statuses.iter() {
            let path = path_of(entry.path_bytes());
            if except.contains(&path) || sparse.contains(&path) || path.starts_with(OWN_FOLDER) {
                continue;
            }
            let is_untracked = entry.status() == git2::Status::WT_NEW;
            if is_untracked { found.untracked.push(path) } else { found.edited.push(path) }
        }
        Ok(found)
    }

    pub fn surroundings(&self) -> Result<Surroundings> {
        let index = self.fresh_index()?;
        let config = self.repo.config().doing("read the configuration")?;
        let submodules = index.iter().filter(|entry| entry.mode == SUBMODULE);
        Ok(Surroundings {
            hooks: self.hooks(&config),
            attributes: self.attributes(&index),
            is_sparse: config.get_bool("core.sparseCheckout").unwrap_or(false),
            submodules: submodules.map(|entry| path_of(&entry.path)).collect(),
        })
    }

    fn hooks(&self, config: &git2::Config) -> Vec<PathBuf> {
        let set = config.get_path("core.hooksPath").map(|path| self.root.join(path));
        let folder = set.unwrap_or_else(|_| self.common_dir.join("hooks"));
        let hooks = COMMIT_HOOKS.iter().map(|name| folder.join(name));
        let below = |path: PathBuf| path.strip_prefix(&self.root).unwrap_or(&path).to_owned();
        hooks.filter(|hook| is_program(hook)).map(below).collect()
    }

    /// The file need not exist; links are followed.
    pub fn locate(&self, path: &Path) -> Result<FileLocation> {
        let path = resolved(path)?;
        let is_ours = |path: &&Path| !path.as_os_str().is_empty() && !self.is_anothers(path);
        let Some(inside) = path.strip_prefix(&self.root).ok().filter(is_ours) else {
            return Ok(FileLocation::Outside);
        };
        let inside = inside.to_owned();
        let ignored = inside.starts_with(OWN_FOLDER)
            || (self.fresh_index()?.get_path(&inside, 0).is_none() && self.is_ignored(&inside)?);
        Ok(if ignored { FileLocation::Ignored(inside) } else { FileLocation::Inside(inside) })
    }

    fn is_anothers(&self, inside: &Path) -> bool {
        let in_git_folder = inside.components().any(|part| part.as_os_str() == ".git");
        let folders = inside.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        in_git_folder
            || folders.into_iter().any(|f| nofollow::exists(&self.root.join(f).join(".git")))
    }
}

fn is_program(path: &Path) -> bool {
    let found = follow::look(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn resolved(path: &Path) -> Result<PathBuf> {
    if let Ok(path) = follow::real(path) {
        return Ok(path);
    }
    let path = std::path::absolute(path).map_err(file_error("find", path))?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(path) };
    // Neither needs the folder to exist.
    Ok(follow::real(folder).map_or_else(|_| path.clone(), |folder| folder.join(name)))
}
