//! Where HEAD and the run's branch are, and switching to another branch.

use std::path::PathBuf;

use git2::build::CheckoutBuilder;
use git2::{Branch, CheckoutNotificationType, Commit, ErrorCode, Oid, Reference, Repository};

use crate::files::nofollow;
use crate::model::{Base, BranchLoss};

use super::error::{GitContext, GitError, LibResult, if_found};
use super::{Result, WorkTree};

/// In bytes, of another work tree's HEAD.
const LARGEST_HEAD: u64 = 1 << 16;

/// What HEAD points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// Unborn: the branch has no commit yet.
    Branch { name: String, unborn: bool },
    /// It is at a commit.
    Detached,
}

/// Where HEAD is, compared with where the run works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchState {
    /// On the run's branch.
    OnBranch,
    /// On another branch that contains the run's, which can be fast-forwarded.
    Ahead { on: String },
    /// HEAD does not contain the run's branch, or no longer contains the story's base.
    Lost(BranchLoss),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    /// The branch is new and starts at HEAD.
    Created,
    Existing,
    AlreadyThere,
}

/// HEAD, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tip {
    /// The full name of the branch; None with a detached HEAD.
    pub reference: Option<String>,
    pub commit: Option<Oid>,
}

pub(super) fn tip(repo: &Repository) -> Result<Tip> {
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

pub(super) fn commit_id(base: &Base) -> Result<Option<Oid>> {
    base.commit.as_deref().map(Oid::from_str).transpose().doing("read the base")
}

impl WorkTree {
    pub fn branch(&self) -> Result<Head> {
        let tip = tip(&self.repo)?;
        let unborn = tip.commit.is_none();
        let named = |name: String| Head::Branch { name: short(&name).to_owned(), unborn };
        Ok(tip.reference.map_or(Head::Detached, named))
    }

    /// The branch that the run works on, if HEAD is not there.
    pub fn left_branch(&self) -> Result<Option<String>> {
        let name = self.run_branch.as_deref().map(|name| short(name).to_owned());
        Ok(name.filter(|_| self.require_own_branch().is_err()))
    }

    /// After a crash, whatever the reflog says: the branch lost what it had, or HEAD is on none.
    pub fn is_astray(&self, branch: &str, before: &Base) -> Result<bool> {
        let name = format!("refs/heads/{branch}");
        let home = if_found(self.repo.refname_to_id(&name)).doing("read the run's branch")?;
        let head = tip(&self.repo)?;
        let has_no_branch = head.reference.is_none() || head.commit.is_none();
        let has_lost = !self.contains(home, commit_id(before)?)?;
        Ok(has_lost || (head.reference.as_ref() != Some(&name) && has_no_branch))
    }

    /// From now on the run's branch is this one, wherever HEAD is.
    pub fn work_on(&mut self, branch: &str) {
        self.run_branch = Some(format!("refs/heads/{branch}"));
    }

    /// The commit that HEAD names; None on a branch without commits.
    pub fn head_commit(&self) -> Result<Option<String>> {
        Ok(tip(&self.repo)?.commit.map(|id| id.to_string()))
    }

    /// Where the run's branch is, even if an agent has left it for another.
    pub(super) fn branch_commit(&self, head: &Tip) -> Result<Option<Oid>> {
        match &self.run_branch {
            Some(name) if head.reference.as_ref() != Some(name) => {
                if_found(self.repo.refname_to_id(name)).doing("read the run's branch")
            }
            _ => Ok(head.commit),
        }
    }

    pub fn branch_state(&self, base: &Base) -> Result<BranchState> {
        let head = tip(&self.repo)?;
        let at_home = head.reference == self.run_branch;
        let on = head.reference.as_deref().map_or("a detached HEAD", short).to_owned();
        if !self.contains(head.commit, commit_id(base)?)? {
            let loss = if at_home { BranchLoss::Rewritten } else { BranchLoss::Elsewhere };
            return Ok(BranchState::Lost(loss));
        }
        if at_home {
            return Ok(BranchState::OnBranch);
        }
        // In the middle of a rebase HEAD goes somewhere else when it ends.
        if self.operation().is_some() {
            return Ok(BranchState::Lost(BranchLoss::Elsewhere));
        }
        let home = self.branch_commit(&head)?;
        let lost = |_| BranchState::Lost(BranchLoss::Elsewhere);
        Ok(self.require_forward(&head, home).map_or_else(lost, |()| BranchState::Ahead { on }))
    }

    /// Whether a commit's history contains another commit; always true for "none".
    pub(super) fn contains(&self, tip: Option<Oid>, wanted: Option<Oid>) -> Result<bool> {
        match (tip, wanted) {
            (_, None) => Ok(true),
            (None, Some(_)) => Ok(false),
            (Some(tip), Some(wanted)) if tip == wanted => Ok(true),
            (Some(tip), Some(wanted)) => {
                self.repo.graph_descendant_of(tip, wanted).doing("compare the branches")
            }
        }
    }

    /// Creates a branch at HEAD, or switches to an existing one if no uncommitted change would be
    /// overwritten.
    pub fn switch_to(&mut self, name: &str) -> Result<Switched> {
        if !Branch::name_is_valid(name).unwrap_or(false) {
            return Err(GitError::BadBranchName(name.to_owned()));
        }
        let reference = format!("refs/heads/{name}");
        let head = tip(&self.repo)?;
        if head.reference.as_ref() == Some(&reference) {
            return Ok(Switched::AlreadyThere);
        }
        let existing = if_found(self.repo.find_reference(&reference)).doing("find the branch")?;
        let switched = match existing {
            Some(branch) => {
                self.check_out_branch(name, &branch.peel_to_commit().doing("read the branch")?)?
            }
            None => self.make_branch(name, head.commit)?,
        };
        self.set_head(&reference)?;
        self.run_branch = Some(reference);
        Ok(switched)
    }

    /// Without commits, only HEAD names the branch.
    fn make_branch(&self, name: &str, at: Option<git2::Oid>) -> Result<Switched> {
        if let Some(id) = at {
            let commit = self.repo.find_commit(id).doing("read HEAD's commit")?;
            self.with_lock(&self.ref_lock(&format!("refs/heads/{name}")), || {
                self.repo.branch(name, &commit, false).map(drop).doing("make the branch")
            })?;
        }
        Ok(Switched::Created)
    }

    fn check_out_branch(&self, name: &str, commit: &Commit<'_>) -> Result<Switched> {
        if self.is_checked_out_elsewhere(name) {
            return Err(GitError::CheckedOutElsewhere { branch: name.to_owned() });
        }
        self.fresh_index()?;
        self.index_is_modified.set(true);
        let mut paths = Vec::new();
        let result = self.with_lock(&self.git_dir.join("index.lock"), || {
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

    fn safe_checkout(&self, commit: &Commit<'_>, conflicts: &mut Vec<String>) -> LibResult<()> {
        let mut options = CheckoutBuilder::new();
        options.safe().overwrite_ignored(false);
        options.notify_on(CheckoutNotificationType::CONFLICT);
        options.notify(|_, path, _, _, _| {
            conflicts.extend(path.map(|path| path.display().to_string()));
            true
        });
        self.without_pipes(|| self.repo.checkout_tree(commit.as_object(), Some(&mut options)))
    }

    fn is_checked_out_elsewhere(&self, name: &str) -> bool {
        let worktrees = self.common_dir.join("worktrees");
        let linked = nofollow::list(&worktrees).unwrap_or_default().into_iter();
        let linked = linked.map(|entry| worktrees.join(entry.name));
        let folders = linked.chain([self.common_dir.clone()]);
        let others = folders.filter(|folder| *folder != self.git_dir);
        let head = |folder: PathBuf| nofollow::read_text(&folder.join("HEAD"), LARGEST_HEAD).ok();
        let wanted = format!("ref: refs/heads/{name}");
        others.filter_map(head).any(|text| text.trim_end() == wanted)
    }

    /// Does not wait for locks: a ref that stays is deleted the next time.
    pub(super) fn delete_ref(&self, mut found: Reference<'_>) -> Result<()> {
        let name = found.name().map(|name| self.ref_lock(name)).doing("read a ref's name")?;
        let packed = self.ref_lock("packed-refs");
        self.with_lock_note(&[&name, &packed], || found.delete().doing("delete a ref"))
    }

    /// Makes the ref, or moves it.
    pub(super) fn set_ref(&self, name: &str, id: Oid, log: &str, what: &'static str) -> Result<()> {
        self.with_lock(&self.ref_lock(name), || {
            self.repo.reference(name, id, true, log).map(drop).doing(what)
        })
    }

    pub(super) fn set_head(&self, name: &str) -> Result<()> {
        let set = || self.repo.set_head(name).doing("switch the branch");
        self.with_lock(&self.ref_lock("HEAD"), set)
    }

    /// The file that git locks the reference with.
    pub(super) fn ref_lock(&self, name: &str) -> PathBuf {
        let is_own = name == "HEAD" || name.starts_with("refs/worktree/");
        let folder = if is_own { &self.git_dir } else { &self.common_dir };
        folder.join(format!("{name}.lock"))
    }
}
