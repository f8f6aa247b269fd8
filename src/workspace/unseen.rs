//! Files that no commit will get are away while gates run: a gate that needs one would fail on a
//! clean checkout.
//!
//! They are those that appeared since the story's base and that git ignores, that may not be committed
//! by name, or that git cannot have: repositories and empty folders. Not the user's from before, and
//! not what tools fill, unless only the story's own rules hide it. They are renamed, never copied or
//! deleted, and whoever finds some in the folder moves them back.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use git2::{Repository, RepositoryInitOptions, TreeWalkMode, TreeWalkResult};

use crate::decide::staging::Rules;
use crate::files::nofollow;
use crate::model::Base;

use super::checkout::is_absence;
use super::error::{GitContext, LibResult, file_error};
use super::tree::{entry_at, path_of};
use super::{OWN_GIT_FOLDER, Result, WorkTree};

/// In the work tree's own git folder.
const FOLDER: &str = "unseen";
/// There too, for a repository that only has the rules of a base.
const RULES: &str = "rules";
const RULES_FILE: &str = ".gitignore";
/// In bytes.
const LARGEST_RULES: u64 = 64 << 20;
const EXCLUDES: &str = "core.excludesFile";

impl WorkTree {
    /// Returns what is away. Call `show_unseen` afterwards, whatever happens.
    pub fn hide_unseen(&self, base: &Base, rules: &Rules) -> Result<Vec<PathBuf>> {
        self.show_unseen()?;
        let mut hidden = Vec::<PathBuf>::new();
        for path in self.unseen(base, rules)? {
            let is_away = hidden.iter().any(|folder| path.starts_with(folder));
            // What cannot be moved stays: it may be in use, or on another disk.
            if !is_away && self.hide(&path).is_ok() {
                hidden.push(path);
            }
        }
        Ok(hidden)
    }

    fn unseen(&self, base: &Base, rules: &Rules) -> Result<BTreeSet<PathBuf>> {
        let (known, beside) = (self.tree(&base.tree)?, self.beside());
        let (mut unseen, mut outputs) = (BTreeSet::new(), Vec::new());
        self.with_found_ignored(|found| {
            let all = [&found.files, &found.repositories, &found.empty];
            unseen.extend(all.into_iter().flatten().cloned());
            outputs.extend(found.outputs().cloned());
        })?;
        let scan = self.scan()?;
        let head = self.tree_at(scan.head)?;
        for (path, entry) in scan.found {
            let is_left_out = entry.is_some() && entry_at(head.as_ref(), &path)?.is_none();
            let of = rules.never(&path).filter(|_| is_left_out);
            if of.is_some_and(|of| of == path || !super::guard::is_of_tools(&self.root.join(of))) {
                unseen.insert(path);
            }
        }
        outputs.retain(|path| !beside.has(path));
        if !outputs.is_empty() {
            let rules = self.rules_at(base)?;
            let is_hidden = |path: &PathBuf| !rules.is_path_ignored(path.join("")).unwrap_or(true);
            unseen.extend(outputs.into_iter().filter(is_hidden));
            drop(rules);
            let _ = nofollow::remove_tree(&self.own(RULES));
        }
        let is_new = |path: &PathBuf| {
            !beside.has(path) && entry_at(Some(&known), path).is_ok_and(|entry| entry.is_none())
        };
        unseen.retain(is_new);
        Ok(unseen)
    }

    fn hide(&self, path: &Path) -> io::Result<()> {
        let folder = self.own(FOLDER);
        nofollow::make_private_folders(&folder)?;
        let away = folder.join(path);
        nofollow::make_folders(away.parent().unwrap_or(&folder))?;
        nofollow::rename(&self.root.join(path), &away)?;
        self.prune_folders(path);
        Ok(())
    }

    /// Moves back what is away, also for a driver that died. What is in the place of something is
    /// not touched: the other one goes to where replaced files are, and is named.
    pub fn show_unseen(&self) -> Result<()> {
        let folder = self.own(FOLDER);
        if !nofollow::exists(&folder) {
            return Ok(());
        }
        let shown =
            self.show_in(&folder, Path::new("")).and_then(|()| nofollow::remove_folder(&folder));
        shown.map_err(file_error("move files back from", &folder))
    }

    fn show_in(&self, folder: &Path, name: &Path) -> io::Result<()> {
        for entry in nofollow::list(&folder.join(name))? {
            let path = name.join(entry.name);
            let (from, to) = (folder.join(&path), self.root.join(&path));
            let is_folder = nofollow::is_folder;
            let is_free = nofollow::look(&to).is_err_and(|error| is_absence(&error));
            let move_back = || {
                nofollow::make_folders(to.parent().unwrap_or(&self.root))?;
                nofollow::rename(&from, &to)
            };
            if self.can_hold(&path) && is_free && move_back().is_ok() {
                continue;
            }
            if is_folder(&from) && is_folder(&to) {
                self.show_in(folder, &path)?;
                nofollow::remove_folder(&from)?;
            } else if is_the_same(&from, &to) {
                nofollow::remove(&from)?;
            } else {
                self.moved_away.take(&from, &path)?;
            }
        }
        Ok(())
    }

    /// A repository with nothing but the ignore rules of the base.
    fn rules_at(&self, base: &Base) -> Result<Repository> {
        let folder = self.own(RULES);
        let _ = nofollow::remove_tree(&folder);
        let mut rules = Vec::new();
        let tree = self.tree(&base.tree)?;
        let walked = tree.walk(TreeWalkMode::PreOrder, |parent, entry| {
            if entry.name_bytes() == RULES_FILE.as_bytes() {
                rules.push((path_of(parent.as_bytes()).join(RULES_FILE), entry.id()));
            }
            TreeWalkResult::Ok
        });
        walked.doing("read the base's ignore rules")?;
        let write = |(path, id): &(PathBuf, git2::Oid)| {
            let blob = self.repo.find_blob(*id).map_err(io::Error::other)?;
            let file = folder.join(path);
            file.parent().map_or(Ok(()), nofollow::make_folders)?;
            nofollow::write_new(&file, blob.content())
        };
        rules.iter().try_for_each(write).map_err(file_error("write", &folder))?;
        let made = self.init_rules(&folder).doing("make a repository for ignore rules")?;
        let (own, copy) = (self.common_dir.join("info/exclude"), made.path().join("info/exclude"));
        // There may be none; a link is the human's.
        if let Ok(rules) = crate::files::read(&own, LARGEST_RULES) {
            let folder = copy.parent().map_or(Ok(()), nofollow::make_folders);
            let _ = folder.and_then(|()| nofollow::write_new(&copy, &rules));
        }
        Ok(made)
    }

    fn init_rules(&self, folder: &Path) -> LibResult<Repository> {
        let mut options = RepositoryInitOptions::new();
        let repo = Repository::init_opts(folder, options.external_template(false))?;
        if let Ok(excludes) = self.repo.config()?.get_string(EXCLUDES) {
            repo.config()?.open_level(git2::ConfigLevel::Local)?.set_str(EXCLUDES, &excludes)?;
        }
        Ok(repo)
    }

    fn own(&self, name: &str) -> PathBuf {
        self.git_dir.join(OWN_GIT_FOLDER).join(name)
    }
}

fn is_the_same(one: &Path, other: &Path) -> bool {
    const MOST: u64 = 10 << 20;
    match (nofollow::read(one, MOST), nofollow::read(other, MOST)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
