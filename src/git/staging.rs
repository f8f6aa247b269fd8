//! What stays out of a commit, and what must not be in one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::Tree;

use super::WorkTree;
use super::changes::{Change, Entry, between, entry_at};
use super::commit::{CommitRequest, Plan, Staging};
use super::error::{Doing, GitError, if_found};
use crate::core::event::Base;
use crate::core::staging::{Content, Objection, added_lines};

/// Something in the work tree that changed and was not committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub path: PathBuf,
    /// How many files that is.
    pub files: usize,
    pub why: WhyLeftOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyLeftOut {
    /// A repository of its own.
    Repository,
    /// Private or litter, by its name.
    Name,
    /// The user's, and untracked when the story began.
    Users,
    /// Git would pass it through a program.
    Filter,
}

impl LeftOut {
    pub(super) fn repository(path: PathBuf) -> Self {
        Self { path, files: 1, why: WhyLeftOut::Repository }
    }

    pub(super) fn users(path: PathBuf) -> Self {
        Self { path, files: 1, why: WhyLeftOut::Users }
    }
}

impl WorkTree {
    /// Takes out of the plan what the story can do without. A file that an agent staged and that
    /// is never committed is not left in the index for the next commit by hand.
    pub(super) fn leave_out(
        &self,
        plan: &mut Plan,
        base: &Base,
        request: &CommitRequest<'_>,
    ) -> Result<(), GitError> {
        if let Some(staging) = request.staging {
            let mut never = BTreeMap::<PathBuf, usize>::new();
            let committed = self.committed_at(base)?;
            for path in new_files(plan) {
                let Some(of) = never_committed(staging, committed.as_ref(), &path)? else {
                    continue;
                };
                *never.entry(of).or_default() += 1;
                plan.paths.remove(&path);
                plan.staged.insert(path, None);
            }
            let left_out = never.into_iter().map(|(path, files)| LeftOut {
                path,
                files,
                why: WhyLeftOut::Name,
            });
            plan.left_out.extend(left_out);
        }
        for path in new_files(plan) {
            match self.require_plain(&path) {
                Err(GitError::ForeignFilter { .. }) if request.as_it_is => {
                    plan.paths.remove(&path);
                    plan.left_out.push(LeftOut { path, files: 1, why: WhyLeftOut::Filter });
                }
                Err(GitError::ForeignFilter { filter, .. }) => {
                    plan.objections.push(Objection::Filtered { path, filter });
                }
                plain => plain?,
            }
        }
        Ok(())
    }

    /// All that speaks against the commit is said at once: nobody can want what was not shown.
    pub(super) fn require_fit(
        &self,
        plan: &mut Plan,
        tree: &Tree<'_>,
        request: &CommitRequest<'_>,
    ) -> Result<(), GitError> {
        if request.as_it_is {
            return Ok(());
        }
        if let (Some(base), Some(staging)) = (request.base, request.staging) {
            plan.objections.extend(self.objections(tree, base, staging, request)?);
        }
        match std::mem::take(&mut plan.objections) {
            objections if objections.is_empty() => Ok(()),
            objections => Err(GitError::Unfit(objections)),
        }
    }

    /// The agent's own commits count: measured is everything since the base.
    fn objections(
        &self,
        tree: &Tree<'_>,
        base: &Base,
        staging: Staging<'_>,
        request: &CommitRequest<'_>,
    ) -> Result<Vec<Objection>, GitError> {
        let committed = self.committed_at(base)?;
        let mut contents = Vec::new();
        for change in between(&self.repo, committed.as_ref(), Some(tree))? {
            if !request.replaces(&change.path) {
                contents.extend(self.weighed(staging, committed.as_ref(), change)?);
            }
        }
        Ok(staging.rules.objections(&contents))
    }

    fn weighed(
        &self,
        staging: Staging<'_>,
        committed: Option<&Tree<'_>>,
        change: Change,
    ) -> Result<Option<Content>, GitError> {
        let Some(new) = change.new.filter(|new| !new.is_nested_repository()) else {
            return Ok(None);
        };
        let odb = self.repo.odb().doing("open the objects")?;
        let (size, _) = odb.read_header(new.id).doing("read a file's size")?;
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        let is_new = change.old.is_none();
        let is_private = is_new && never_committed(staging, committed, &change.path)?.is_some();
        let is_too_large = staging.rules.max_file_size.is_some_and(|limit| size > limit);
        let secret = if is_too_large { None } else { self.secret(staging, &change)? };
        Ok(Some(Content { path: change.path, size, is_new, is_private, secret }))
    }

    fn secret(&self, staging: Staging<'_>, change: &Change) -> Result<Option<String>, GitError> {
        let read = |entry: Option<Entry>| {
            let plain = entry.filter(|entry| !entry.is_nested_repository());
            let blob = plain.map(|entry| self.repo.find_blob(entry.id)).transpose();
            Ok(blob.doing("read a file's content")?.map(|blob| blob.content().to_vec()))
        };
        let (before, now) = (read(change.old)?, read(change.new)?);
        let added = added_lines(&before.unwrap_or_default(), &now.unwrap_or_default());
        Ok(staging.secrets.kind_in(&added))
    }
}

fn new_files(plan: &Plan) -> Vec<PathBuf> {
    let new = plan.paths.iter().filter(|(_, entry)| entry.is_some());
    new.map(|(path, _)| path.clone()).collect()
}

/// The file or folder that is never committed. What is committed already is nobody's litter:
/// neither a file nor what is beside it in such a folder.
fn never_committed(
    staging: Staging<'_>,
    committed: Option<&Tree<'_>>,
    path: &Path,
) -> Result<Option<PathBuf>, GitError> {
    let Some(of) = staging.rules.never(path) else { return Ok(None) };
    let Some(tree) = committed else { return Ok(Some(of)) };
    let known = if_found(tree.get_path(&of)).doing("look into a tree")?.is_some();
    let is_known = known || entry_at(committed, path)?.is_some();
    Ok((!is_known).then_some(of))
}
