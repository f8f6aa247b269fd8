//! Finding the commits of stories by their trailers.

use git2::{Commit, Oid, message_trailers_bytes};

use crate::model::StoryId;

use super::error::{GitContext, GitError};
use super::{WorkTree, branch};

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
    /// The newest commit with all these trailers, from HEAD down to a commit
    /// (not included) or to the first one.
    pub fn find_closing(
        &self,
        trailers: &[(&str, &str)],
        down_to: Option<&str>,
    ) -> Result<Option<String>, GitError> {
        let Some(tip) = branch::tip(&self.repo)?.commit else {
            return Ok(None);
        };
        for id in self.commits(tip, down_to).doing("walk the history")? {
            let id = id.doing("walk the history")?;
            if self.has_trailers(id, trailers).doing("read a commit")? {
                return Ok(Some(id.to_string()));
            }
        }
        Ok(None)
    }

    /// The newest closing commit of a story, undone or not.
    pub fn newest_closing(
        &self,
        story: &StoryId,
        backlog: &str,
    ) -> Result<Option<ClosedStory>, GitError> {
        let Some(tip) = branch::tip(&self.repo)?.commit else {
            return Ok(None);
        };
        let wanted = [("Ralph-Story", story.as_str()), ("Ralph-Backlog", backlog)];
        let mut undone = Vec::new();
        for id in self.commits(tip, None).doing("walk the history")? {
            let id = id.doing("walk the history")?;
            let commit = self.repo.find_commit(id).doing("read a commit")?;
            undone.extend(trailer(&commit, UNDONE_TRAILER));
            let is_kept = trailer(&commit, "Ralph-Kept").is_some();
            if !is_kept && self.has_trailers(id, &wanted).doing("read a commit")? {
                return Ok(Some(closing(&commit, &undone)));
            }
        }
        Ok(None)
    }

    fn commits(&self, tip: Oid, down_to: Option<&str>) -> Result<git2::Revwalk<'_>, git2::Error> {
        let mut walk = self.repo.revwalk()?;
        walk.push(tip)?;
        if let Some(end) = down_to {
            walk.hide(Oid::from_str(end)?)?;
        }
        Ok(walk)
    }

    fn has_trailers(&self, id: Oid, wanted: &[(&str, &str)]) -> Result<bool, git2::Error> {
        let commit = self.repo.find_commit(id)?;
        let found = message_trailers_bytes(commit.message_bytes())?;
        let has = |(key, value): &(&str, &str)| {
            found.iter().any(|(k, v)| k == key.as_bytes() && v == value.as_bytes())
        };
        Ok(wanted.iter().all(has))
    }
}

fn closing(commit: &Commit<'_>, undone: &[String]) -> ClosedStory {
    let id = commit.id().to_string();
    let parent = commit.parent_id(0).ok().map(|parent| parent.to_string());
    let base = match trailer(commit, BASE_TRAILER) {
        Some(none) if none == "none" => None,
        Some(base) => Some(base),
        None => parent,
    };
    ClosedStory { is_undone: undone.contains(&id), base, commit: id }
}

fn trailer(commit: &Commit<'_>, key: &str) -> Option<String> {
    let trailers = message_trailers_bytes(commit.message_bytes()).ok()?;
    let found = trailers.iter().find(|(k, _)| *k == key.as_bytes())?;
    Some(String::from_utf8_lossy(found.1).into_owned())
}
