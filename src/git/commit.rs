//! The closing commit of a story.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::{Commit, Index, IndexEntry, Oid, Tree};

use super::WorkTree;
use super::changes::{Entry, between, bytes_of, entry_at};
use super::error::{Doing, GitError, file_error};
use super::head::{self, Tip};
use super::index::{Staged, unstatted};
use super::snapshot::Scan;
use super::staging::LeftOut;
use super::tree_edit::edited;
use crate::core::event::Base;
use crate::core::secrets;
use crate::core::staging::{Objection, Rules};

/// The mode of a file that git does not know yet.
const PLAIN_FILE: u32 = 0o100_644;

#[derive(Default)]
pub struct CommitRequest<'a> {
    /// Commits what changed since; None: only the replaced files.
    pub base: Option<&'a Base>,
    /// A base needs something to show for it.
    pub must_change: bool,
    /// Files, relative to the root, with the bytes that they will have on disk.
    pub replaced: &'a [(PathBuf, Vec<u8>)],
    /// What may become a part of it; None: everything.
    pub staging: Option<Staging<'a>>,
    /// The human saw what speaks against it, and wants it as it is.
    pub as_it_is: bool,
    pub message: &'a str,
}

#[derive(Clone, Copy)]
pub struct Staging<'a> {
    pub rules: &'a Rules,
    pub secrets: &'a Arc<secrets::Rules>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The commit's full id.
    pub commit: String,
    pub left_out: Vec<LeftOut>,
    /// The next story's base, without another scan. It holds once the replaced
    /// files are on disk, and as long as nobody else writes to the tree.
    pub next_base: Option<Base>,
}

/// What a commit will hold beside what HEAD has.
#[derive(Default)]
pub(super) struct Plan {
    pub paths: BTreeMap<PathBuf, Option<IndexEntry>>,
    /// Where the index is to say something else than the commit.
    pub staged: BTreeMap<PathBuf, Option<IndexEntry>>,
    pub left_out: Vec<LeftOut>,
    /// What speaks against committing it.
    pub objections: Vec<Objection>,
    /// The snapshot that the paths came from.
    work_tree: Option<Oid>,
}

impl WorkTree {
    /// Makes one commit on top of HEAD with what changed since the base and the
    /// replaced files, even if that is nothing. What was uncommitted before the
    /// base and did not change since stays out of it, as it is.
    ///
    /// The index is written before the branch moves: should that fail, changes
    /// are staged and nothing is lost.
    pub fn commit(&self, request: &CommitRequest<'_>) -> Result<Committed, GitError> {
        let mut index = self.settled_index()?;
        let head = head::tip(&self.repo)?;
        let home = self.home_commit(&head)?;
        self.require_forward(&head, home)?;
        let parent = self.commit_at(&head)?;
        let mut plan = self.plan(&mut index, request, parent.as_ref())?;
        let moved =
            request.base.is_none_or(|base| base.commit != head.commit.map(|id| id.to_string()));
        let changed = moved || plan.paths.keys().any(|path| !request.replaces(path));
        if request.must_change && !changed {
            return Err(GitError::NothingChanged);
        }
        let tree = self.tree_of_plan(&plan, parent.as_ref())?;
        self.require_fit(&mut plan, &tree, request)?;
        let commit = self.commit_for_branch(&tree, parent.as_slice(), request.message)?;
        let next_base = self.next_base(&plan, request, commit)?;
        plan.paths.append(&mut plan.staged);
        self.update_index(&plan.paths.into_iter().collect::<Vec<Staged>>())?;
        let subject = request.message.lines().next().unwrap_or_default();
        self.move_home(home, Some(commit), &format!("commit: {subject}"))?;
        Ok(Committed { commit: commit.to_string(), left_out: plan.left_out, next_base })
    }

    fn commit_at(&self, head: &Tip) -> Result<Option<Commit<'_>>, GitError> {
        let commit = head.commit.map(|id| self.repo.find_commit(id));
        commit.transpose().doing("read HEAD's commit")
    }

    fn plan(
        &self,
        index: &mut Index,
        request: &CommitRequest<'_>,
        parent: Option<&Commit<'_>>,
    ) -> Result<Plan, GitError> {
        let mut plan = match request.base {
            Some(base) => self.since(index, base, parent)?,
            None => Plan::default(),
        };
        plan.paths.retain(|path, _| !request.replaces(path));
        if let Some(base) = request.base {
            self.keep_the_users_out(&mut plan, base, parent, request.as_it_is)?;
            self.leave_out(&mut plan, base, request)?;
        }
        for (path, bytes) in request.replaced {
            let entry = self.replacement(index, path, bytes)?;
            plan.paths.insert(path.clone(), Some(unstatted(path, entry)));
        }
        Ok(plan)
    }

    fn since(
        &self,
        index: &mut Index,
        base: &Base,
        parent: Option<&Commit<'_>>,
    ) -> Result<Plan, GitError> {
        let Scan { tree: now, nested, mut known } = self.scan_into(index)?;
        let base_tree = self.tree(&base.tree)?;
        let now_tree = self.repo.find_tree(now).doing("read the snapshot")?;
        let changes = between(&self.repo, Some(&base_tree), Some(&now_tree))?;
        let mut paths: Vec<PathBuf> = changes.into_iter().map(|change| change.path).collect();
        paths.extend(self.taken_back(base, &base_tree, parent)?);
        let mut entry = |path: &Path| known.remove(path).or_else(|| index.get_path(path, 0));
        // Each once: what is known is handed over.
        let paths = paths.into_iter().collect::<BTreeSet<PathBuf>>().into_iter();
        let paths = paths.map(|path| (path.clone(), entry(&path)));
        let left_out = nested.into_iter().map(LeftOut::repository).collect();
        Ok(Plan { paths: paths.collect(), left_out, work_tree: Some(now), ..Plan::default() })
    }

    /// Paths that the agent committed and that were clean at the base: whatever
    /// they are now is the agent's doing, even if it is what they were.
    fn taken_back(
        &self,
        base: &Base,
        base_tree: &Tree<'_>,
        parent: Option<&Commit<'_>>,
    ) -> Result<Vec<PathBuf>, GitError> {
        if parent.map(|commit| commit.id().to_string()) == base.commit {
            return Ok(Vec::new());
        }
        let old = self.committed_at(base)?;
        let new = parent.map(|commit| commit.tree().doing(READ_TREE)).transpose()?;
        let mut paths = Vec::new();
        for change in between(&self.repo, old.as_ref(), new.as_ref())? {
            if entry_at(Some(base_tree), &change.path)? == change.old {
                paths.push(change.path);
            }
        }
        Ok(paths)
    }

    /// The file as git would store it: with its line endings, and executable if it is.
    pub(super) fn replacement(
        &self,
        index: &Index,
        path: &Path,
        bytes: &[u8],
    ) -> Result<Entry, GitError> {
        self.require_plain(path)?;
        let id = if is_stored_as_it_is(bytes) {
            self.repo.blob(bytes).doing(WRITE_CONTENT)?
        } else {
            self.stored_with_filters(path, bytes)?
        };
        let known = index.get_path(path, 0).map(|entry| entry.mode);
        let mode = known.filter(|mode| mode & 0o170_000 == 0o100_000).unwrap_or(PLAIN_FILE);
        Ok(Entry { id, mode })
    }

    fn stored_with_filters(&self, path: &Path, bytes: &[u8]) -> Result<Oid, GitError> {
        let mut blob = self.repo.blob_writer(Some(path)).doing(WRITE_CONTENT)?;
        blob.write_all(bytes).map_err(file_error("store", path))?;
        blob.commit().doing(WRITE_CONTENT)
    }

    fn tree_of_plan(&self, plan: &Plan, parent: Option<&Commit<'_>>) -> Result<Tree<'_>, GitError> {
        let before = parent.map(|commit| commit.tree().doing(READ_TREE)).transpose()?;
        let edits: Vec<_> = plan
            .paths
            .iter()
            .map(|(path, entry)| (bytes_of(path), entry.as_ref().map(entry_of)))
            .collect();
        let tree = edited(&self.repo, before.as_ref(), &edits)?;
        self.repo.find_tree(tree).doing(READ_TREE)
    }

    /// What was committed when the story began; None on a branch without commits.
    pub(super) fn committed_at(&self, base: &Base) -> Result<Option<Tree<'_>>, GitError> {
        let commit = base.commit.as_deref().map(|id| self.commit_named(id)).transpose()?;
        commit.map(|commit| self.repo.find_tree(commit.tree_id()).doing(READ_TREE)).transpose()
    }

    fn next_base(
        &self,
        plan: &Plan,
        request: &CommitRequest<'_>,
        commit: Oid,
    ) -> Result<Option<Base>, GitError> {
        let Some(now) = plan.work_tree else {
            return Ok(None);
        };
        let now = self.repo.find_tree(now).doing(READ_TREE)?;
        let entry = |path| plan.paths.get(path).and_then(Option::as_ref).map(entry_of);
        let edits = request.replaced.iter().map(|(path, _)| (bytes_of(path), entry(path)));
        let tree = edited(&self.repo, Some(&now), &edits.collect::<Vec<_>>())?;
        Ok(Some(Base { commit: Some(commit.to_string()), tree: tree.to_string() }))
    }

    /// A commit that no branch knows of yet.
    pub(super) fn new_commit(
        &self,
        tree: &Tree<'_>,
        parents: &[Commit<'_>],
        message: &str,
    ) -> Result<Oid, GitError> {
        let author = self.repo.author_from_env().doing("read who commits")?;
        let committer = self.repo.committer_from_env().doing("read who commits")?;
        let parents: Vec<_> = parents.iter().collect();
        self.repo.commit(None, &author, &committer, message, tree, &parents).doing("write a commit")
    }
}

impl CommitRequest<'_> {
    pub(super) fn replaces(&self, path: &Path) -> bool {
        self.replaced.iter().any(|(replaced, _)| replaced == path)
    }
}

pub(super) const READ_TREE: &str = "read a tree";
const WRITE_CONTENT: &str = "write a file's content";

/// Git's own filters change line endings and `$Id$`, nothing else. Going past
/// them saves two files.
fn is_stored_as_it_is(bytes: &[u8]) -> bool {
    memchr::memchr(b'\r', bytes).is_none() && memchr::memmem::find(bytes, b"$Id").is_none()
}

pub(super) fn entry_of(entry: &IndexEntry) -> Entry {
    Entry { id: entry.id, mode: entry.mode }
}
