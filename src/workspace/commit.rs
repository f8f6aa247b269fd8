//! Writes commits and their files.

use std::io::Write;
use std::path::Path;

use git2::{Commit, Oid, Tree};

use super::WorkTree;
use super::error::{GitContext, GitError, file_error};
use super::tree::TreeEntry;

/// The mode of a file that git does not know yet.
const PLAIN_FILE: u32 = 0o100_644;
const WRITE_CONTENT: &str = "write a file's content";

impl WorkTree {
    /// A commit that is on no branch yet.
    pub(super) fn new_commit(
        &self,
        tree: &Tree<'_>,
        parents: &[Commit<'_>],
        message: &str,
    ) -> Result<Oid, GitError> {
        let author = self.repo.author_from_env().doing("read the git identity")?;
        let committer = self.repo.committer_from_env().doing("read the git identity")?;
        let parents: Vec<_> = parents.iter().collect();
        self.repo.commit(None, &author, &committer, message, tree, &parents).doing("write a commit")
    }

    /// A commit for the user's branch, signed if the user's commits are.
    pub(super) fn commit_for_branch(
        &self,
        tree: &Tree<'_>,
        parents: &[Commit<'_>],
        message: &str,
    ) -> Result<Oid, GitError> {
        let Some(signer) = &self.signer else {
            return self.new_commit(tree, parents, message);
        };
        let author = self.repo.author_from_env().doing("read the git identity")?;
        let committer = self.repo.committer_from_env().doing("read the git identity")?;
        let parents: Vec<_> = parents.iter().collect();
        let content = self
            .repo
            .commit_create_buffer(&author, &committer, message, tree, &parents)
            .doing("write a commit")?;
        let content = std::str::from_utf8(&content)
            .map_err(|_| signer.failure("the committer's name is not UTF-8".to_owned()))?;
        let signature = signer.sign(content.as_bytes(), &self.root)?;
        self.repo.commit_signed(content, &signature, None).doing("write a signed commit")
    }

    /// The file as git would store it: with its line endings, and with the mode that is known.
    /// `stored`: the bytes, if they are in the repository already.
    pub(super) fn stored(
        &self,
        mode: Option<u32>,
        path: &Path,
        bytes: &[u8],
        stored: Option<Oid>,
    ) -> Result<TreeEntry, GitError> {
        self.require_plain(path)?;
        let id = match stored {
            Some(id) => id,
            None if is_stored_as_it_is(bytes) => self.repo.blob(bytes).doing(WRITE_CONTENT)?,
            None => self.stored_with_filters(path, bytes)?,
        };
        let mode = mode.filter(|mode| mode & 0o170_000 == 0o100_000).unwrap_or(PLAIN_FILE);
        Ok(TreeEntry { id, mode })
    }

    fn stored_with_filters(&self, path: &Path, bytes: &[u8]) -> Result<Oid, GitError> {
        let mut blob = self.repo.blob_writer(Some(path)).doing(WRITE_CONTENT)?;
        blob.write_all(bytes).map_err(file_error("store", path))?;
        blob.commit().doing(WRITE_CONTENT)
    }
}

/// Git's built-in filters only change line endings and `$Id$`. Bypassing them saves two files.
pub(super) fn is_stored_as_it_is(bytes: &[u8]) -> bool {
    memchr::memchr(b'\r', bytes).is_none() && memchr::memmem::find(bytes, b"$Id").is_none()
}
