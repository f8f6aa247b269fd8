//! Bringing work that was set aside back into the tree.

use std::path::PathBuf;

use git2::{Commit, Index, IndexConflict, Oid, Tree};

use super::WorkTree;
use super::changes::{Change, between, path_of};
use super::error::{Doing, GitError};
use super::open::conflict_path;
use super::set_aside::{base_of, without};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BroughtBack {
    /// The work is in the tree, beside what changed meanwhile.
    Clean,
    /// Nothing was touched: these paths changed on both sides.
    Conflicts(Vec<String>),
}

impl WorkTree {
    /// Merges kept work into the files, not into index or HEAD. Files in
    /// `except` stay as they are. The ref stays too.
    pub fn bring_back(&self, reference: &str, except: &[PathBuf]) -> Result<BroughtBack, GitError> {
        let kept = self.kept_work(reference)?;
        let base = base_of(&kept)?.tree().doing("read what kept work is based on")?;
        let now = self.repo.find_tree(self.scan()?).doing("read the snapshot")?;
        let theirs = kept.tree().doing("read kept work")?;
        let merged = self.repo.merge_trees(&base, &now, &theirs, None).doing("merge kept work")?;
        match self.settle(merged, except)? {
            Err(paths) => Ok(BroughtBack::Conflicts(paths)),
            Ok(merged) => self.write_merged(&now, merged, except),
        }
    }

    fn kept_work(&self, reference: &str) -> Result<Commit<'_>, GitError> {
        let found = self.repo.find_reference(reference).and_then(|r| r.peel_to_commit());
        let kept = found.map_err(|_| GitError::NotSetAside(reference.to_owned()))?;
        let based = kept.parent_count() > 0;
        based.then_some(kept).ok_or_else(|| GitError::NotSetAside(reference.to_owned()))
    }

    /// The merged tree, or the conflicts that are not about `except`.
    pub(super) fn settle(
        &self,
        mut merged: Index,
        except: &[PathBuf],
    ) -> Result<Result<Oid, Vec<String>>, GitError> {
        let conflicts = merged.conflicts().doing("read the conflicts")?;
        let conflicts = conflicts.collect::<Result<Vec<_>, _>>().doing("read the conflicts")?;
        let (harmless, real): (Vec<_>, Vec<_>) =
            conflicts.into_iter().partition(|conflict| concerns_only(conflict, except));
        if !real.is_empty() {
            return Ok(Err(real.iter().filter_map(conflict_path).collect()));
        }
        for conflict in harmless {
            keep_ours(&mut merged, conflict).doing("settle a conflict")?;
        }
        merged.write_tree_to(&self.repo).map(Ok).doing("write the merged tree")
    }

    fn write_merged(
        &self,
        now: &Tree<'_>,
        merged: Oid,
        except: &[PathBuf],
    ) -> Result<BroughtBack, GitError> {
        let merged = self.repo.find_tree(merged).doing("read the merged tree")?;
        let changes = without(&between(&self.repo, Some(now), Some(&merged))?, except);
        let in_the_way: Vec<_> = changes.iter().filter(|c| self.is_in_the_way(c)).collect();
        if !in_the_way.is_empty() {
            let paths = in_the_way.iter().map(|change| change.path.display().to_string());
            return Ok(BroughtBack::Conflicts(paths.collect()));
        }
        self.require_writable(&changes)?;
        self.write_files(&merged, &changes)?;
        Ok(BroughtBack::Clean)
    }

    /// An ignored file is in no snapshot: overwriting it would lose it.
    pub(super) fn is_in_the_way(&self, change: &Change) -> bool {
        let file = self.root.join(&change.path);
        let there = || file.symlink_metadata().is_ok_and(|found| !found.is_dir());
        change.old.is_none() && there()
    }
}

fn concerns_only(conflict: &IndexConflict, except: &[PathBuf]) -> bool {
    let sides = [&conflict.our, &conflict.their, &conflict.ancestor];
    sides.into_iter().flatten().all(|entry| except.contains(&path_of(&entry.path)))
}

fn keep_ours(merged: &mut Index, conflict: IndexConflict) -> Result<(), git2::Error> {
    let sides = [&conflict.our, &conflict.their, &conflict.ancestor];
    for entry in sides.into_iter().flatten() {
        // The second and third side of the same path find it settled.
        let _settled = merged.conflict_remove(&path_of(&entry.path));
    }
    let Some(mut ours) = conflict.our else {
        return Ok(());
    };
    ours.flags &= !0x3000;
    merged.add(&ours)
}
