//! Differences between states of the work tree, for people and for `git apply`.

use std::path::{Path, PathBuf};

use git2::{
    DiffFormat, DiffLineType, DiffOptions, Patch, Pathspec, PathspecFlags, Repository, Tree,
};

use crate::model::{Base, Changes, DiffStat, FileChange};

use super::catalog::{SnapshotRef, parse_snapshot};
use super::commit::{ClosedStory, closing};
use super::error::GitContext;
use super::tree::{TreeChange, TreeEntry, between, entry_at, path_of};
use super::{Result, WorkTree};

const READ_KEPT: &str = "read a snapshot";

/// Files that are named.
const MOST_FILES: usize = 20;
/// In bytes: lines of larger files are not counted.
const LARGEST_FILE: i64 = 10_000_000;

impl WorkTree {
    /// From a story's base to the work tree as it is now, as a unified diff.
    pub fn diff_since(&self, base: &Base) -> Result<Vec<u8>> {
        let now = self.tree_now()?;
        patch(&self.repo, Some(&self.tree(&base.tree)?), &now)
    }

    /// What a closed story changed, its agent's own commits included.
    pub fn diff_of_closing(&self, closing: &ClosedStory) -> Result<Vec<u8>> {
        let (before, after) = self.sides_of(closing)?;
        patch(&self.repo, before.as_ref(), &after)
    }

    /// How much it changed, except for some files.
    pub fn stat_of_closing(&self, commit: &str, except: &[PathBuf]) -> Result<DiffStat> {
        let (before, after) = self.sides_of(&closing(&self.commit_named(commit)?, &[]))?;
        self.stat_of_changes(between(&self.repo, before.as_ref(), Some(&after))?, except)
    }

    pub(super) fn stat_of_changes(
        &self,
        mut changes: Vec<TreeChange>,
        except: &[PathBuf],
    ) -> Result<DiffStat> {
        changes.retain(|change| !except.contains(&change.path));
        let mut stat = DiffStat { files: changes.len(), ..DiffStat::default() };
        for change in changes {
            let (old, new) = (self.countable(change.old)?, self.countable(change.new)?);
            let (Some(old), Some(new)) = (old, new) else { continue };
            let patch = Patch::from_buffers(&old, None, &new, None, None);
            let (_, added, removed) =
                patch.and_then(|patch| patch.line_stats()).doing("count lines")?;
            stat.added += added;
            stat.removed += removed;
        }
        Ok(stat)
    }

    /// None: its lines are not counted.
    fn countable(&self, entry: Option<TreeEntry>) -> Result<Option<Vec<u8>>> {
        let Some(entry) = entry else { return Ok(Some(Vec::new())) };
        if entry.is_nested_repository() {
            return Ok(None);
        }
        let odb = self.repo.odb().doing("open the object database")?;
        let (size, _) = odb.read_header(entry.id).doing("read a file's size")?;
        if size > usize::try_from(LARGEST_FILE).unwrap_or(usize::MAX) {
            return Ok(None);
        }
        let blob = self.repo.find_blob(entry.id).doing("read a file's content")?;
        Ok(Some(blob.content().to_vec()))
    }

    pub(super) fn sides_of(&self, closing: &ClosedStory) -> Result<(Option<Tree<'_>>, Tree<'_>)> {
        let tree = |id: &str| self.commit_named(id)?.tree().doing("read a commit's tree");
        let before = closing.base.as_deref().map(tree).transpose()?;
        Ok((before, tree(&closing.commit)?))
    }

    /// How many files differ: an attempt's work from the story's base, other snapshots from their
    /// commit.
    pub fn files_of(&self, kept: &SnapshotRef) -> Result<usize> {
        let (before, after) = self.sides(kept)?;
        Ok(between(&self.repo, before.as_ref(), Some(&after))?.len())
    }

    /// As a unified diff.
    pub fn diff_of(&self, kept: &SnapshotRef) -> Result<Vec<u8>> {
        let (before, after) = self.sides(kept)?;
        patch(&self.repo, before.as_ref(), &after)
    }

    pub(super) fn sides(&self, kept: &SnapshotRef) -> Result<(Option<Tree<'_>>, Tree<'_>)> {
        let commit = self.commit_named(&kept.commit)?;
        let last = commit.parents().next_back();
        let before = last.map(|parent| parent.tree()).transpose().doing(READ_KEPT)?;
        Ok((before, commit.tree().doing(READ_KEPT)?))
    }

    /// From one state of the work tree to another.
    pub fn summary(&self, from: &Base, to: &Base) -> Result<Changes> {
        if from.tree == to.tree {
            return Ok(Changes::default());
        }
        self.summary_between(Some(&self.tree(&from.tree)?), &self.tree(&to.tree)?)
    }

    /// Of shelved work.
    pub fn summary_of(&self, reference: &str) -> Result<Changes> {
        let found = self.repo.find_reference(reference).and_then(|r| r.peel_to_commit()).ok();
        let kept = found.and_then(|commit| parse_snapshot(reference.to_owned(), &commit));
        let Some(kept) = kept else { return Ok(Changes::default()) };
        let (old, new) = self.sides(&kept)?;
        self.summary_between(old.as_ref(), &new)
    }

    fn summary_between(&self, old: Option<&Tree<'_>>, new: &Tree<'_>) -> Result<Changes> {
        let mut options = DiffOptions::new();
        options.max_size(LARGEST_FILE);
        let diff = self.repo.diff_tree_to_tree(old, Some(new), Some(&mut options));
        let diff = diff.doing("compare trees")?;
        let mut files = Vec::new();
        for (at, delta) in diff.deltas().enumerate().take(MOST_FILES) {
            let file = delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes());
            let path = path_of(file.unwrap_or_default()).to_string_lossy().into_owned();
            let patch = Patch::from_diff(&diff, at).doing("compare a file")?;
            let stats = patch.map(|patch| patch.line_stats()).transpose().doing("count lines")?;
            let (_, added, removed) = stats.unwrap_or_default();
            files.push(FileChange { path, added, removed });
        }
        Ok(Changes { files, more: diff.deltas().len().saturating_sub(MOST_FILES) })
    }

    /// The file as committed at the story's base, if the branch has another version now.
    pub fn committed_before(&self, base: &Base, path: &Path) -> Result<Option<Vec<u8>>> {
        let Some(commit) = base.commit.as_deref() else { return Ok(None) };
        let before = self.commit_named(commit)?.tree().doing("read a commit's tree")?;
        let Some(now) = self.head_commit()? else { return Ok(None) };
        let now = self.commit_named(&now)?.tree().doing("read a commit's tree")?;
        if entry_at(Some(&before), path)? == entry_at(Some(&now), path)? {
            return Ok(None);
        }
        self.content(&before, path)
    }

    /// A file as the branch has it.
    pub fn committed(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        let Some(now) = self.head_commit()? else { return Ok(None) };
        let now = self.commit_named(&now)?.tree().doing("read a commit's tree")?;
        self.content(&now, path)
    }

    fn content(&self, tree: &Tree<'_>, path: &Path) -> Result<Option<Vec<u8>>> {
        let Some(entry) = entry_at(Some(tree), path)? else { return Ok(None) };
        if entry.is_nested_repository() {
            return Ok(None);
        }
        let blob = self.repo.find_blob(entry.id).doing("read a file of the base")?;
        Ok(Some(blob.content().to_vec()))
    }
}

/// Patterns of a setting. For libgit2, none at all match everything.
pub(super) struct Patterns(Option<Pathspec>);

impl Patterns {
    pub fn new(doing: &'static str, patterns: &[String]) -> Result<Self> {
        // For libgit2, `**/` needs a folder; for people, `**/x` is `x` too.
        let at_root = patterns.iter().filter_map(|pattern| pattern.strip_prefix("**/"));
        let all: Vec<&str> = patterns.iter().map(String::as_str).chain(at_root).collect();
        if all.is_empty() {
            return Ok(Self(None));
        }
        Ok(Self(Some(Pathspec::new(all).doing(doing)?)))
    }

    pub fn matches(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|all| all.matches_path(path, PathspecFlags::DEFAULT))
    }
}

pub(super) fn stat(repo: &Repository, old: Option<&Tree<'_>>, new: &Tree<'_>) -> Result<DiffStat> {
    let diff = repo.diff_tree_to_tree(old, Some(new), None).and_then(|diff| diff.stats());
    let stats = diff.doing("compare trees")?;
    let (added, removed) = (stats.insertions(), stats.deletions());
    Ok(DiffStat { files: stats.files_changed(), added, removed })
}

pub(super) fn patch(repo: &Repository, old: Option<&Tree<'_>>, new: &Tree<'_>) -> Result<Vec<u8>> {
    let diff = repo.diff_tree_to_tree(old, Some(new), None).doing("compare trees")?;
    let mut text = Vec::new();
    let written = diff.print(DiffFormat::Patch, |_, _, line| {
        match line.origin_value() {
            DiffLineType::Context => text.push(b' '),
            DiffLineType::Addition => text.push(b'+'),
            DiffLineType::Deletion => text.push(b'-'),
            _ => {}
        }
        text.extend_from_slice(line.content());
        true
    });
    written.doing("write the difference")?;
    Ok(text)
}

/// As `git hash-object` makes it.
pub fn hash(bytes: &[u8]) -> Option<String> {
    let id = git2::Oid::hash_object(git2::ObjectType::Blob, bytes).ok()?;
    Some(id.to_string())
}

/// As `git diff` shows it.
pub fn text_diff(path: &Path, old: &[u8], new: &[u8]) -> Result<String> {
    let patch = Patch::from_buffers(old, Some(path), new, Some(path), None);
    let mut patch = patch.doing("compare a file")?;
    let text = patch.to_buf().doing("compare a file")?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
