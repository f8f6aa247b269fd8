//! Working on a branch of a given name.

use std::fs;
use std::path::PathBuf;

use git2::build::CheckoutBuilder;
use git2::{Branch, CheckoutNotificationType, Commit, ErrorCode};

use super::error::{Doing, GitError, if_found};
use super::{WorkTree, head};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    /// The branch is new and starts at HEAD.
    Created,
    Existing,
    AlreadyThere,
}

impl WorkTree {
    /// Makes a branch at HEAD, or switches to the one of that name if nothing
    /// uncommitted would be overwritten.
    pub fn switch_to(&mut self, name: &str) -> Result<Switched, GitError> {
        if !Branch::name_is_valid(name).unwrap_or(false) {
            return Err(GitError::BadBranchName(name.to_owned()));
        }
        let reference = format!("refs/heads/{name}");
        let tip = head::tip(&self.repo)?;
        if tip.reference.as_ref() == Some(&reference) {
            return Ok(Switched::AlreadyThere);
        }
        let existing = if_found(self.repo.find_reference(&reference)).doing("find the branch")?;
        let switched = match existing {
            Some(branch) => {
                self.check_out_branch(name, &branch.peel_to_commit().doing("read the branch")?)?
            }
            None => self.make_branch(name, tip.commit)?,
        };
        self.set_head(&reference)?;
        self.home = Some(reference);
        Ok(switched)
    }

    /// Without any commit there is nothing to make: HEAD alone names the branch.
    fn make_branch(&self, name: &str, at: Option<git2::Oid>) -> Result<Switched, GitError> {
        if let Some(id) = at {
            let commit = self.repo.find_commit(id).doing("read HEAD's commit")?;
            self.locking(&self.ref_lock(&format!("refs/heads/{name}")), || {
                self.repo.branch(name, &commit, false).map(drop).doing("make the branch")
            })?;
        }
        Ok(Switched::Created)
    }

    fn check_out_branch(&self, name: &str, commit: &Commit<'_>) -> Result<Switched, GitError> {
        if self.is_checked_out_elsewhere(name) {
            return Err(GitError::CheckedOutElsewhere { branch: name.to_owned() });
        }
        self.fresh_index()?;
        let mut paths = Vec::new();
        let result = self.locking(&self.git_dir.join("index.lock"), || {
            paths.clear();
            self.safe_checkout(commit, &mut paths).doing("check the branch out")
        });
        match result {
            Err(GitError::Git { source, .. }) if source.code() == ErrorCode::Conflict => {
                Err(GitError::WouldOverwrite { branch: name.to_owned(), paths })
            }
            other => other.map(|()| Switched::Existing),
        }
    }

    fn safe_checkout(
        &self,
        commit: &Commit<'_>,
        conflicts: &mut Vec<String>,
    ) -> Result<(), git2::Error> {
        let mut options = CheckoutBuilder::new();
        options.safe().overwrite_ignored(false);
        options.notify_on(CheckoutNotificationType::CONFLICT);
        options.notify(|_, path, _, _, _| {
            conflicts.extend(path.map(|path| path.display().to_string()));
            true
        });
        self.repo.checkout_tree(commit.as_object(), Some(&mut options))
    }

    fn is_checked_out_elsewhere(&self, name: &str) -> bool {
        let linked = fs::read_dir(self.common_dir.join("worktrees"));
        let linked = linked.into_iter().flatten().flatten().map(|folder| folder.path());
        let folders = linked.chain([self.common_dir.clone()]);
        let others = folders.filter(|folder| *folder != self.git_dir);
        let head = |folder: PathBuf| fs::read_to_string(folder.join("HEAD")).ok();
        let wanted = format!("ref: refs/heads/{name}");
        others.filter_map(head).any(|text| text.trim_end() == wanted)
    }
}
