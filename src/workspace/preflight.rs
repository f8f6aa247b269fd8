//! Facts about a repository before a run: uncommitted changes, hooks, attributes, and whether a
//! file can be committed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use git2::StatusOptions;

use super::error::{GitContext, GitError, file_error};
use super::locks::patiently;
use super::scan::left_out_by_sparse_checkout;
use super::tree::path_of;
use super::{OWN_FOLDER, WorkTree};

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
    pub fn require_unlocked(&self) -> Result<(), GitError> {
        let lock = self.git_dir.join("index.lock");
        patiently(self.lock_patience, &lock, || {
            if lock.exists() { Err(GitError::Locked(lock.clone())) } else { Ok(()) }
        })
    }

    /// Ignores changes inside submodules and files that a sparse checkout excludes.
    pub fn uncommitted(&self, except: &[PathBuf]) -> Result<Uncommitted, GitError> {
        let sparse = left_out_by_sparse_checkout(&self.fresh_index()?);
        let mut options = StatusOptions::new();
        options.include_untracked(true).exclude_submodules(true);
        let statuses = self.repo.statuses(Some(&mut options)).doing("find uncommitted edits")?;
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

    pub fn surroundings(&self) -> Result<Surroundings, GitError> {
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
        let folder = match config.get_path("core.hooksPath") {
            Ok(path) => self.root.join(path),
            Err(_) => self.common_dir.join("hooks"),
        };
        let hooks = COMMIT_HOOKS.iter().map(|name| folder.join(name));
        let below =
            |path: PathBuf| path.strip_prefix(&self.root).map(Path::to_owned).unwrap_or(path);
        hooks.filter(|hook| is_program(hook)).map(below).collect()
    }

    /// The file need not exist; links are followed.
    pub fn place_of(&self, path: &Path) -> Result<FileLocation, GitError> {
        let path = resolved(path)?;
        let Ok(inside) = path.strip_prefix(&self.root) else {
            return Ok(FileLocation::Outside);
        };
        if inside.as_os_str().is_empty() || self.is_anothers(inside) {
            return Ok(FileLocation::Outside);
        }
        let inside = inside.to_owned();
        if inside.starts_with(OWN_FOLDER) {
            return Ok(FileLocation::Ignored(inside));
        }
        let tracked = self.fresh_index()?.get_path(&inside, 0).is_some();
        let ignored = !tracked && self.is_ignored(&inside)?;
        Ok(if ignored { FileLocation::Ignored(inside) } else { FileLocation::Inside(inside) })
    }

    fn is_anothers(&self, inside: &Path) -> bool {
        let in_git_folder = inside.components().any(|part| part.as_os_str() == ".git");
        let folders = inside.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        in_git_folder || folders.into_iter().any(|f| self.root.join(f).join(".git").exists())
    }
}

fn is_program(path: &Path) -> bool {
    let found = fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn resolved(path: &Path) -> Result<PathBuf, GitError> {
    if let Ok(path) = path.canonicalize() {
        return Ok(path);
    }
    let path = std::path::absolute(path).map_err(file_error("find", path))?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path);
    };
    // Neither needs the folder to exist.
    Ok(folder.canonicalize().map_or_else(|_| path.clone(), |folder| folder.join(name)))
}
