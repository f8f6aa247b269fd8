//! The guard round gates: what they change is put back, what they may change is the story's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::decide::lock_files::is_lock_file;
use crate::model::{Base, BranchLoss, Event, GatesStarted, Violation};
use crate::runner::error::Result;
use crate::runner::task::EventSink;
use crate::runner::task::inspect::{Ran, repair};
use crate::workspace::{Guard, GuardPart, Guarded, HeldPlace, MayStay, WorkTree, Writes};

#[derive(Clone)]
pub struct GateGuard {
    pub ran: Ran,
    /// The name of the folder for the held files that they change.
    pub folder: String,
    /// The story's, if they check a claim.
    pub base: Option<Base>,
    /// Files that they wrote, as told before, with the ref that has what they wrote.
    pub told: BTreeMap<String, String>,
    pub held: Vec<HeldPlace>,
    /// Patterns of files that they may change.
    pub keep: Vec<String>,
    /// The backlog's path in the work tree.
    pub backlog: Option<PathBuf>,
}

/// Gates run, or ran when their driver died.
#[derive(Clone)]
pub struct ArmedGates {
    guard: Arc<Guard>,
    /// The branch tip and the work tree that they began with.
    before: Base,
}

impl GateGuard {
    /// Call before they start. What is recorded is on the disk then.
    pub fn arm(&self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<ArmedGates> {
        let before = tree.base()?;
        tree.hold_before_gates(&before)?;
        let guard = Guard::arm(tree, self.guarded(&before), &self.held)?;
        log.record(Event::GatesStarted(Box::new(GatesStarted {
            after: self.ran.what,
            story: self.ran.story.clone(),
            folder: self.folder.clone(),
            before: before.clone(),
            held: guard.stored().map(ToOwned::to_owned),
        })))?;
        Ok(ArmedGates { guard: Arc::new(guard), before })
    }

    fn guarded(&self, before: &Base) -> Guarded {
        let (ran, base, before) = (self.folder.clone(), before.clone(), before.clone());
        Guarded { ran, base, before, snapshot: None }
    }

    /// The driver of these gates died. Git's setup is back already.
    pub fn recovered(&self, tree: &WorkTree, start: &GatesStarted) -> ArmedGates {
        let guarded = self.guarded(&start.before);
        let guard = Guard::recovered(tree, guarded, start.held.as_deref());
        ArmedGates { guard: Arc::new(guard), before: start.before.clone() }
    }

    /// Puts back what a gate wrote, so that it does not do the story's work for the next one. Held
    /// files are compared when all have ended.
    /// Returns files of the story that it had reset or deleted.
    pub fn undo(
        &self,
        tree: &WorkTree,
        gates: &ArmedGates,
        log: &mut dyn EventSink,
    ) -> Result<Vec<PathBuf>> {
        let is_held = |path: &Path| {
            let path = tree.root().join(path);
            self.held.iter().any(|place| path.starts_with(&place.path))
        };
        let writes = self.forbidden_writes(tree, gates)?.without(is_held);
        let undone = self.base.as_ref().map(|base| tree.undone(base, &writes)).transpose()?;
        self.put_back(tree, gates, &writes, log)?;
        Ok(undone.unwrap_or_default())
    }

    /// Call when no gate runs any more, however they ended.
    pub fn settle(
        &self,
        tree: &WorkTree,
        gates: &ArmedGates,
        parts: &[GuardPart],
        log: &mut dyn EventSink,
    ) -> Result<()> {
        let repaired = repair(tree, &self.ran, &gates.guard, parts, log)?;
        let committed = || tree.gates_committed(&gates.before);
        let how = match repaired.branch_loss {
            None if committed()? => Some(BranchLoss::Rewritten),
            loss => loss,
        };
        if let Some(how) = how {
            log.record(self.ran.repaired(Violation::BranchLost { how }))?;
            tree.return_to(&gates.before)?;
        }
        self.settle_writes(tree, gates, log)
    }

    /// Alone after a crash.
    pub fn settle_writes(
        &self,
        tree: &WorkTree,
        gates: &ArmedGates,
        log: &mut dyn EventSink,
    ) -> Result<()> {
        let writes = self.forbidden_writes(tree, gates)?;
        self.put_back(tree, gates, &writes, log)
    }

    pub fn forbidden_writes(&self, tree: &WorkTree, gates: &ArmedGates) -> Result<Writes> {
        self.forbidden(tree.writes_since(&gates.before)?)
    }

    /// What a gate may not write. The backlog is compared on its own.
    fn forbidden(&self, writes: Writes) -> Result<Writes> {
        let writes = writes.without(|path| self.is_backlog(path));
        // Without a claim there is no story whose work it could be.
        if self.base.is_none() {
            return Ok(writes);
        }
        let may_stay = MayStay::new(&self.keep, is_lock_file)?;
        Ok(writes.without_allowed(&may_stay))
    }

    fn is_backlog(&self, path: &Path) -> bool {
        self.backlog.as_deref() == Some(path)
    }

    fn put_back(
        &self,
        tree: &WorkTree,
        gates: &ArmedGates,
        writes: &Writes,
        log: &mut dyn EventSink,
    ) -> Result<()> {
        if writes.is_empty() {
            return Ok(());
        }
        let shown = |path: PathBuf| path.to_string_lossy().into_owned();
        let paths: Vec<String> = writes.paths().into_iter().map(shown).collect();
        // The human may have written it, at the same moment: each version is kept.
        let kept = match tree.are_kept(writes, |path| self.told.get(&*path.to_string_lossy()))? {
            true => None,
            false => Some(tree.keep_written(None)?),
        };
        let blocked: Vec<String> =
            tree.put_writes_back(&gates.before, writes)?.into_iter().map(shown).collect();
        let is_new = |path: &String| !self.told.contains_key(path);
        if paths.iter().any(is_new) {
            let paths =
                paths.into_iter().filter(|path| is_new(path) && !blocked.contains(path)).collect();
            log.record(self.ran.repaired(Violation::Written { paths, blocked, kept }))?;
        }
        Ok(())
    }

    /// A gate that may change files ended: what it changed is the story's, except the user's files.
    /// Returns the story's files if it undid all of its work, which is then not accepted.
    pub fn accept(
        &self,
        tree: &WorkTree,
        gates: &ArmedGates,
        log: &mut dyn EventSink,
    ) -> Result<(ArmedGates, Vec<PathBuf>)> {
        let Some(base) = &self.base else { return Ok((gates.clone(), Vec::new())) };
        let writes = tree.writes_since(&gates.before)?;
        let undone = tree.undone(base, &writes)?;
        let left = tree.difference_since(base)?.paths;
        if !undone.is_empty() && left.iter().all(|path| self.is_backlog(path)) {
            return Ok((gates.clone(), undone));
        }
        if !undone.is_empty() {
            tree.keep_written(Some(&gates.before))?;
        }
        let users = tree.users_files(base)?;
        let of_user = writes.without(|path| !users.iter().any(|users| users == path));
        self.put_back(tree, gates, &of_user, log)?;
        let before = Base { tree: tree.base()?.tree, ..gates.before.clone() };
        tree.hold_before_gates(&before)?;
        Ok((ArmedGates { before, ..gates.clone() }, Vec::new()))
    }
}
