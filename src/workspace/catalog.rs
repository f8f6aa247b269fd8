//! Lists snapshots, finds them by number, and deletes old ones.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Write;
use std::path::PathBuf;

use git2::{Commit, Oid};
use serde::{Deserialize, Serialize};

use crate::files::atomic::append_private;
use crate::files::nofollow;
use crate::model::StoryId;

use super::commit::trailer;
use super::error::{GitContext, GitError};
use super::locks::write_note;
use super::tree::path_of;
use super::{OWN_GIT_FOLDER, Result, WorkTree};

/// A cache in the shared git folder: one line of JSON per snapshot, so that a listing reads no
/// commits. Commits never change, so it cannot go stale.
const CATALOG: &str = "kept";
const LARGEST_CATALOG: u64 = 1 << 30;

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
    #[serde(rename = "set-aside")]
    Shelved,
    /// Made by `ralph checkpoint`, or before `ralph restore`.
    Checkpoint,
}

impl SnapshotKind {
    /// As it is stored.
    pub fn word(self) -> String {
        let stored = serde_json::to_value(self).unwrap_or_default();
        stored.as_str().unwrap_or_default().to_owned()
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
    /// The commit's full id.
    pub commit: String,
}

impl WorkTree {
    /// All snapshots, oldest first; unreadable ones are skipped.
    pub fn snapshots(&self) -> Result<Vec<SnapshotRef>> {
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
                    unknown.extend(parse_snapshot(reference, &commit));
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
        let bytes = nofollow::read(&self.catalog_file(), LARGEST_CATALOG).unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        let known = lines.filter_map(|line| serde_json::from_slice::<SnapshotRef>(line).ok());
        known.filter_map(|kept| Some((Oid::from_str(&kept.commit).ok()?, kept))).collect()
    }

    fn catalog_file(&self) -> PathBuf {
        self.common_dir.join(OWN_GIT_FOLDER).join(CATALOG)
    }

    /// Errors are ignored: the catalog only saves time.
    pub(super) fn add_to_catalog(&self, kept: &[SnapshotRef]) {
        if !kept.is_empty() {
            let file = append_private(&self.catalog_file());
            let _ = file.and_then(|mut file| file.write_all(&lines(kept)));
        }
    }

    /// Snapshots of this backlog's runs in this work tree, oldest first.
    pub fn snapshots_of_backlog(&self) -> Result<Vec<SnapshotRef>> {
        Ok(self.snapshots()?.into_iter().filter(|kept| self.is_of_this_backlog(kept)).collect())
    }

    pub(super) fn is_of_this_backlog(&self, kept: &SnapshotRef) -> bool {
        let backlog = self.service.as_ref().map(|service| service.backlog.as_str());
        (kept.backlog.as_deref(), &kept.work_tree) == (backlog, &self.linked_name())
    }

    pub fn find_snapshot(&self, number: u64) -> Result<SnapshotRef> {
        let kept = self.snapshots()?;
        let nearest = kept.iter().map(|kept| kept.number).min_by_key(|n| n.abs_diff(number));
        let found = kept.into_iter().find(|kept| kept.number == number);
        found.ok_or(GitError::NoSuchNumber { number, nearest })
    }

    /// Backlogs of earlier runs in this repository. Their marks belong to the branch.
    pub fn backlogs_of_runs(&self) -> Result<Vec<PathBuf>> {
        let named = self.snapshots()?.into_iter().filter_map(|kept| kept.backlog);
        Ok(named.map(|name| path_of(name.as_bytes())).collect())
    }
}

fn lines(kept: &[SnapshotRef]) -> Vec<u8> {
    let texts = kept.iter().filter_map(|kept| serde_json::to_string(kept).ok());
    texts.flat_map(|text| [text, "\n".to_owned()]).collect::<String>().into_bytes()
}

pub(super) fn parse_snapshot(reference: String, commit: &Commit<'_>) -> Option<SnapshotRef> {
    let text = |key: &str| trailer(commit, key);
    Some(SnapshotRef {
        number: text("Ralph-Number")?.parse().ok()?,
        kind: serde_json::from_value(text("Ralph-Kept")?.into()).ok()?,
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
    parse_snapshot(String::new(), commit).map(|kept| kept.kind)
}

/// Snapshots of this many latest runs stay.
const RUNS: usize = 2;
/// The most snapshots that stay for this reason.
const OF_LAST_RUNS: usize = 1000;
const DAY: i64 = 24 * 60 * 60;

/// Limits for snapshots; None: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    pub count: Option<u32>,
    pub days: Option<u32>,
}

impl WorkTree {
    /// Deletes checkpoints and this backlog's snapshots that are too old or too many, packs the
    /// other refs, and returns how many were deleted. Refs in `needed` always stay; `now` is in
    /// seconds since the Unix epoch.
    pub fn prune(&self, keeping: Keeping, needed: &BTreeSet<String>, now: i64) -> Result<usize> {
        self.release_stashes()?;
        let kept = self.snapshots()?;
        let is_ours = |kept: &&SnapshotRef| {
            kept.kind == SnapshotKind::Checkpoint || self.is_of_this_backlog(kept)
        };
        let ours: Vec<&SnapshotRef> = kept.iter().filter(is_ours).collect();
        let gone = superfluous(&ours, keeping, needed, now);
        let pairs: Vec<(&str, &str)> =
            gone.iter().map(|k| (k.reference.as_str(), k.commit.as_str())).collect();
        let deleted = self.pack_refs(&FOLDERS, &pairs)?;
        if !deleted.is_empty() {
            let is_left = |kept: &SnapshotRef| !deleted.contains(kept.reference.as_str());
            let left: Vec<_> = kept.iter().filter(|kept| is_left(kept)).cloned().collect();
            let (file, new) = (self.catalog_file(), self.catalog_file().with_extension("new"));
            let _ = write_note(&new, &lines(&left)).and_then(|()| nofollow::rename(&new, &file));
        }
        Ok(deleted.len())
    }
}

/// `kept` is sorted, oldest first.
fn superfluous<'a>(
    kept: &[&'a SnapshotRef],
    keeping: Keeping,
    needed: &BTreeSet<String>,
    now: i64,
) -> Vec<&'a SnapshotRef> {
    let mut runs: Vec<&str> = Vec::new();
    for run in kept.iter().rev().filter_map(|kept| kept.run.as_deref()) {
        if runs.len() < RUNS && !runs.contains(&run) {
            runs.push(run);
        }
    }
    let of_last_runs =
        |kept: &&SnapshotRef| kept.run.as_deref().is_some_and(|run| runs.contains(&run));
    let recent = kept.iter().rev().copied().filter(of_last_runs).take(OF_LAST_RUNS);
    let recent: HashSet<u64> = recent.map(|kept| kept.number).collect();
    let stays =
        |kept: &SnapshotRef| recent.contains(&kept.number) || needed.contains(&kept.reference);
    let most = keeping.count.and_then(|count| usize::try_from(count).ok());
    let too_many = kept.len().saturating_sub(most.unwrap_or(usize::MAX));
    let oldest = keeping.days.map_or(i64::MIN, |days| now.saturating_sub(i64::from(days) * DAY));
    let is_gone = |(place, kept): &(usize, &&SnapshotRef)| {
        (*place < too_many || kept.at < oldest) && !stays(kept)
    };
    kept.iter().enumerate().filter(is_gone).map(|(_, kept)| *kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 100 * DAY;

    fn kept(number: u64, run: Option<&str>, days_ago: i64) -> SnapshotRef {
        SnapshotRef {
            number,
            reference: format!("refs/{number}"),
            kind: if run.is_some() { SnapshotKind::Snapshot } else { SnapshotKind::Checkpoint },
            at: NOW - days_ago * DAY,
            subject: String::new(),
            run: run.map(str::to_owned),
            backlog: None,
            work_tree: None,
            story: None,
            iteration: None,
            commit: String::new(),
        }
    }

    #[test]
    fn what_is_old_or_too_much_goes_but_never_the_last_two_runs() {
        let (a, b, c) = (Some("a"), Some("b"), Some("c"));
        let all = [kept(1, a, 50), kept(2, None, 40), kept(3, a, 9), kept(4, b, 40), kept(5, c, 1)];
        let all: Vec<&SnapshotRef> = all.iter().collect();
        let keeping = |count, days| Keeping { count, days };
        for (case, keeping, needed, gone) in [
            ("nothing is limited", keeping(None, None), None, vec![]),
            ("by age", keeping(None, Some(30)), None, vec![1, 2]),
            ("by count", keeping(Some(3), None), None, vec![1, 2]),
            ("by either", keeping(Some(4), Some(30)), None, vec![1, 2]),
            ("all but the last two runs", keeping(Some(0), Some(0)), None, vec![1, 2, 3]),
            ("what is needed stays", keeping(Some(0), None), Some("refs/1"), vec![2, 3]),
            ("room enough", keeping(Some(5), Some(51)), None, vec![]),
        ] {
            let needed = needed.into_iter().map(str::to_owned).collect();
            let found: Vec<u64> =
                superfluous(&all, keeping, &needed, NOW).iter().map(|kept| kept.number).collect();
            assert_eq!(found, gone, "{case}");
        }
    }

    #[test]
    fn even_the_last_run_has_a_bound() {
        let all: Vec<SnapshotRef> = (0..1500).map(|number| kept(number, Some("a"), 1)).collect();
        let all: Vec<&SnapshotRef> = all.iter().collect();
        let keeping = Keeping { count: Some(10), days: None };
        let gone = superfluous(&all, keeping, &BTreeSet::new(), NOW);
        assert_eq!((gone.len(), gone.last().map(|kept| kept.number)), (500, Some(499)));
    }
}
