//! Takes snapshots of the work tree, commits at refs with a short number each, and restores files from
//! them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use git2::{Commit, ErrorCode, Oid, Tree};

use crate::files::atomic::append_private;
use crate::files::nofollow;
use crate::model::{Base, StoryId, visible_line};

use super::catalog::{SnapshotKind, SnapshotRef, parse_snapshot};
use super::error::{GitContext, GitError, file_error, if_found};
use super::locks::{is_lock, private_parent};
use super::{OWN_GIT_FOLDER, Result, WorkTree};

/// The file with the highest number, so that finding the next one needs no listing.
const NUMBERS: &str = "numbers";
/// Snapshots that may have been deleted since the newest one that is there. A higher number is none of
/// ralph's.
const MOST_DELETED: u64 = 1 << 32;

/// The active run of a work tree, named in its snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunLabel {
    pub run: String,
    /// The backlog's path in the repository.
    pub backlog: String,
}

/// The message of a snapshot, without the run.
pub(super) struct SnapshotNote<'a> {
    pub kind: SnapshotKind,
    /// The subject, and a body if there is one.
    pub text: &'a str,
    pub story: Option<&'a StoryId>,
    pub iteration: Option<u32>,
}

impl WorkTree {
    /// From now on, snapshots belong to this run.
    pub fn serve(&mut self, run: &str, backlog: &str) {
        self.service = Some(RunLabel { run: run.to_owned(), backlog: visible_line(backlog) });
    }

    /// The ref for a snapshot before the run's attempt `n`, or for the next number that is free.
    pub fn snapshot_name(&self, mut n: u32) -> Result<String> {
        let run = self.service.as_ref().map_or("none", |service| service.run.as_str());
        loop {
            let name = format!("refs/ralph/snapshots/{run}/{n}");
            if self.is_free(&name)? {
                return Ok(name);
            }
            n = n.saturating_add(1);
        }
    }

    /// Takes a snapshot of the tree right before an attempt.
    pub fn keep_snapshot(
        &self,
        name: &str,
        story: &StoryId,
        iteration: u32,
        before: &Base,
    ) -> Result<SnapshotRef> {
        let text = format!("ralph: the work tree before {story}, iteration {iteration}");
        let (story, iteration) = (Some(story), Some(iteration));
        let note = SnapshotNote { kind: SnapshotKind::Snapshot, text: &text, story, iteration };
        self.keep_base(before, &note, |_| name.to_owned())
    }

    /// Takes a snapshot of the work tree as it is now.
    pub fn checkpoint(&self, text: &str) -> Result<SnapshotRef> {
        let kind = SnapshotKind::Checkpoint;
        let note = SnapshotNote { kind, text, story: None, iteration: None };
        self.keep_base(&self.base()?, &note, |number| format!("refs/ralph/checkpoints/{number}"))
    }

    fn keep_base(
        &self,
        base: &Base,
        note: &SnapshotNote<'_>,
        name: impl Fn(u64) -> String,
    ) -> Result<SnapshotRef> {
        let parent = base.commit.as_deref().map(|id| self.commit_named(id)).transpose()?;
        self.keep_commit(&self.tree(&base.tree)?, parent.as_slice(), note, name)
    }

    /// A ref with a lock is not free: a killed process may have left the lock.
    pub(super) fn is_free(&self, name: &str) -> Result<bool> {
        let taken = if_found(self.repo.refname_to_id(name)).doing("look for a snapshot")?;
        Ok(taken.is_none() && !nofollow::exists(&self.ref_lock(name)))
    }

    /// The last parent is what the snapshot is compared with.
    pub(super) fn keep_commit(
        &self,
        tree: &Tree<'_>,
        parents: &[Commit<'_>],
        note: &SnapshotNote<'_>,
        name: impl Fn(u64) -> String,
    ) -> Result<SnapshotRef> {
        let (number, commit) = self.numbered(tree, parents, note)?;
        let reference = name(number);
        let made = self.with_lock_note(&[&self.ref_lock(&reference)], || {
            let made = self.repo.reference(&reference, commit, false, "ralph");
            made.map(drop).doing("write the snapshot's ref")
        });
        if made.is_ok() {
            self.add_own_ref(&reference, commit);
            self.hold_object(commit);
        }
        match made {
            Err(error) if is_lock(&error) || is_taken(&error) => Err(GitError::RefTaken(reference)),
            made => made.and_then(|()| {
                let commit = self.repo.find_commit(commit).doing("read the snapshot")?;
                let kept = parse_snapshot(reference, &commit);
                self.add_to_catalog(kept.as_slice());
                kept.ok_or(GitError::NoSuchNumber { number, nearest: None })
            }),
        }
    }

    /// Makes a commit with the next number, and reserves the number.
    fn numbered(
        &self,
        tree: &Tree<'_>,
        parents: &[Commit<'_>],
        note: &SnapshotNote<'_>,
    ) -> Result<(u64, Oid)> {
        let path = self.common_dir.join(OWN_GIT_FOLDER).join(NUMBERS);
        let mut turn = turn(&path).map_err(file_error("lock", &path))?;
        let number = self.last_number(&mut turn)? + 1;
        let commit = self.new_commit(tree, parents, &self.message(note, number), None)?;
        let noted = turn.set_len(0).and_then(|()| writeln!(turn, "{number}"));
        noted.map_err(file_error("write", &path))?;
        Ok((number, commit))
    }

    /// From the file, and once from the refs: after a power cut the file may be older than the
    /// refs.
    fn last_number(&self, turn: &mut File) -> Result<u64> {
        let mut text = String::new();
        let read = turn.read_to_string(&mut text).ok();
        let noted = read.and_then(|_| text.trim().parse::<u64>().ok());
        if self.highest.get().is_none() || noted.is_none() {
            self.snapshots()?;
        }
        let highest = self.highest.get().unwrap_or_default();
        let noted = noted.filter(|noted| noted.saturating_sub(highest) < MOST_DELETED);
        Ok(noted.unwrap_or_default().max(highest))
    }

    fn message(&self, note: &SnapshotNote<'_>, number: u64) -> String {
        let service = self.service.as_ref();
        let trailers = [
            ("Kept", Some(note.kind.word())),
            ("Number", Some(number.to_string())),
            ("Run", service.map(|service| service.run.clone())),
            ("Backlog", service.map(|service| service.backlog.clone())),
            ("Work-Tree", self.linked_name()),
            ("Story", note.story.map(ToString::to_string)),
            ("Iteration", note.iteration.map(|iteration| iteration.to_string())),
        ];
        let lines = trailers.into_iter();
        let lines = lines.filter_map(|(key, value)| Some(format!("Ralph-{key}: {}\n", value?)));
        format!("{}\n\n{}", note.text.trim(), lines.collect::<String>())
    }

    /// A linked work tree's name; None in the main one.
    pub(super) fn linked_name(&self) -> Option<String> {
        let name = self.git_dir.file_name().filter(|_| self.git_dir != self.common_dir);
        name.map(|name| visible_line(&name.to_string_lossy()))
    }
}

fn is_taken(error: &GitError) -> bool {
    matches!(error, GitError::Git { source, .. } if source.code() == ErrorCode::Exists)
}

/// The lock for numbers; the system releases it if the process dies.
fn turn(path: &Path) -> io::Result<File> {
    private_parent(path)?;
    let file = append_private(path)?;
    file.lock()?;
    Ok(file)
}
