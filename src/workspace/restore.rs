//! Restores files from a snapshot.
//!
//! A note says what is restored until it is done: if the process is killed, the same command or the
//! next run goes on with it. Files that were edited since the checkpoint are left alone then.

use std::io;
use std::path::{Path, PathBuf};

use git2::Tree;

use crate::files::atomic::{publish, remove_leftovers};
use crate::files::nofollow;

use super::catalog::SnapshotRef;
use super::checkout::{is_rules, remove_if_there};
use super::error::{GitError, file_error};
use super::locks::private_parent;
use super::tree::{TreeChange, between, bytes_of, path_of};
use super::{OWN_GIT_FOLDER, Result, WorkTree};

/// In the work tree's own git folder.
const NOTE: &str = "restoring";
const LONGEST_NOTE: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The checkpoint taken right before.
    pub checkpoint: SnapshotRef,
    /// Sorted.
    pub files: Vec<PathBuf>,
}

/// What is being restored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RestoreNote {
    /// The snapshot's number, and the checkpoint's.
    from: u64,
    checkpoint: u64,
    paths: Vec<PathBuf>,
}

impl RestoreNote {
    fn bytes(&self) -> Vec<u8> {
        let numbers = [self.from, self.checkpoint].map(|number| number.to_string().into_bytes());
        let paths = self.paths.iter().map(|path| bytes_of(path).to_vec());
        numbers.into_iter().chain(paths).collect::<Vec<_>>().join(&0)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.split(|byte| *byte == 0);
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
        let (from, checkpoint) = (number()?, number()?);
        Some(Self { from, checkpoint, paths: parts.map(path_of).collect() })
    }
}

impl WorkTree {
    /// Takes a checkpoint, then restores `paths` (files or folders, relative to the root) from the
    /// snapshot, or without paths everything except `except`. Index and HEAD stay as they are. None
    /// if nothing differs.
    pub fn restore(
        &self,
        kept: &SnapshotRef,
        paths: &[PathBuf],
        except: &[PathBuf],
    ) -> Result<Option<Restored>> {
        if let Some(note) = self.restore_note()?
            && (note.from, note.paths.as_slice()) == (kept.number, paths)
        {
            return self.carry_out_restore(&note, except).map(Some);
        }
        let (_, then) = self.sides(kept)?;
        let now = self.tree_now()?;
        for path in paths {
            require_known(kept, path, &[&then, &now])?;
        }
        let changes = self.wanted_between(&now, &then, paths, except)?;
        if changes.is_empty() {
            return Ok(None);
        }
        let hidden = self.files_in_the_way(&changes);
        if !hidden.is_empty() {
            return Err(GitError::IgnoredInTheWay(hidden));
        }
        self.require_writable(&changes)?;
        let text = format!("ralph: before `ralph restore {}`", kept.number);
        let checkpoint = self.checkpoint(&text)?.number;
        let note = RestoreNote { from: kept.number, checkpoint, paths: paths.to_owned() };
        let path = self.restore_note_path();
        let write = || {
            private_parent(&path)?;
            publish(&path, &note.bytes())
        };
        write().map_err(file_error("write", &path))?;
        self.carry_out_restore(&note, except).map(Some)
    }

    /// Goes on with what a killed process began. Returns the number of the snapshot.
    pub fn finish_restore(&self, except: &[PathBuf]) -> Result<Option<u64>> {
        let note = self.restore_note()?.filter(|_| !self.was_interrupted());
        let Some(note) = note else { return Ok(None) };
        self.carry_out_restore(&note, except)?;
        Ok(Some(note.from))
    }

    fn carry_out_restore(&self, note: &RestoreNote, except: &[PathBuf]) -> Result<Restored> {
        let checkpoint = self.find_snapshot(note.checkpoint)?;
        let (_, before) = self.sides(&checkpoint)?;
        let (_, then) = self.sides(&self.find_snapshot(note.from)?)?;
        let changes = self.wanted_between(&before, &then, &note.paths, except)?;
        let files = changes.iter().map(|change| change.path.clone()).collect();
        let now = self.tree_now()?;
        let (rules, others): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| is_rules(&change.path));
        // Ignore rules first: files that the snapshot ignored must not be deleted because the rules
        // changed.
        self.replace_unchanged(&now, &then, &rules)?;
        let mut wanted = Vec::new();
        for change in others {
            if change.new.is_some() || !self.is_ignored(&change.path)? {
                wanted.push(change);
            }
        }
        self.replace_unchanged(&now, &then, &wanted)?;
        self.forget_restore()?;
        Ok(Restored { checkpoint, files })
    }

    fn wanted_between(
        &self,
        now: &Tree<'_>,
        then: &Tree<'_>,
        paths: &[PathBuf],
        except: &[PathBuf],
    ) -> Result<Vec<TreeChange>> {
        let is_wanted = |change: &TreeChange| match paths {
            [] => !except.contains(&change.path),
            paths => paths.iter().any(|path| change.path.starts_with(path)),
        };
        let mut changes = between(&self.repo, Some(now), Some(then))?;
        changes.retain(is_wanted);
        Ok(changes)
    }

    pub(super) fn forget_restore(&self) -> Result<()> {
        let path = self.restore_note_path();
        remove_if_there(&path).map_err(file_error("delete", &path))
    }

    fn restore_note_path(&self) -> PathBuf {
        self.git_dir.join(OWN_GIT_FOLDER).join(NOTE)
    }

    fn restore_note(&self) -> Result<Option<RestoreNote>> {
        let path = self.restore_note_path();
        if !path.parent().is_some_and(nofollow::is_folder) {
            return Ok(None);
        }
        remove_leftovers(&path).map_err(file_error("clean up", &path))?;
        if !nofollow::exists(&path) {
            return Ok(None);
        }
        let bytes = nofollow::read(&path, LONGEST_NOTE).map_err(io::Error::from);
        Ok(RestoreNote::parse(&bytes.map_err(file_error("read", &path))?))
    }
}

/// A misspelled path must not look like one without changes.
fn require_known(kept: &SnapshotRef, path: &Path, trees: &[&Tree<'_>]) -> Result<()> {
    let everything = path.as_os_str().is_empty();
    if everything || trees.iter().any(|tree| tree.get_path(path).is_ok()) {
        return Ok(());
    }
    let nearest = trees.first().and_then(|tree| nearest(tree, path));
    Err(GitError::NotInSnapshot { number: kept.number, path: path.display().to_string(), nearest })
}

fn nearest(tree: &Tree<'_>, wanted: &Path) -> Option<String> {
    let wanted = wanted.to_string_lossy();
    let mut best: (f64, Option<String>) = (0.8, None);
    let _ = tree.walk(git2::TreeWalkMode::PreOrder, |folder, entry| {
        let path = path_of(entry.name_bytes());
        let path = format!("{folder}{}", path.display());
        let alike = strsim::jaro_winkler(&path, &wanted);
        if alike > best.0 {
            best = (alike, Some(path));
        }
        git2::TreeWalkResult::Ok
    });
    best.1
}
