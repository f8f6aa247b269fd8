//! Finding out whether a planned commit was made.

use git2::{Oid, message_trailers_bytes};

use super::error::{Doing, GitError};
use super::{WorkTree, head};

impl WorkTree {
    /// The newest commit with all these trailers, from HEAD down to a commit
    /// (not included) or to the first one.
    pub fn find_closing(
        &self,
        trailers: &[(&str, &str)],
        down_to: Option<&str>,
    ) -> Result<Option<String>, GitError> {
        let Some(tip) = head::tip(&self.repo)?.commit else {
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
