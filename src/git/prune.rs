//! Letting go of what was kept long ago.

use std::collections::BTreeSet;

use super::WorkTree;
use super::error::GitError;
use super::keep::Kind;
use super::kept::Kept;

/// What was kept by the runs before is never let go of.
const RUNS: usize = 2;
const DAY: i64 = 24 * 60 * 60;

/// How much is kept; None: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    pub count: Option<u32>,
    pub days: Option<u32>,
}

impl WorkTree {
    /// Deletes the refs of what is too old or too much, as far as this run's backlog and work
    /// tree made it or nobody did; how many. `needed` names refs that stay in any case, `now` is
    /// in seconds since the Unix epoch.
    pub fn prune(
        &self,
        keeping: Keeping,
        needed: &BTreeSet<String>,
        now: i64,
    ) -> Result<usize, GitError> {
        self.let_stashes_go()?;
        let kept = self.kept()?;
        let is_ours = |kept: &&Kept| kept.kind == Kind::Checkpoint || self.is_of_this_backlog(kept);
        let ours: Vec<&Kept> = kept.iter().filter(is_ours).collect();
        let gone = superfluous(&ours, keeping, needed, now);
        Ok(gone.into_iter().filter(|kept| self.let_go(kept)).count())
    }

    /// Somebody may have put something else there meanwhile. What cannot be deleted now can be
    /// deleted the next time.
    fn let_go(&self, kept: &Kept) -> bool {
        let found = self.repo.find_reference(&kept.reference);
        let same = found.ok().filter(|found| found.target() == Some(kept.commit));
        same.is_some_and(|found| self.delete_ref(found).is_ok())
    }
}

/// `kept` is sorted, oldest first.
fn superfluous<'a>(
    kept: &[&'a Kept],
    keeping: Keeping,
    needed: &BTreeSet<String>,
    now: i64,
) -> Vec<&'a Kept> {
    let mut runs: Vec<&str> = Vec::new();
    for run in kept.iter().rev().filter_map(|kept| kept.run.as_deref()) {
        if runs.len() < RUNS && !runs.contains(&run) {
            runs.push(run);
        }
    }
    let stays = |kept: &Kept| {
        let recent = kept.run.as_deref().is_some_and(|run| runs.contains(&run));
        recent || needed.contains(&kept.reference)
    };
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
    use git2::Oid;

    use super::*;

    const NOW: i64 = 100 * DAY;

    fn kept(number: u64, run: Option<&str>, days_ago: i64) -> Kept {
        Kept {
            number,
            reference: format!("refs/{number}"),
            kind: if run.is_some() { Kind::Snapshot } else { Kind::Checkpoint },
            at: NOW - days_ago * DAY,
            subject: String::new(),
            run: run.map(str::to_owned),
            backlog: None,
            work_tree: None,
            story: None,
            iteration: None,
            commit: Oid::ZERO_SHA1,
        }
    }

    #[test]
    fn what_is_old_or_too_much_goes_but_never_the_last_two_runs() {
        let (a, b, c) = (Some("a"), Some("b"), Some("c"));
        let all = [kept(1, a, 50), kept(2, None, 40), kept(3, a, 9), kept(4, b, 40), kept(5, c, 1)];
        let all: Vec<&Kept> = all.iter().collect();
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
}
