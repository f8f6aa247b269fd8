//! What is kept: listing it, finding one by its number, comparing it with where it came from.

use std::path::PathBuf;

use git2::{Commit, Oid, Tree, message_trailers_bytes};

use super::WorkTree;
use super::changes::{between, path_of};
use super::diff::{Stat, patch, stat};
use super::error::{Doing, GitError};
use super::keep::Kind;
use crate::core::id::StoryId;

/// A state of the work tree that is kept at a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub number: u64,
    pub reference: String,
    pub kind: Kind,
    /// Seconds since the Unix epoch.
    pub at: i64,
    /// What it says about itself, in one line.
    pub subject: String,
    pub run: Option<String>,
    pub backlog: Option<String>,
    /// The linked work tree it is from; None for the main one.
    pub work_tree: Option<String>,
    pub story: Option<StoryId>,
    pub iteration: Option<u32>,
    pub(super) commit: Oid,
}

impl Kept {
    /// The commit's full id.
    pub fn commit(&self) -> String {
        self.commit.to_string()
    }
}

impl WorkTree {
    /// Oldest first. What cannot be read is not there.
    pub fn kept(&self) -> Result<Vec<Kept>, GitError> {
        let refs = self.repo.references_glob("refs/ralph/*").doing("list what is kept")?;
        let known = refs.flatten().filter_map(|reference| {
            understand(reference.name().ok()?.to_owned(), &reference.peel_to_commit().ok()?)
        });
        let mut kept: Vec<Kept> = known.collect();
        kept.sort_by_key(|kept| kept.number);
        Ok(kept)
    }

    /// What runs of the served backlog kept in this work tree, oldest first.
    pub fn kept_for_this_backlog(&self) -> Result<Vec<Kept>, GitError> {
        Ok(self.kept()?.into_iter().filter(|kept| self.is_of_this_backlog(kept)).collect())
    }

    pub(super) fn is_of_this_backlog(&self, kept: &Kept) -> bool {
        let backlog = self.service.as_ref().map(|service| service.backlog.as_str());
        (kept.backlog.as_deref(), &kept.work_tree) == (backlog, &self.linked_name())
    }

    pub fn kept_as(&self, number: u64) -> Result<Kept, GitError> {
        let kept = self.kept()?;
        let nearest = kept.iter().map(|kept| kept.number).min_by_key(|n| n.abs_diff(number));
        let found = kept.into_iter().find(|kept| kept.number == number);
        found.ok_or(GitError::NoSuchNumber { number, nearest })
    }

    /// How much it differs from what it is based on: an attempt's work from the story's base, any
    /// other state from the commit it stood on.
    pub fn size_of(&self, kept: &Kept) -> Result<Stat, GitError> {
        let (before, after) = self.sides(kept)?;
        stat(&self.repo, before.as_ref(), &after)
    }

    /// How many files that are.
    pub fn files_of(&self, kept: &Kept) -> Result<usize, GitError> {
        let (before, after) = self.sides(kept)?;
        Ok(between(&self.repo, before.as_ref(), Some(&after))?.len())
    }

    /// As a unified diff.
    pub fn diff_of(&self, kept: &Kept) -> Result<Vec<u8>, GitError> {
        let (before, after) = self.sides(kept)?;
        patch(&self.repo, before.as_ref(), &after)
    }

    pub(super) fn tree_of_kept(&self, kept: &Kept) -> Result<Tree<'_>, GitError> {
        Ok(self.sides(kept)?.1)
    }

    pub(super) fn sides(&self, kept: &Kept) -> Result<(Option<Tree<'_>>, Tree<'_>), GitError> {
        let commit = self.repo.find_commit(kept.commit).doing(READ_KEPT)?;
        let last = commit.parents().next_back();
        let before = last.map(|parent| parent.tree()).transpose().doing(READ_KEPT)?;
        Ok((before, commit.tree().doing(READ_KEPT)?))
    }

    /// The backlogs that runs have worked on here; their marks go with the branch.
    pub fn backlogs_of_runs(&self) -> Result<Vec<PathBuf>, GitError> {
        let named = self.kept()?.into_iter().filter_map(|kept| kept.backlog);
        Ok(named.map(|name| path_of(name.as_bytes())).collect())
    }
}

const READ_KEPT: &str = "read what is kept";

fn understand(reference: String, commit: &Commit<'_>) -> Option<Kept> {
    let trailers = message_trailers_bytes(commit.message_bytes()).ok()?;
    let text = |key: &str| {
        let found = trailers.iter().find(|(k, _)| *k == key.as_bytes())?;
        Some(String::from_utf8_lossy(found.1).into_owned())
    };
    let word = text("Ralph-Kept")?;
    Some(Kept {
        number: text("Ralph-Number")?.parse().ok()?,
        kind: Kind::ALL.into_iter().find(|kind| kind.word() == word)?,
        at: commit.time().seconds(),
        subject: String::from_utf8_lossy(commit.summary_bytes().unwrap_or_default()).into_owned(),
        run: text("Ralph-Run"),
        backlog: text("Ralph-Backlog"),
        work_tree: text("Ralph-Work-Tree"),
        story: text("Ralph-Story").and_then(|id| StoryId::try_from(id).ok()),
        iteration: text("Ralph-Iteration").and_then(|text| text.parse().ok()),
        commit: commit.id(),
        reference,
    })
}

pub(super) fn kind_of(commit: &Commit<'_>) -> Option<Kind> {
    understand(String::new(), commit).map(|kept| kept.kind)
}
