//! Without a journal nothing says what was held: the newest snapshot has the files from before its
//! attempt, and git's setup can only be looked at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::{Config, TreeWalkMode, TreeWalkResult};

use crate::files;
use crate::model::{Base, StoryId};
use crate::workspace::catalog::{SnapshotKind, SnapshotRef};
use crate::workspace::error::{GitContext, GitError};
use crate::workspace::tree::{entry_at, path_of};
use crate::workspace::{Result, WorkTree};

use super::files::OnDisk;
use super::held::{HeldFiles, HeldPlace};

/// Of git's configuration: what names no program and leads nowhere else.
const PLAIN: [&str; 36] = [
    "advice.*",
    "author.*",
    "branch.*",
    "color.*",
    "commit.gpgsign",
    "committer.*",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.symlinks",
    "diff.algorithm",
    "diff.colormoved",
    "diff.renames",
    "extensions.*",
    "fetch.*",
    "gc.*",
    "gpg.format",
    "init.defaultbranch",
    "log.*",
    "maintenance.*",
    "merge.conflictstyle",
    "merge.ff",
    "pull.*",
    "push.*",
    "rebase.*",
    "rerere.*",
    "tag.*",
    "user.*",
];
const REMOTE: [&str; 5] = [".active", ".fetch", ".tagopt", ".prune", ".url"];
/// Files of git's setup that name no program.
const PLAIN_FILES: [&str; 7] =
    ["config", "config.worktree", "commondir", "gitdir", ".git", "exclude", "shallow"];

impl WorkTree {
    /// Nothing in git's setup names a program that could run, or leads to another repository.
    pub fn setup_is_plain(&self) -> Result<bool> {
        let held = HeldFiles::hold(&self.root, self.git_setup())?;
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        for path in held.paths() {
            let Some(name) = name(path).filter(|name| PLAIN_FILES.contains(&name.as_str())) else {
                return Ok(false);
            };
            if name.starts_with("config") && !is_plain(path, held.is_of_module(path))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The newest snapshot from before an attempt at this backlog in this work tree.
    pub fn newest_snapshot(&self, backlog: &str) -> Result<Option<SnapshotRef>> {
        let linked = self.linked_name();
        let is_it = |kept: &SnapshotRef| {
            let is_of_backlog = kept.backlog.as_deref() == Some(backlog);
            kept.kind == SnapshotKind::Snapshot && is_of_backlog && kept.work_tree == linked
        };
        Ok(self.snapshots()?.into_iter().rev().find(is_it))
    }

    /// Branch and work tree before the first of the attempts at one story that ended with this
    /// snapshot's.
    pub fn before_attempts(&self, newest: &SnapshotRef) -> Result<Base> {
        let all = self.snapshots()?;
        let of_run = all.iter().rev().filter(|kept| kept.kind == SnapshotKind::Snapshot);
        let of_run = of_run.filter(|kept| kept.run == newest.run && kept.number <= newest.number);
        let first = of_run.take_while(|kept| kept.story == newest.story).last();
        let first = self.commit_named(&first.unwrap_or(newest).commit)?;
        let commit = first.parent_id(0).ok().map(|id| id.to_string());
        Ok(Base { commit, tree: first.tree_id().to_string() })
    }

    /// Keeps all that changed since then as the story's work, and takes it out of branch and files.
    pub fn shelve_unrecorded(
        &self,
        story: &StoryId,
        before: &Base,
        except: &[PathBuf],
    ) -> Result<()> {
        let mut number = 1;
        loop {
            match self.shelve(story, number, before, except) {
                Err(GitError::RefTaken(_)) => number += 1,
                kept => return kept.map(drop),
            }
        }
    }

    /// A text file of a snapshot; None: it is not there.
    pub fn text_in(&self, snapshot: &SnapshotRef, path: &Path) -> Result<Option<String>> {
        let tree = self.commit_named(&snapshot.commit)?.tree().doing("read the snapshot")?;
        let Some(entry) = entry_at(Some(&tree), path)? else { return Ok(None) };
        let blob = self.repo.find_blob(entry.id).doing("read a file of the snapshot")?;
        Ok(String::from_utf8(blob.content().to_vec()).ok())
    }

    /// Files at these places that are not as they were in a snapshot. Those that git ignores are in
    /// none.
    pub fn differing(&self, snapshot: &SnapshotRef, places: &[HeldPlace]) -> Result<Vec<PathBuf>> {
        let tree = self.commit_named(&snapshot.commit)?.tree().doing("read the snapshot")?;
        let below = |path: &Path| path.strip_prefix(&self.root).map(Path::to_owned).ok();
        let places: Vec<HeldPlace> =
            places.iter().filter(|place| below(&place.path).is_some()).cloned().collect();
        let held = HeldFiles::hold(&self.root, places.clone())?;
        let mut paths: BTreeSet<PathBuf> = held.paths().filter_map(|path| below(path)).collect();
        let roots: Vec<PathBuf> = places.iter().filter_map(|place| below(&place.path)).collect();
        let walked = tree.walk(TreeWalkMode::PreOrder, |folder, entry| {
            let path = path_of(&[folder.as_bytes(), entry.name_bytes()].concat());
            if roots.iter().any(|root| path.starts_with(root))
                && entry.to_object(&self.repo).is_ok_and(|it| it.as_blob().is_some())
            {
                paths.insert(path.clone());
            }
            let leads = roots.iter().any(|root| root.starts_with(&path) || path.starts_with(root));
            if leads { TreeWalkResult::Ok } else { TreeWalkResult::Skip }
        });
        walked.doing("read the snapshot")?;
        let mut differing = Vec::new();
        for path in paths {
            let wanted = entry_at(Some(&tree), &path)?;
            let is_same = matches!(self.on_disk(&path)?, OnDisk::Entry(now) if now == wanted);
            if !is_same && (wanted.is_some() || !self.is_ignored(&path)?) {
                differing.push(path);
            }
        }
        Ok(differing)
    }

    /// Puts these files back as they were in a snapshot. `folder`: for the other versions.
    pub fn return_files(
        &self,
        snapshot: &SnapshotRef,
        paths: &[PathBuf],
        folder: &Path,
    ) -> Result<()> {
        let tree = self.commit_named(&snapshot.commit)?.tree_id().to_string();
        let before = Base { commit: None, tree };
        for path in paths {
            let place = self.root.join(path);
            if super::held::first_link(&self.root, &place).is_none() {
                self.move_to(&place, &folder.join(path))?;
            }
            self.return_file(&before, path, folder)?;
        }
        Ok(())
    }
}

/// `of_module`: a submodule's says where its files are.
pub(super) fn is_plain(config: &Path, of_module: bool) -> Result<bool> {
    // What cannot be read is not plain.
    if files::open(config).is_err() {
        return Ok(false);
    }
    let config = Config::open(config).doing("read the configuration")?;
    let mut entries = config.entries(None).doing("read the configuration")?;
    while let Some(entry) = entries.next() {
        let entry = entry.doing("read the configuration")?;
        let name = String::from_utf8_lossy(entry.name_bytes()).to_lowercase();
        // Without a value it means `true`.
        let value = if entry.has_value() { entry.value_bytes() } else { b"" };
        let value = String::from_utf8_lossy(value).into_owned();
        let fits = |plain: &&str| match plain.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == **plain,
        };
        // A transport can be a program.
        let is_remote = (name.starts_with("remote.") || name.starts_with("submodule."))
            && REMOTE.iter().any(|end| name.ends_with(end))
            && !value.contains("::");
        let is_place = of_module && name == "core.worktree";
        if !is_remote && !is_place && !PLAIN.iter().any(fits) {
            return Ok(false);
        }
    }
    Ok(true)
}
