//! Where HEAD is, and moving the run's branch.

use std::iter;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, Oid, Reference, Repository};

use super::WorkTree;
use super::error::{Doing, GitError, if_found};
use super::lock::patiently;

/// What HEAD names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    Branch {
        name: String,
        /// The branch has no commit yet.
        unborn: bool,
    },
    Detached,
}

/// HEAD, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tip {
    /// The full name of the branch; None with a detached HEAD.
    pub reference: Option<String>,
    pub commit: Option<Oid>,
}

pub(super) fn tip(repo: &Repository) -> Result<Tip, GitError> {
    let head = repo.find_reference("HEAD").doing("read HEAD")?;
    let Some(name) = head.symbolic_target_bytes() else {
        return Ok(Tip { reference: None, commit: head.target() });
    };
    let name = std::str::from_utf8(name).map_err(|_| GitError::BranchNotUtf8)?;
    let commit = if_found(repo.refname_to_id(name)).doing("read the branch")?;
    Ok(Tip { reference: Some(name.to_owned()), commit })
}

pub(super) fn short(reference: &str) -> &str {
    reference.strip_prefix("refs/heads/").unwrap_or(reference)
}

impl WorkTree {
    pub fn branch(&self) -> Result<Head, GitError> {
        let tip = tip(&self.repo)?;
        Ok(match tip.reference {
            None => Head::Detached,
            Some(name) => {
                Head::Branch { name: short(&name).to_owned(), unborn: tip.commit.is_none() }
            }
        })
    }

    /// The commit that HEAD names; None on a branch without commits.
    pub fn head_commit(&self) -> Result<Option<String>, GitError> {
        Ok(tip(&self.repo)?.commit.map(|id| id.to_string()))
    }

    /// Where the run's branch is, even if an agent has left it for another.
    pub(super) fn home_commit(&self, head: &Tip) -> Result<Option<Oid>, GitError> {
        match &self.home {
            Some(name) if head.reference.as_ref() != Some(name) => {
                if_found(self.repo.refname_to_id(name)).doing("read the run's branch")
            }
            _ => Ok(head.commit),
        }
    }

    /// An agent may have made a branch of its own. As long as that contains the
    /// run's branch, the run's branch can be moved forward to it; otherwise a
    /// commit would lose what is on one of the two.
    pub(super) fn require_forward(&self, head: &Tip, from: Option<Oid>) -> Result<(), GitError> {
        if head.reference == self.home || from == head.commit {
            return Ok(());
        }
        let forward = match (from, head.commit) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(from), Some(to)) => {
                self.repo.graph_descendant_of(to, from).doing("compare the branches")?
            }
        };
        let named = |name: &Option<String>| short(name.as_deref().unwrap_or("detached")).to_owned();
        let changed = || GitError::BranchChanged {
            expected: named(&self.home),
            found: named(&head.reference),
        };
        forward.then_some(()).ok_or_else(changed)
    }

    /// Moves the run's branch if it is still at `from`, and HEAD to it.
    /// `to` None: the branch has no commit again.
    pub(super) fn move_home(
        &self,
        from: Option<Oid>,
        to: Option<Oid>,
        log: &str,
    ) -> Result<(), GitError> {
        let name = self.home.as_deref().unwrap_or("HEAD");
        let lock = self.ref_lock(name);
        // A ref that goes may be in two places.
        let packed = to.is_none().then(|| self.ref_lock("packed-refs"));
        let locks: Vec<&Path> = iter::once(&*lock).chain(packed.as_deref()).collect();
        let swap = || {
            self.swap(name, from, to, log).map_err(|source| match source.code() {
                ErrorCode::Modified | ErrorCode::Exists => {
                    GitError::HeadMoved(short(name).to_owned())
                }
                _ => GitError::Git { doing: "move the branch", source },
            })
        };
        patiently(self.lock_patience, &lock, || self.noting(&locks, swap))?;
        self.head_home()
    }

    fn swap(
        &self,
        name: &str,
        from: Option<Oid>,
        to: Option<Oid>,
        log: &str,
    ) -> Result<(), git2::Error> {
        match (from, to) {
            (from, to) if from == to => Ok(()),
            (Some(from), Some(to)) => {
                self.repo.reference_matching(name, to, true, from, log).map(drop)
            }
            (None, Some(to)) => self.repo.reference(name, to, false, log).map(drop),
            (_, None) => self.repo.find_reference(name)?.delete(),
        }
    }

    /// Not waited for: what stays can be deleted the next time.
    pub(super) fn delete_ref(&self, mut found: Reference<'_>) -> Result<(), GitError> {
        let name = found.name().map(|name| self.ref_lock(name)).doing("read a ref's name")?;
        let packed = self.ref_lock("packed-refs");
        self.noting(&[&name, &packed], || found.delete().doing("delete a ref"))
    }

    pub(super) fn set_head(&self, name: &str) -> Result<(), GitError> {
        self.locking(&self.ref_lock("HEAD"), || self.repo.set_head(name).doing("switch the branch"))
    }

    fn head_home(&self) -> Result<(), GitError> {
        match &self.home {
            Some(name) if tip(&self.repo)?.reference.as_ref() != Some(name) => self.set_head(name),
            _ => Ok(()),
        }
    }

    /// The file that git locks the reference with.
    pub(super) fn ref_lock(&self, name: &str) -> PathBuf {
        let is_own = name == "HEAD" || name.starts_with("refs/worktree/");
        let folder = if is_own { &self.git_dir } else { &self.common_dir };
        folder.join(format!("{name}.lock"))
    }
}
