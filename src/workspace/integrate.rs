//! The only code that moves the run's branch.
//!
//! A story's contribution becomes one commit on top of the branch. In the work tree where it was
//! made the files are there already; anywhere else they follow. Index and files change before the
//! branch does: should that fail, changes are staged and nothing is lost.

use std::path::{Path, PathBuf};
use std::{fs, io, iter};

use git2::{ErrorCode, Index, Oid};

use crate::model::Base;

use super::WorkTree;
use super::branch::{Tip, short, tip};
use super::collect::CollectRequest;
use super::error::{Doing, GitError, file_error};
use super::index::{Staged, statted, unstatted};
use super::locks::patiently;
use super::merge::{ThreeWay, with_changes};
use super::staging::{Contribution, LeftOut, Staging};
use super::tree::{Edit, TreeChange, TreeEntry, bytes_of, edited, entry_at};

#[derive(Default)]
pub struct IntegrateRequest<'a> {
    /// Files, relative to the root, with the bytes that they are to have: the backlog.
    pub replaced: &'a [(PathBuf, Vec<u8>)],
    /// Writes them to disk, once nothing can be refused any more. None: the caller writes them
    /// afterwards, and the next scan has to read them.
    pub write: Option<&'a dyn Fn() -> io::Result<()>>,
    pub message: &'a str,
}

/// Both steps in one, for work that was done in the work tree of the branch itself.
#[derive(Default)]
pub struct CommitRequest<'a> {
    /// None: only the replaced files.
    pub base: Option<&'a Base>,
    pub must_change: bool,
    pub replaced: &'a [(PathBuf, Vec<u8>)],
    pub staging: Option<Staging<'a>>,
    pub as_it_is: bool,
    pub message: &'a str,
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

/// A commit on its way to the branch.
pub(super) struct Landing {
    /// Where the branch is now.
    pub from: Option<Oid>,
    pub parent: Option<Oid>,
    /// What the commit changes, beside the replaced files.
    pub edits: Vec<(PathBuf, Option<TreeEntry>)>,
    /// What changes in the index.
    pub staged: Vec<Staged>,
    /// What changes on disk.
    pub files: Vec<TreeChange>,
    /// For the reflog.
    pub action: &'static str,
}

impl Landing {
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
    pub fn commit(&self, request: &CommitRequest<'_>) -> Result<Committed, GitError> {
        let CommitRequest { base, must_change, replaced, staging, as_it_is, message } = *request;
        let except: Vec<PathBuf> = replaced.iter().map(|(path, _)| path.clone()).collect();
        let all = match base {
            Some(base) => self.collect(&CollectRequest {
                base,
                must_change,
                except: &except,
                staging,
                as_it_is,
            })?,
            None => self.collect_nothing()?,
        };
        self.integrate(all, &IntegrateRequest { replaced, write: None, message })
    }

    /// Makes one commit of the contribution and the replaced files on top of the branch, even if
    /// that is nothing.
    pub fn integrate(
        &self,
        mut all: Contribution,
        request: &IntegrateRequest<'_>,
    ) -> Result<Committed, GitError> {
        let is_here = all.root == self.root;
        // Where the work was collected, the index was just looked at.
        let index = if is_here { self.fresh_index()? } else { self.settled_index()? };
        let replaced = self.replacements(&index, &all, request.replaced)?;
        let left_out = std::mem::take(&mut all.left_out);
        let work_tree = all.work_tree.filter(|_| is_here);
        let landing = if is_here { self.in_place(all)? } else { self.onto_tip(&all, request)? };
        let commit = self.land(landing, &replaced, request)?.to_string();
        let next_base = match work_tree {
            Some(now) => {
                let tree = self.repo.find_tree(now).doing("read the snapshot")?;
                let tree = edited(&self.repo, Some(&tree), &as_edits(&replaced))?.to_string();
                Some(Base { commit: Some(commit.clone()), tree })
            }
            None => None,
        };
        Ok(Committed { commit, left_out, next_base })
    }

    /// The work was done here, on what HEAD has.
    fn in_place(&self, mut all: Contribution) -> Result<Landing, GitError> {
        let head = tip(&self.repo)?;
        let from = self.branch_commit(&head)?;
        self.require_forward(&head, from)?;
        if head.commit != all.on {
            return Err(GitError::HeadMoved(self.branch_name().to_owned()));
        }
        let entry = |(path, entry): (&PathBuf, &Option<_>)| {
            (path.clone(), entry.as_ref().map(TreeEntry::from))
        };
        let edits = all.paths.iter().map(entry).collect();
        all.paths.append(&mut all.staged);
        let staged = all.paths.into_iter().collect();
        Ok(Landing {
            from,
            parent: head.commit,
            edits,
            staged,
            files: Vec::new(),
            action: "commit",
        })
    }

    /// The work was done elsewhere, and the branch may have moved since it began.
    fn onto_tip(
        &self,
        all: &Contribution,
        request: &IntegrateRequest<'_>,
    ) -> Result<Landing, GitError> {
        let from = self.branch_commit(&tip(&self.repo)?)?;
        let (Some(on), Some(ours)) = (from, self.tree_at(from)?) else {
            return Err(GitError::HeadMoved(self.branch_name().to_owned()));
        };
        let base = self.tree_or_empty(all.began)?;
        let done: Vec<TreeChange> = all.paths.iter().map(as_change).collect();
        let theirs = with_changes(&self.repo, &self.tree_or_empty(all.on)?, &done)?;
        let except: Vec<PathBuf> = request.replaced.iter().map(|(path, _)| path.clone()).collect();
        let sides = ThreeWay { base: &base, ours: &ours, theirs: &theirs, prefers_theirs: false };
        let changes = sides.merge(&self.repo, &except)?.map_err(GitError::Conflicts)?;
        self.require_unedited(&changes)?;
        Ok(Landing::of_changes(on, changes, "commit"))
    }

    /// The files on disk are as they are committed: nothing of the user's is overwritten.
    pub(super) fn require_unedited(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        let now = self.repo.find_tree(self.scan()?.tree).doing("read the snapshot")?;
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

    pub(super) fn land(
        &self,
        landing: Landing,
        replaced: &[(PathBuf, TreeEntry)],
        request: &IntegrateRequest<'_>,
    ) -> Result<Oid, GitError> {
        let Landing { from, parent, edits, mut staged, files, action } = landing;
        let before = self.tree_at(parent)?;
        let mut all: Vec<Edit<'_>> = edits.iter().map(|(path, e)| (bytes_of(path), *e)).collect();
        all.extend(as_edits(replaced));
        let tree = edited(&self.repo, before.as_ref(), &all)?;
        let tree = self.repo.find_tree(tree).doing("read a tree")?;
        let parent = parent.map(|id| self.repo.find_commit(id)).transpose();
        let parent = parent.doing("read the branch's commit")?;
        let commit = self.commit_for_branch(&tree, parent.as_slice(), request.message)?;
        if let Some(write) = request.write {
            write().map_err(file_error("write the backlog in", &self.root))?;
        }
        for ((path, entry), (_, bytes)) in replaced.iter().zip(request.replaced) {
            let found = request.write.and_then(|_| fs::symlink_metadata(self.root.join(path)).ok());
            let found =
                found.filter(|f| f.is_file() && usize::try_from(f.len()) == Ok(bytes.len()));
            let entry = unstatted(path, *entry);
            staged.push((
                path.clone(),
                Some(match found {
                    Some(found) => statted(entry, &found),
                    None => entry,
                }),
            ));
        }
        self.update_index(&staged)?;
        self.write_files(&tree, &files)?;
        let subject = request.message.lines().next().unwrap_or_default();
        self.move_branch(from, Some(commit), &format!("{action}: {subject}"))?;
        Ok(commit)
    }

    pub(super) fn replacements(
        &self,
        index: &Index,
        all: &Contribution,
        replaced: &[(PathBuf, Vec<u8>)],
    ) -> Result<Vec<(PathBuf, TreeEntry)>, GitError> {
        let entry = |(path, bytes): &(PathBuf, Vec<u8>)| {
            let scanned = all.excluded.get(path).and_then(Option::as_ref).map(|entry| entry.mode);
            let mode = scanned.or_else(|| index.get_path(path, 0).map(|entry| entry.mode));
            Ok((path.clone(), self.stored(mode, path, bytes)?))
        };
        replaced.iter().map(entry).collect()
    }

    /// An agent may have made a branch of its own. As long as that contains the
    /// run's branch, the run's branch can be moved forward to it; otherwise a
    /// commit would lose what is on one of the two.
    pub(super) fn require_forward(&self, head: &Tip, from: Option<Oid>) -> Result<(), GitError> {
        if head.reference == self.home || self.contains(head.commit, from)? {
            return Ok(());
        }
        let named = |name: &Option<String>| short(name.as_deref().unwrap_or("detached")).to_owned();
        Err(GitError::BranchChanged { expected: named(&self.home), found: named(&head.reference) })
    }

    /// Moves the run's branch forward to HEAD, and HEAD to it.
    pub fn come_home(&self) -> Result<(), GitError> {
        let head = tip(&self.repo)?;
        let from = self.branch_commit(&head)?;
        self.require_forward(&head, from)?;
        self.move_branch(from, head.commit, "ralph: back on the run's branch")
    }

    /// Moves the run's branch if it is still at `from`, and HEAD to it.
    /// `to` None: the branch has no commit again.
    pub(super) fn move_branch(
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
                    GitError::HeadMoved(self.branch_name().to_owned())
                }
                _ => GitError::Git { doing: "move the branch", source },
            })
        };
        patiently(self.lock_patience, &lock, || self.noting(&locks, swap))?;
        match &self.home {
            Some(name) if tip(&self.repo)?.reference.as_ref() != Some(name) => self.set_head(name),
            _ => Ok(()),
        }
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

    fn branch_name(&self) -> &str {
        short(self.home.as_deref().unwrap_or("HEAD"))
    }
}

fn as_edits(replaced: &[(PathBuf, TreeEntry)]) -> Vec<Edit<'_>> {
    replaced.iter().map(|(path, entry)| (bytes_of(path), Some(*entry))).collect()
}

fn as_change((path, entry): (&PathBuf, &Option<git2::IndexEntry>)) -> TreeChange {
    TreeChange { path: path.clone(), old: None, new: entry.as_ref().map(TreeEntry::from) }
}
