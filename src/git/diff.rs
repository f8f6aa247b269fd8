//! Differences between trees, for people and for `git apply`.

use std::fmt;

use git2::{DiffFormat, DiffLineType, Repository, Tree};

use super::WorkTree;
use super::closing::Closing;
use super::error::{Doing, GitError};
use crate::core::event::Base;

/// How much changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub files: usize,
    pub insertions: usize,
    pub deletions: usize,
}

impl fmt::Display for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = if self.files == 1 { "file" } else { "files" };
        write!(f, "{} {files}, +{} -{}", self.files, self.insertions, self.deletions)
    }
}

impl WorkTree {
    /// From a story's base to the work tree as it is now, as a unified diff.
    pub fn diff_since(&self, base: &Base) -> Result<Vec<u8>, GitError> {
        let now = self.repo.find_tree(self.scan()?).doing("read the snapshot")?;
        patch(&self.repo, Some(&self.tree(&base.tree)?), &now)
    }

    /// What a closed story changed, its agent's own commits included.
    pub fn diff_of_closing(&self, closing: &Closing) -> Result<Vec<u8>, GitError> {
        let (before, after) = self.sides_of(closing)?;
        patch(&self.repo, before.as_ref(), &after)
    }

    pub(super) fn sides_of(
        &self,
        closing: &Closing,
    ) -> Result<(Option<Tree<'_>>, Tree<'_>), GitError> {
        let tree = |id: &str| self.commit_named(id)?.tree().doing("read a commit's tree");
        let before = closing.base.as_deref().map(tree).transpose()?;
        Ok((before, tree(&closing.commit)?))
    }
}

pub(super) fn stat(
    repo: &Repository,
    old: Option<&Tree<'_>>,
    new: &Tree<'_>,
) -> Result<Stat, GitError> {
    let diff = repo.diff_tree_to_tree(old, Some(new), None).and_then(|diff| diff.stats());
    let stats = diff.doing("compare trees")?;
    let (insertions, deletions) = (stats.insertions(), stats.deletions());
    Ok(Stat { files: stats.files_changed(), insertions, deletions })
}

pub(super) fn patch(
    repo: &Repository,
    old: Option<&Tree<'_>>,
    new: &Tree<'_>,
) -> Result<Vec<u8>, GitError> {
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
