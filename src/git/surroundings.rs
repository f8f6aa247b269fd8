//! What a repository has beside commits that people should know about before a run.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use git2::{Index, StatusOptions};

use super::changes::path_of;
use super::error::{Doing, GitError};
use super::lock::patiently;
use super::snapshot::left_out_by_sparse_checkout;
use super::{OWN_FOLDER, WorkTree};

/// Hooks that git would run when it commits.
const COMMIT_HOOKS: [&str; 4] = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];
const SUBMODULE: u32 = 0o160_000;

/// What is not committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uncommitted {
    /// Tracked files with edits, staged or not.
    pub edited: Vec<PathBuf>,
    /// Files, and folders that have nothing else in them.
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

impl WorkTree {
    /// Waits for a git process that is at work, as long as it may take.
    pub fn require_unlocked(&self) -> Result<(), GitError> {
        let lock = self.git_dir.join("index.lock");
        patiently(self.lock_patience, &lock, || {
            if lock.exists() { Err(GitError::Locked(lock.clone())) } else { Ok(()) }
        })
    }

    /// Work in submodules is theirs, and what a sparse checkout leaves out is not missing.
    pub fn uncommitted(&self, except: &[PathBuf]) -> Result<Uncommitted, GitError> {
        let sparse = left_out_by_sparse_checkout(&self.fresh_index()?);
        let mut options = StatusOptions::new();
        options.include_untracked(true).exclude_submodules(true);
        let statuses =
            self.repo.statuses(Some(&mut options)).doing("look for uncommitted edits")?;
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

    /// Those that change a file on its way into a commit, wherever they are set.
    fn attributes(&self, index: &Index) -> BTreeSet<String> {
        let tracked = index.iter().map(|entry| path_of(&entry.path));
        let tracked = tracked.filter(|path| path.ends_with(".gitattributes"));
        let files = tracked.map(|path| self.root.join(path));
        let files = files
            .chain([self.root.join(".gitattributes"), self.common_dir.join("info/attributes")]);
        let texts = files.filter_map(|file| fs::read_to_string(file).ok());
        let words: Vec<String> = texts.flat_map(|text| attribute_words(&text)).collect();
        words.into_iter().filter(|word| self.changes_files(word)).collect()
    }

    fn changes_files(&self, word: &str) -> bool {
        match word.split_once('=') {
            Some(("filter", name)) => self.is_configured(name),
            Some(("working-tree-encoding", _)) => true,
            _ => false,
        }
    }
}

fn attribute_words(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| line.split_whitespace().skip(1)).map(str::to_owned).collect()
}

fn is_program(path: &Path) -> bool {
    let found = fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
