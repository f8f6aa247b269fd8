//! Commits: writing them, and finding those of stories by their trailers.

use std::io::Write;
use std::path::Path;

use git2::{Commit, Oid, Tree, message_trailers_bytes};

use crate::model::StoryId;

use super::branch::tip;
use super::error::{GitContext, LibResult, file_error};
use super::sign::Signer;
use super::tree::TreeEntry;
use super::{Result, WorkTree};

/// The mode of a file that git does not know yet.
const PLAIN_FILE: u32 = 0o100_644;
const WRITE_CONTENT: &str = "write a file's content";

impl WorkTree {
    /// A commit that is on no branch yet. `signer`: for the user's branch, if the user's commits are
    /// signed.
    pub(super) fn new_commit(
        &self,
        tree: &Tree<'_>,
        parents: &[Commit<'_>],
        message: &str,
        signer: Option<&Signer>,
    ) -> Result<Oid> {
        let repo = &self.repo;
        let author = repo.author_from_env().doing("read the git identity")?;
        let committer = repo.committer_from_env().doing("read the git identity")?;
        let parents: Vec<_> = parents.iter().collect();
        let Some(signer) = signer else {
            let commit = repo.commit(None, &author, &committer, message, tree, &parents);
            return commit.doing("write a commit");
        };
        let content = repo.commit_create_buffer(&author, &committer, message, tree, &parents);
        let content = content.doing("write a commit")?;
        let content = std::str::from_utf8(&content)
            .map_err(|_| signer.failure("the committer's name is not UTF-8".to_owned()))?;
        let signature = signer.sign(content.as_bytes(), &self.root)?;
        repo.commit_signed(content, &signature, None).doing("write a signed commit")
    }

    /// The file as git would store it: with its line endings, and with the mode that is known.
    /// `stored`: the bytes, if they are in the repository already.
    pub(super) fn stored(
        &self,
        mode: Option<u32>,
        path: &Path,
        bytes: &[u8],
        stored: Option<Oid>,
    ) -> Result<TreeEntry> {
        self.require_plain(path)?;
        let id = match stored {
            Some(id) => id,
            None if is_stored_as_it_is(bytes) => self.repo.blob(bytes).doing(WRITE_CONTENT)?,
            None => self.stored_with_filters(path, bytes)?,
        };
        let mode = mode.filter(|mode| mode & 0o170_000 == 0o100_000).unwrap_or(PLAIN_FILE);
        Ok(TreeEntry { id, mode })
    }

    fn stored_with_filters(&self, path: &Path, bytes: &[u8]) -> Result<Oid> {
        self.release_rules_for(path);
        let mut blob = self.repo.blob_writer(Some(path)).doing(WRITE_CONTENT)?;
        blob.write_all(bytes).map_err(file_error("store", path))?;
        blob.commit().doing(WRITE_CONTENT)
    }
}

/// Git's built-in filters only change line endings and `$Id$`. Bypassing them saves two files.
pub(super) fn is_stored_as_it_is(bytes: &[u8]) -> bool {
    memchr::memchr(b'\r', bytes).is_none() && memchr::memmem::find(bytes, b"$Id").is_none()
}

/// The story's base, in a closing commit whose agent made commits of its own.
pub const BASE_TRAILER: &str = "Ralph-Base";
/// The closing commit, in the commit that reverts it.
pub const UNDONE_TRAILER: &str = "Ralph-Undone";

/// A closed story's commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedStory {
    pub commit: String,
    /// The commit that the story began at; None: it began on a branch without commits.
    pub base: Option<String>,
    /// A later commit reverted it.
    pub is_undone: bool,
}

impl WorkTree {
    /// HEAD's history has the commit.
    pub fn is_on_branch(&self, commit: &str) -> Result<bool> {
        let found = Oid::from_str(commit).and_then(|id| self.repo.find_commit(id));
        // An agent's `git gc` may have deleted it.
        let Ok(found) = found else { return Ok(false) };
        self.contains(tip(&self.repo)?.commit, Some(found.id()))
    }

    /// A commit that closed a story. None: the branch does not have it, as after a rebase.
    pub fn closing(&self, commit: &str) -> Result<Option<ClosedStory>> {
        let is_there = self.is_on_branch(commit)?;
        is_there.then(|| Ok(closing(&self.commit_named(commit)?, &[]))).transpose()
    }

    /// The newest closing commit of a story by its trailers, undone or not.
    pub fn newest_closing(&self, story: &StoryId, backlog: &str) -> Result<Option<ClosedStory>> {
        let wanted = [("Ralph-Story", story.as_str()), ("Ralph-Backlog", backlog)];
        let mut undone = Vec::new();
        self.find_commit(None, |commit| {
            undone.extend(trailer(commit, UNDONE_TRAILER));
            let is_kept = trailer(commit, "Ralph-Kept").is_some();
            let is_it = !is_kept && has_trailers(commit, &wanted)?;
            Ok(is_it.then(|| closing(commit, &undone)))
        })
    }

    /// From HEAD down to a commit (not included) or to the first one.
    fn find_commit<T>(
        &self,
        down_to: Option<&str>,
        mut find: impl FnMut(&Commit<'_>) -> LibResult<Option<T>>,
    ) -> Result<Option<T>> {
        let Some(tip) = tip(&self.repo)?.commit else { return Ok(None) };
        for id in self.commits(tip, down_to).doing("walk the history")? {
            let id = id.doing("walk the history")?;
            let found = self.repo.find_commit(id).and_then(|commit| find(&commit));
            if let Some(found) = found.doing("read a commit")? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn commits(&self, tip: Oid, down_to: Option<&str>) -> LibResult<git2::Revwalk<'_>> {
        let mut walk = self.repo.revwalk()?;
        walk.push(tip)?;
        if let Some(end) = down_to {
            walk.hide(Oid::from_str(end)?)?;
        }
        Ok(walk)
    }
}

fn has_trailers(commit: &Commit<'_>, wanted: &[(&str, &str)]) -> LibResult<bool> {
    let found = message_trailers_bytes(commit.message_bytes())?;
    let has = |(key, value): &(&str, &str)| {
        found.iter().any(|(k, v)| k == key.as_bytes() && v == value.as_bytes())
    };
    Ok(wanted.iter().all(has))
}

pub(super) fn closing(commit: &Commit<'_>, undone: &[String]) -> ClosedStory {
    let id = commit.id().to_string();
    let parent = commit.parent_id(0).ok().map(|parent| parent.to_string());
    let base = match trailer(commit, BASE_TRAILER) {
        Some(none) if none == "none" => None,
        Some(base) => Some(base),
        None => parent,
    };
    ClosedStory { is_undone: undone.contains(&id), base, commit: id }
}

pub(super) fn trailer(commit: &Commit<'_>, key: &str) -> Option<String> {
    let trailers = message_trailers_bytes(commit.message_bytes()).ok()?;
    let found = trailers.iter().find(|(k, _)| *k == key.as_bytes())?;
    Some(String::from_utf8_lossy(found.1).into_owned())
}
