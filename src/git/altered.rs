//! How files that an agent should leave alone differ from the story's base.

use std::fs;
use std::path::{Path, PathBuf};

use git2::{Patch, Pathspec, PathspecFlags, Tree};

use super::WorkTree;
use super::changes::{between, entry_at};
use super::error::{Doing, GitError};
use crate::core::event::Base;

/// How much of a difference is shown, in bytes.
const LONGEST_DIFF: usize = 16 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Altered {
    pub path: PathBuf,
    /// As a unified diff, for people.
    pub diff: String,
}

impl WorkTree {
    /// Of the named files, those that were there at the base and are not as they were; of what
    /// the patterns match, whatever differs.
    pub fn altered(
        &self,
        base: &Base,
        named: &[PathBuf],
        patterns: &[String],
    ) -> Result<Vec<Altered>, GitError> {
        let tree = self.tree(&base.tree)?;
        let mut paths = named.to_vec();
        paths.extend(self.matching(&tree, patterns)?);
        paths.sort();
        paths.dedup();
        let mut altered = Vec::new();
        for path in paths {
            let is_named = named.contains(&path);
            let old = self.content(&tree, &path)?;
            let new = fs::read(self.root.join(&path)).ok();
            if (is_named && old.is_none()) || same(old.as_deref(), new.as_deref()) {
                continue;
            }
            let diff = diff(&path, old.as_deref(), new.as_deref())?;
            altered.push(Altered { path, diff });
        }
        Ok(altered)
    }

    /// A file as the story's base has it committed, when the branch has it otherwise now.
    pub fn committed_before(&self, base: &Base, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
        let Some(commit) = base.commit.as_deref() else { return Ok(None) };
        let before = self.commit_named(commit)?.tree().doing("read a commit's tree")?;
        let Some(now) = self.head_commit()? else { return Ok(None) };
        let now = self.commit_named(&now)?.tree().doing("read a commit's tree")?;
        if entry_at(Some(&before), path)? == entry_at(Some(&now), path)? {
            return Ok(None);
        }
        self.content(&before, path)
    }

    fn matching(&self, base: &Tree<'_>, patterns: &[String]) -> Result<Vec<PathBuf>, GitError> {
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = Pathspec::new(patterns).doing("read the patterns of `protect`")?;
        let now = self.tree(&self.snapshot()?)?;
        let changes = between(&self.repo, Some(base), Some(&now))?;
        let is_wanted = |path: &PathBuf| wanted.matches_path(path, PathspecFlags::DEFAULT);
        Ok(changes.into_iter().map(|change| change.path).filter(is_wanted).collect())
    }

    fn content(&self, tree: &Tree<'_>, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
        let Some(entry) = entry_at(Some(tree), path)? else { return Ok(None) };
        if entry.is_nested_repository() {
            return Ok(None);
        }
        let blob = self.repo.find_blob(entry.id).doing("read a file of the base")?;
        Ok(Some(blob.content().to_vec()))
    }
}

/// Line endings may be git's doing.
fn same(old: Option<&[u8]>, new: Option<&[u8]>) -> bool {
    let plain = |bytes: &[u8]| bytes.iter().copied().filter(|byte| *byte != b'\r').collect();
    old == new || old.map(plain) == new.map::<Vec<u8>, _>(plain)
}

fn diff(path: &Path, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<String, GitError> {
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let patch = Patch::from_buffers(old, Some(path), new, Some(path), None);
    let mut patch = patch.doing("compare a file")?;
    let text = patch.to_buf().doing("compare a file")?;
    let shown = text.get(..text.len().min(LONGEST_DIFF)).unwrap_or_default();
    Ok(String::from_utf8_lossy(shown).into_owned())
}
