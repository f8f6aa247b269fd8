//! The only code that moves the run's branch.
//!
//! A story's contribution becomes one commit on top of the branch, in two steps. `prepare_commit`
//! makes the commit, which is on no branch yet. `advance` changes index and files, then moves the
//! branch: if that fails, changes are staged and nothing is lost. The lane of the contribution has
//! the files already; any other work tree gets them now.

use std::fs::Metadata;
use std::iter;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, Index, Oid};

use crate::model::{Base, LeftOut};

use super::branch::{Tip, short, tip};
use super::commit::is_stored_as_it_is;
use super::error::{GitContext, GitError, LibResult};
use super::index::{Staged, statted, unstatted};
use super::staging::Contribution;
use super::tree::{Edit, ThreeWay, TreeChange, TreeEntry, bytes_of, edited, entry_at};
use super::{Result, WorkTree};

/// A file that the commit has with these bytes, whatever is on disk: the backlog with its mark.
pub struct Replacement<'a> {
    /// Relative to the root.
    pub path: &'a Path,
    pub bytes: &'a [u8],
    /// The same bytes, if they were stored ahead.
    pub stored: Option<StoredBlob>,
}

/// Content that is in the repository already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBlob(Oid);

/// A commit that no branch has yet.
pub struct ReadyCommit {
    commit: Oid,
    tree: Oid,
    advance: Advance,
    replaced: Vec<(PathBuf, TreeEntry)>,
    subject: String,
    left_out: Vec<LeftOut>,
    next_base: Option<Base>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The commit's full id.
    pub commit: String,
    pub left_out: Vec<LeftOut>,
    /// The next story's base, without another scan. Valid once the replaced files are on disk,
    /// until the tree changes.
    pub next_base: Option<Base>,
}

/// How a commit gets onto the branch.
pub(super) struct Advance {
    /// Where the branch is now.
    pub from: Option<Oid>,
    pub parent: Option<Oid>,
    /// What the commit changes, besides the replaced files.
    pub edits: Vec<(PathBuf, Option<TreeEntry>)>,
    /// What changes in the index.
    pub staged: Vec<Staged>,
    /// What changes on disk.
    pub files: Vec<TreeChange>,
    /// For the reflog.
    pub action: &'static str,
}

impl ReadyCommit {
    /// Its full id.
    pub fn id(&self) -> String {
        self.commit.to_string()
    }

    /// The branch tip that it is made for.
    pub(super) fn from(&self) -> Option<Oid> {
        self.advance.from
    }
}

impl<'a> Replacement<'a> {
    pub fn new(path: &'a Path, bytes: &'a [u8]) -> Self {
        Self { path, bytes, stored: None }
    }
}

impl Advance {
    /// Of changes that are not in this work tree yet.
    pub fn of_changes(on: Oid, changes: Vec<TreeChange>, action: &'static str) -> Self {
        let edits = changes.iter().map(|change| (change.path.clone(), change.new));
        let staged = edits.clone().map(|(path, new)| {
            let entry = new.map(|entry| unstatted(&path, entry));
            (path, entry)
        });
        let (edits, staged) = (edits.collect(), staged.collect());
        Self { from: Some(on), parent: Some(on), edits, staged, files: changes, action }
    }
}

impl WorkTree {
    /// Makes one commit of the contribution and the replaced files on top of the branch, even if
    /// both are empty.
    pub fn prepare_commit(
        &self,
        mut all: Contribution,
        replaced: &[Replacement<'_>],
        message: &str,
    ) -> Result<ReadyCommit> {
        let is_here = all.root == self.root;
        // Where the work was collected, the index was just looked at.
        let index = if is_here { self.fresh_index()? } else { self.settled_index()? };
        let entries = self.replacements(&index, &all, replaced)?;
        let left_out = std::mem::take(&mut all.left_out);
        // Signing may wait for a human, who may edit files meanwhile.
        let work_tree = all.work_tree.filter(|_| is_here && self.signer.is_none());
        let advance = if is_here { self.in_place(all)? } else { self.onto_tip(&all, replaced)? };
        let mut ready = self.ready(advance, entries, message)?;
        ready.left_out = left_out;
        if let Some(now) = work_tree {
            let tree = self.repo.find_tree(now).doing("read the snapshot")?;
            let tree = edited(&self.repo, Some(&tree), &as_edits(&ready.replaced))?.to_string();
            ready.next_base = Some(Base { commit: Some(ready.commit.to_string()), tree });
        }
        Ok(ready)
    }

    pub(super) fn ready(
        &self,
        advance: Advance,
        replaced: Vec<(PathBuf, TreeEntry)>,
        message: &str,
    ) -> Result<ReadyCommit> {
        let before = self.tree_at(advance.parent)?;
        let edits = advance.edits.iter().map(|(path, entry)| (bytes_of(path), *entry));
        let edits: Vec<Edit<'_>> = edits.chain(as_edits(&replaced)).collect();
        let tree = edited(&self.repo, before.as_ref(), &edits)?;
        let found = self.repo.find_tree(tree).doing("read a tree")?;
        let parent = advance.parent.map(|id| self.repo.find_commit(id)).transpose();
        let parent = parent.doing("read the branch's commit")?;
        let commit = self.new_commit(&found, parent.as_slice(), message, self.signer.as_ref())?;
        let subject = message.lines().next().unwrap_or_default().to_owned();
        let left_out = Vec::new();
        Ok(ReadyCommit { commit, tree, advance, replaced, subject, left_out, next_base: None })
    }

    /// Moves the branch to the commit. `file`: a replaced file that has its new bytes on disk, so
    /// that the next scan need not read it.
    pub fn advance(
        &self,
        ready: ReadyCommit,
        file: Option<(&Path, &Metadata)>,
    ) -> Result<Committed> {
        let ReadyCommit { commit, tree, advance, replaced, subject, left_out, next_base } = ready;
        let Advance { from, mut staged, files, action, .. } = advance;
        for (path, entry) in replaced {
            let entry = unstatted(&path, entry);
            let entry = match file {
                Some((known, found)) if known == path => statted(entry, found),
                _ => entry,
            };
            staged.push((path, Some(entry)));
        }
        self.update_index(&staged)?;
        self.write_files(&self.repo.find_tree(tree).doing("read a tree")?, &files)?;
        self.move_branch(from, Some(commit), &format!("{action}: {subject}"))?;
        Ok(Committed { commit: commit.to_string(), left_out, next_base })
    }

    /// Stores a file's next content while there is time; None if git would change it on the way.
    pub fn store_ahead(&self, bytes: &[u8]) -> Option<StoredBlob> {
        is_stored_as_it_is(bytes).then(|| self.repo.blob(bytes).ok().map(StoredBlob))?
    }

    /// The parent of the commit that it will be.
    pub fn parent_of(&self, work: &Contribution) -> Result<Option<String>> {
        let on_head = work.replaces.is_none() || work.root != self.root;
        if on_head { self.head_commit() } else { Ok(work.on.map(|on| on.to_string())) }
    }

    /// The work was done here, on what HEAD has.
    fn in_place(&self, mut all: Contribution) -> Result<Advance> {
        let head = tip(&self.repo)?;
        let from = self.branch_commit(&head)?;
        self.require_forward(&head, from)?;
        let expected = all.replaces.as_ref().map_or(all.on, |own| Some(own.tip));
        if head.commit != expected {
            return Err(GitError::HeadMoved(self.branch_name().to_owned()));
        }
        let entry = |(path, entry): (&PathBuf, &Option<_>)| {
            (path.clone(), entry.as_ref().map(TreeEntry::from))
        };
        let edits = all.paths.iter().map(entry).collect();
        all.paths.append(&mut all.staged);
        let staged = all.paths.into_iter().collect();
        let (parent, files) = (all.on, Vec::new());
        Ok(Advance { from, parent, edits, staged, files, action: "commit" })
    }

    /// The work was done elsewhere, and the branch may have moved since it began.
    fn onto_tip(&self, all: &Contribution, replaced: &[Replacement<'_>]) -> Result<Advance> {
        let from = self.branch_commit(&tip(&self.repo)?)?;
        let (Some(on), Some(ours)) = (from, self.tree_at(from)?) else {
            return Err(GitError::HeadMoved(self.branch_name().to_owned()));
        };
        let base = self.tree_or_empty(all.began)?;
        let on_lane = self.tree_or_empty(all.on)?;
        let done =
            all.paths.iter().map(|(path, new)| (bytes_of(path), new.as_ref().map(Into::into)));
        let theirs = edited(&self.repo, Some(&on_lane), &done.collect::<Vec<_>>())?;
        let theirs = self.repo.find_tree(theirs).doing("read a tree")?;
        let except: Vec<PathBuf> = replaced.iter().map(|one| one.path.to_owned()).collect();
        let sides = ThreeWay { base: &base, ours: &ours, theirs: &theirs, prefers_theirs: false };
        let changes = sides.merge(&self.repo, &except)?.map_err(GitError::Conflicts)?;
        self.require_unedited(&changes)?;
        Ok(Advance::of_changes(on, changes, "commit"))
    }

    /// The files on disk are as they are committed: nothing of the user's is overwritten.
    pub(super) fn require_unedited(&self, changes: &[TreeChange]) -> Result<()> {
        let now = self.tree_now()?;
        let mut in_the_way = Vec::new();
        for change in changes {
            let edited = entry_at(Some(&now), &change.path)? != change.old;
            if edited || self.is_in_the_way(change) {
                in_the_way.push(change.path.display().to_string());
            }
        }
        if !in_the_way.is_empty() {
            return Err(GitError::UncommittedInTheWay(in_the_way));
        }
        self.require_writable(changes)
    }

    pub(super) fn replacements(
        &self,
        index: &Index,
        all: &Contribution,
        replaced: &[Replacement<'_>],
    ) -> Result<Vec<(PathBuf, TreeEntry)>> {
        let entry = |one: &Replacement<'_>| {
            let scanned = all.excluded.get(one.path).and_then(Option::as_ref).map(|e| e.mode);
            let mode = scanned.or_else(|| index.get_path(one.path, 0).map(|entry| entry.mode));
            // An agent's `git gc` may have deleted what nothing referred to.
            let objects = self.repo.odb().ok();
            let is_there = |id: &Oid| objects.as_ref().is_some_and(|objects| objects.exists(*id));
            let known = one.stored.map(|StoredBlob(id)| id).filter(is_there);
            Ok((one.path.to_owned(), self.stored(mode, one.path, one.bytes, known)?))
        };
        replaced.iter().map(entry).collect()
    }

    /// An agent may have made a branch of its own. If it contains the run's branch, the run's
    /// branch is fast-forwarded; otherwise a commit would lose the commits of one of the two.
    pub(super) fn require_forward(&self, head: &Tip, from: Option<Oid>) -> Result<()> {
        if self.contains(head.commit, from)? { Ok(()) } else { self.require_own_branch() }
    }

    /// HEAD is on the run's branch. The human may have switched to another one.
    pub fn require_own_branch(&self) -> Result<()> {
        let head = tip(&self.repo)?;
        if head.reference == self.run_branch {
            return Ok(());
        }
        let named = |name: &Option<String>| short(name.as_deref().unwrap_or("detached")).to_owned();
        Err(GitError::BranchChanged {
            expected: named(&self.run_branch),
            found: named(&head.reference),
        })
    }

    /// Moves the run's branch forward to HEAD, and HEAD to it.
    pub fn reattach(&self) -> Result<()> {
        let head = tip(&self.repo)?;
        let from = self.branch_commit(&head)?;
        self.require_forward(&head, from)?;
        self.move_branch(from, head.commit, "ralph: back on the run's branch")
    }

    /// Moves the run's branch if it is still at `from`, and HEAD to it.
    /// `to` None: the branch has no commit again.
    pub(super) fn move_branch(&self, from: Option<Oid>, to: Option<Oid>, log: &str) -> Result<()> {
        let name = self.run_branch.as_deref().unwrap_or("HEAD");
        let lock = self.ref_lock(name);
        // A ref that goes may be in two places.
        let packed = to.is_none().then(|| self.ref_lock("packed-refs"));
        let locks: Vec<&Path> = iter::once(&*lock).chain(packed.as_deref()).collect();
        let swap = || {
            self.swap(name, from, to, log).map_err(|source| match source.code() {
                ErrorCode::Modified | ErrorCode::Exists => {
                    GitError::HeadMoved(self.branch_name().to_owned())
                }
                _ => GitError::Git { doing: "move the branch", source },
            })
        };
        self.retry(&lock, || self.with_lock_note(&locks, swap))?;
        match &self.run_branch {
            Some(name) if tip(&self.repo)?.reference.as_ref() != Some(name) => self.set_head(name),
            _ => Ok(()),
        }
    }

    fn swap(&self, name: &str, from: Option<Oid>, to: Option<Oid>, log: &str) -> LibResult<()> {
        match (from, to) {
            (from, to) if from == to => Ok(()),
            (Some(from), Some(to)) => {
                self.repo.reference_matching(name, to, true, from, log).map(drop)
            }
            (None, Some(to)) => self.repo.reference(name, to, false, log).map(drop),
            (_, None) => self.repo.find_reference(name)?.delete(),
        }
    }

    fn branch_name(&self) -> &str {
        short(self.run_branch.as_deref().unwrap_or("HEAD"))
    }
}

fn as_edits(replaced: &[(PathBuf, TreeEntry)]) -> Vec<Edit<'_>> {
    replaced.iter().map(|(path, entry)| (bytes_of(path), Some(*entry))).collect()
}
