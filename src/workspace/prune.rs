//! Deletes old snapshots.

use std::collections::{BTreeSet, HashSet};

use super::WorkTree;
use super::error::GitError;
use super::kept::{FOLDERS, SnapshotKind, SnapshotRef};

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
    pub fn prune(
        &self,
        keeping: Keeping,
        needed: &BTreeSet<String>,
        now: i64,
    ) -> Result<usize, GitError> {
        self.let_stashes_go()?;
        let kept = self.kept()?;
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
            self.rewrite_catalog(
                &kept.iter().filter(|kept| is_left(kept)).cloned().collect::<Vec<_>>(),
            );
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
    let most =
        keeping.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let too_many = kept.len().saturating_sub(most);
    let oldest = keeping.days.map_or(i64::MIN, |days| now.saturating_sub(i64::from(days) * DAY));
    let candidates = kept.iter().enumerate();
    candidates
        .filter(|(place, kept)| (*place < too_many || kept.at < oldest) && !stays(kept))
        .map(|(_, kept)| *kept)
        .collect()
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
