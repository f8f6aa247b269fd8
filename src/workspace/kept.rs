//! Lists snapshots and finds them by number.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use git2::{Commit, Oid, message_trailers_bytes};
use serde::{Deserialize, Serialize};

use crate::model::StoryId;

use super::error::{GitContext, GitError};
use super::locks::write_note;
use super::tree::path_of;
use super::{OWN_GIT_FOLDER, WorkTree};

/// A cache in the shared git folder: one line of JSON per snapshot, so that a listing reads no
/// commits. Commits never change, so it cannot go stale.
const CATALOG: &str = "kept";

/// The refs of snapshots.
pub(super) const FOLDERS: [&str; 3] =
    ["refs/ralph/snapshots", "refs/ralph/attempts", "refs/ralph/checkpoints"];

/// The kind of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotKind {
    /// The work tree right before an attempt.
    Snapshot,
    /// The work of a failed attempt.
    Attempt,
    /// Shelved work of an unfinished story.
    SetAside,
    /// Made by `ralph checkpoint`, or before `ralph restore`.
    Checkpoint,
}

impl SnapshotKind {
    pub const ALL: [Self; 4] = [Self::Snapshot, Self::Attempt, Self::SetAside, Self::Checkpoint];

    pub fn word(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Attempt => "attempt",
            Self::SetAside => "set-aside",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// A snapshot of the work tree, at a ref.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRef {
    pub number: u64,
    #[serde(skip)]
    pub reference: String,
    pub kind: SnapshotKind,
    /// Seconds since the Unix epoch.
    pub at: i64,
    /// The commit's subject.
    pub subject: String,
    pub run: Option<String>,
    pub backlog: Option<String>,
    /// The linked work tree it is from; None for the main one.
    pub work_tree: Option<String>,
    pub story: Option<StoryId>,
    pub iteration: Option<u32>,
    pub(super) commit: String,
}

impl SnapshotRef {
    /// The commit's full id.
    pub fn commit(&self) -> String {
        self.commit.clone()
    }
}

impl WorkTree {
    /// All snapshots, oldest first; unreadable ones are skipped.
    pub fn kept(&self) -> Result<Vec<SnapshotRef>, GitError> {
        let mut catalog = self.catalog();
        let (mut kept, mut unknown) = (Vec::new(), Vec::new());
        for folder in FOLDERS {
            let refs = self.repo.references_glob(&format!("{folder}/*"));
            for found in refs.doing("list the snapshots")?.flatten() {
                let (Ok(name), Some(id)) = (found.name(), found.target()) else { continue };
                let reference = name.to_owned();
                if let Some(known) = catalog.remove(&id) {
                    kept.push(SnapshotRef { reference, ..known });
                } else if let Ok(commit) = found.peel_to_commit() {
                    unknown.extend(understand(reference, &commit));
                }
            }
        }
        self.add_to_catalog(&unknown);
        kept.append(&mut unknown);
        kept.sort_by_key(|kept| kept.number);
        self.highest.set(Some(kept.last().map_or(0, |kept| kept.number)));
        Ok(kept)
    }

    fn catalog(&self) -> HashMap<Oid, SnapshotRef> {
        let bytes = fs::read(self.catalog_file()).unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        let known = lines.filter_map(|line| serde_json::from_slice::<SnapshotRef>(line).ok());
        known.filter_map(|kept| Some((Oid::from_str(&kept.commit).ok()?, kept))).collect()
    }

    fn catalog_file(&self) -> PathBuf {
        self.common_dir.join(OWN_GIT_FOLDER).join(CATALOG)
    }

    /// Errors are ignored: the catalog only saves time.
    pub(super) fn add_to_catalog(&self, kept: &[SnapshotRef]) {
        let file =
            || File::options().create(true).append(true).mode(0o600).open(self.catalog_file());
        if !kept.is_empty()
            && let Ok(mut file) = file()
        {
            let _ = file.write_all(&lines(kept));
        }
    }

    pub(super) fn rewrite_catalog(&self, kept: &[SnapshotRef]) {
        let (file, new) = (self.catalog_file(), self.catalog_file().with_extension("new"));
        let _ = write_note(&new, &lines(kept)).and_then(|()| fs::rename(new, file));
    }

    /// Snapshots of this backlog's runs in this work tree, oldest first.
    pub fn kept_for_this_backlog(&self) -> Result<Vec<SnapshotRef>, GitError> {
        Ok(self.kept()?.into_iter().filter(|kept| self.is_of_this_backlog(kept)).collect())
    }

    pub(super) fn is_of_this_backlog(&self, kept: &SnapshotRef) -> bool {
        let backlog = self.service.as_ref().map(|service| service.backlog.as_str());
        (kept.backlog.as_deref(), &kept.work_tree) == (backlog, &self.linked_name())
    }

    pub fn kept_as(&self, number: u64) -> Result<SnapshotRef, GitError> {
        let kept = self.kept()?;
        let nearest = kept.iter().map(|kept| kept.number).min_by_key(|n| n.abs_diff(number));
        let found = kept.into_iter().find(|kept| kept.number == number);
        found.ok_or(GitError::NoSuchNumber { number, nearest })
    }

    /// Backlogs of earlier runs in this repository. Their marks belong to the branch.
    pub fn backlogs_of_runs(&self) -> Result<Vec<PathBuf>, GitError> {
        let named = self.kept()?.into_iter().filter_map(|kept| kept.backlog);
        Ok(named.map(|name| path_of(name.as_bytes())).collect())
    }
}

fn lines(kept: &[SnapshotRef]) -> Vec<u8> {
    let texts = kept.iter().filter_map(|kept| serde_json::to_string(kept).ok());
    texts.flat_map(|text| [text, "\n".to_owned()]).collect::<String>().into_bytes()
}

pub(super) fn understand(reference: String, commit: &Commit<'_>) -> Option<SnapshotRef> {
    let trailers = message_trailers_bytes(commit.message_bytes()).ok()?;
    let text = |key: &str| {
        let found = trailers.iter().find(|(k, _)| *k == key.as_bytes())?;
        Some(String::from_utf8_lossy(found.1).into_owned())
    };
    let word = text("Ralph-Kept")?;
    Some(SnapshotRef {
        number: text("Ralph-Number")?.parse().ok()?,
        kind: SnapshotKind::ALL.into_iter().find(|kind| kind.word() == word)?,
        at: commit.time().seconds(),
        subject: String::from_utf8_lossy(commit.summary_bytes().unwrap_or_default()).into_owned(),
        run: text("Ralph-Run"),
        backlog: text("Ralph-Backlog"),
        work_tree: text("Ralph-Work-Tree"),
        story: text("Ralph-Story").and_then(|id| StoryId::try_from(id).ok()),
        iteration: text("Ralph-Iteration").and_then(|text| text.parse().ok()),
        commit: commit.id().to_string(),
        reference,
    })
}

pub(super) fn kind_of(commit: &Commit<'_>) -> Option<SnapshotKind> {
    understand(String::new(), commit).map(|kept| kept.kind)
}
