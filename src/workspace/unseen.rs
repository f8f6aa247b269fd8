//! Files that no commit will get are away while gates run: a gate that needs one would fail on a
//! clean checkout.
//!
//! They are those that appeared since the story's base and that git ignores, that may not be committed
//! by name, or that git cannot have: repositories and empty folders. Not the user's from before, and
//! not what tools fill, unless only the story's own rules hide it. They are renamed, never copied or
//! deleted. Only what ralph itself hid moves back: anybody can put something into the folder.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use git2::{Repository, RepositoryInitOptions, TreeWalkMode, TreeWalkResult};

use crate::decide::staging::Rules;
use crate::files::nofollow;
use crate::model::Base;

use super::checkout::is_absence;
use super::error::{GitContext, LibResult, file_error};
use super::tree::{bytes_of, entry_at, path_of};
use super::{OWN_GIT_FOLDER, Result, WorkTree, hash};

/// In the work tree's own git folder.
const FOLDER: &str = "unseen";
/// There too: the names of what is in that folder.
const NOTE: &str = "hidden";
const LONGEST_NOTE: u64 = 1 << 30;
/// A path has no such byte.
const END: u8 = 0;
const GIT: &str = ".git";
/// There too, for a repository that only has the rules of a base.
const RULES: &str = "rules";
const RULES_FILE: &str = ".gitignore";
/// In bytes.
const LARGEST_RULES: u64 = 64 << 20;
const EXCLUDES: &str = "core.excludesFile";

impl WorkTree {
    /// What no commit will get. Whatever is where such files go was planted, and moves away.
    pub fn find_unseen(&self, base: &Base, rules: &Rules) -> Result<Vec<PathBuf>> {
        self.clear_unseen()?;
        let mut wanted = Vec::<PathBuf>::new();
        for path in self.unseen(base, rules)? {
            if !wanted.iter().any(|folder| path.starts_with(folder)) {
                wanted.push(path);
            }
        }
        Ok(wanted)
    }

    /// Notes what is about to be hidden. Returns the note's hash, for the journal: another note does
    /// not count.
    pub fn note_unseen(&self, paths: &[PathBuf]) -> Result<String> {
        let (note, names) = (self.own(NOTE), paths.iter().map(|path| bytes_of(path)));
        let names = names.collect::<Vec<_>>().join(&END);
        self.write_whole(&note, &names, 0o600).map_err(file_error("write", &note))?;
        Ok(hash(&names).unwrap_or_default())
    }

    /// What the note names; nothing if it is not the one with this hash.
    pub fn noted_unseen(&self, noted: &str) -> Vec<PathBuf> {
        let names = nofollow::read(&self.own(NOTE), LONGEST_NOTE).unwrap_or_default();
        let is_known = hash(&names).as_deref() == Some(noted);
        names.split(|byte| *byte == END).filter(|_| is_known).map(path_of).collect()
    }

    /// Returns what is away. Call `show_unseen` afterwards, whatever happens.
    pub fn hide_unseen(&self, paths: Vec<PathBuf>) -> Vec<PathBuf> {
        // What cannot be moved stays: it may be in use, or on another disk.
        paths.into_iter().filter(|path| self.hide(path).is_ok()).collect()
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

    /// Moves back these, which are away, also for a driver that died. What is in the place of
    /// something is not touched: the other one goes to where replaced files are, and is named. So does
    /// whatever else is there.
    pub fn show_unseen(&self, paths: &[PathBuf]) -> Result<()> {
        let hidden = self.own(FOLDER);
        for path in paths {
            // What cannot be moved goes with the rest.
            let _ = self.show(path);
            for folder in path.ancestors().skip(1) {
                let _ = nofollow::remove_folder(&hidden.join(folder));
            }
        }
        let _ = nofollow::remove_folder(&hidden);
        self.clear_unseen()?;
        let note = self.own(NOTE);
        nofollow::remove(&note).map_err(file_error("delete", &note))
    }

    fn clear_unseen(&self) -> Result<()> {
        let folder = self.own(FOLDER);
        if !nofollow::exists(&folder) {
            return Ok(());
        }
        self.moved_away.take(&folder, &self.shown(&folder)).map_err(file_error("move", &folder))
    }

    fn show(&self, path: &Path) -> io::Result<()> {
        let (from, to) = (self.own(FOLDER).join(path), self.root.join(path));
        if !nofollow::exists(&from) || !self.can_hold(path) {
            return Ok(());
        }
        if nofollow::look(&to).is_err_and(|error| is_absence(&error)) {
            nofollow::make_folders(to.parent().unwrap_or(&self.root))?;
            return nofollow::rename(&from, &to);
        }
        // A repository is one thing.
        let is_in_git = path.file_name().is_some_and(|name| name == GIT);
        if nofollow::is_folder(&from) && nofollow::is_folder(&to) && !is_in_git {
            for entry in nofollow::list(&from)? {
                self.show(&path.join(entry.name))?;
            }
            nofollow::remove_folder(&from)
        } else if is_the_same(&from, &to) {
            nofollow::remove(&from)
        } else {
            self.moved_away.take(&from, path)
        }
    }

    /// A repository with nothing but the ignore rules of the base.
    fn rules_at(&self, base: &Base) -> Result<Repository> {
        let folder = self.own(RULES);
        if nofollow::remove_tree(&folder).is_err() {
            let moved = self.moved_away.take(&folder, &self.shown(&folder));
            moved.map_err(file_error("move", &folder))?;
        }
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
