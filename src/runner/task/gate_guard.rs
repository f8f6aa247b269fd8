//! The guard round gates: what they change is put back, what they may change is the story's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::decide::lock_files::is_lock_file;
use crate::model::{Base, BranchLoss, Event, Gate, GatesStarted, Violation};
use crate::runner::config::RunConfig;
use crate::runner::error::Result;
use crate::runner::task::inspect::{Ran, disarm, repair_armed, repair_since};
use crate::runner::task::{EventSink, tell_moved};
use crate::workspace::{Guard, GuardPart, Guarded, HeldPlace, MayStay, WorkTree, Writes};

/// Something may write without end.
const MOST_LOOKS: u32 = 4;

#[derive(Clone)]
pub struct GateGuard {
    pub ran: Ran,
    /// The name of the folder for the held files that they change.
    pub folder: String,
    /// Something that an agent or a gate started may run since the last look.
    pub is_watched: bool,
    /// The story's, if they check a claim.
    pub base: Option<Base>,
    /// Files that they wrote, as told before, with the ref that has what they wrote.
    pub told: BTreeMap<String, String>,
    pub held: Vec<HeldPlace>,
    /// Patterns of files that they may change.
    pub keep: Vec<String>,
    /// All gates of the run, and patterns of protected files: a gate that may change files may change
    /// neither these nor what gates run.
    pub all: Vec<Gate>,
    pub protect: Vec<String>,
    /// The backlog's path in the work tree.
    pub backlog: Option<PathBuf>,
}

/// Gates run, or ran when their driver died.
#[derive(Clone)]
pub struct ArmedGates {
    guard: Arc<Guard>,
    /// The branch tip and the work tree that the next one begins with.
    pub before: Base,
    /// Files that were too large to be read, and other repositories. They are the user's, or the
    /// attempt's.
    unread: Vec<PathBuf>,
}

impl GateGuard {
    /// Call before they start. What is recorded is on the disk then.
    pub fn arm(&self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<ArmedGates> {
        if self.is_watched {
            repair_since(tree, &self.ran, &self.folder, log)?;
        }
        if self.base.is_none() {
            tree.note_beside()?;
        }
        let (before, unread) = tree.base_and_unread()?;
        tree.hold_before_gates(&before)?;
        let guard = Guard::arm(tree, self.guarded(&before), &self.held)?;
        log.record(Event::GatesStarted(Box::new(GatesStarted {
            after: self.ran.what,
            story: self.ran.story.clone(),
            folder: self.folder.clone(),
            before: before.clone(),
            held: guard.stored().map(ToOwned::to_owned),
        })))?;
        Ok(ArmedGates { guard: Arc::new(guard), before, unread })
    }

    /// What no commit would have is away while they run. Returns what is.
    pub fn hide(
        &self,
        tree: &WorkTree,
        base: &Base,
        config: &RunConfig,
        log: &mut dyn EventSink,
    ) -> Result<Vec<PathBuf>> {
        let unseen = tree.find_unseen(base, &config.settings.staging)?;
        tell_moved(tree, log);
        if unseen.is_empty() {
            return Ok(unseen);
        }
        log.record(Event::FilesHidden { list: Some(tree.note_unseen(&unseen)?) })?;
        Ok(tree.hide_unseen(unseen))
    }

    pub fn show(&self, tree: &WorkTree, hidden: &[PathBuf], log: &mut dyn EventSink) -> Result<()> {
        tree.show_unseen(hidden)?;
        tell_moved(tree, log);
        if hidden.is_empty() { Ok(()) } else { log.record(Event::FilesHidden { list: None }) }
    }

    /// With what was hidden, something of a gate's may have come.
    pub fn repair_held(
        &self,
        tree: &WorkTree,
        gates: &ArmedGates,
        log: &mut dyn EventSink,
    ) -> Result<()> {
        repair_armed(tree, &self.ran, &gates.guard, GuardPart::held(), log).map(drop)
    }

    fn guarded(&self, before: &Base) -> Guarded {
        let (ran, base, before) = (self.folder.clone(), before.clone(), before.clone());
        Guarded { ran, base, before, snapshot: None }
    }

    /// The driver of these gates died. Git's setup is back already.
    pub fn recovered(&self, tree: &WorkTree, start: &GatesStarted) -> ArmedGates {
        let guarded = self.guarded(&start.before);
        let guard = Guard::recovered(tree, guarded, start.held.as_deref());
        // Nobody knows whose they are.
        let unread = tree.base_and_unread().map(|(_, unread)| unread).unwrap_or_default();
        ArmedGates { guard: Arc::new(guard), before: start.before.clone(), unread }
    }

    /// Call after each gate, before anything else reads the tree: git's setup decides how it is read.
    /// The branch returns if only gates moved it. Returns files of the story that left with it.
    pub fn repair(
        &self,
        tree: &WorkTree,
        gates: &ArmedGates,
        may_change: bool,
        log: &mut dyn EventSink,
    ) -> Result<Vec<PathBuf>> {
        let parts = GuardPart::after_gates();
        let repaired = repair_armed(tree, &self.ran, &gates.guard, parts, log)?;
        let how = match repaired.branch_loss {
            None if tree.gates_committed(&gates.before)? => BranchLoss::Rewritten,
            None => return Ok(Vec::new()),
            Some(how) => how,
        };
        let was_left = repaired.branch_loss.is_some();
        let undone = if may_change && !was_left {
            let files = tree.base()?.tree;
            self.return_to(tree, &Base { tree: files, ..gates.before.clone() }, how, log)?;
            Vec::new()
        } else {
            let undone = self.undo(tree, gates, log)?;
            self.return_to(tree, &gates.before, how, log)?;
            undone
        };
        if was_left {
            // It ended the first check.
            repair_armed(tree, &self.ran, &gates.guard, &[GuardPart::Ignored], log)?;
        }
        Ok(undone)
    }

    fn return_to(
        &self,
        tree: &WorkTree,
        to: &Base,
        how: BranchLoss,
        log: &mut dyn EventSink,
    ) -> Result<()> {
        log.record(self.ran.repaired(Violation::BranchLost { how }))?;
        Ok(tree.return_to(to)?)
    }

    /// Puts back what a gate wrote, so that it does not do the story's work for the next one. Returns
    /// files of the story that it had reset or deleted.
    pub fn undo(
        &self,
        tree: &WorkTree,
        gates: &ArmedGates,
        log: &mut dyn EventSink,
    ) -> Result<Vec<PathBuf>> {
        let (mut undone, mut last) = (BTreeSet::new(), None);
        // With the ignore rules, files come to light that they hid.
        for _ in 0..MOST_LOOKS {
            let writes = self.forbidden_writes(tree, gates)?;
            if writes.is_empty() || last.as_ref() == Some(&writes) {
                break;
            }
            if let Some(base) = &self.base {
                undone.extend(tree.undone(base, &writes)?);
            }
            self.put_back(tree, gates, &writes, log)?;
            last = Some(writes);
        }
        Ok(undone.into_iter().collect())
    }

    /// The files are as they were at the story's base. Returns what gates begin with there, and what
    /// to return to.
    pub fn to_base(&self, tree: &WorkTree, gates: &ArmedGates) -> Result<(ArmedGates, Base)> {
        let now = tree.base()?;
        tree.hold_during_gates(&now)?;
        if let Some(base) = &self.base {
            self.return_files(tree, gates, base)?;
        }
        Ok((ArmedGates { before: tree.base()?, ..gates.clone() }, now))
    }

    /// Without a word: what a gate wrote was told.
    pub fn return_files(&self, tree: &WorkTree, gates: &ArmedGates, to: &Base) -> Result<()> {
        let writes = self.writes_since(tree, gates, to)?;
        tree.put_writes_back(to, &writes)?;
        Ok(())
    }

    /// Call when no gate runs any more, and each was looked at.
    pub fn disarm(&self, tree: &WorkTree, gates: &ArmedGates, log: &mut dyn EventSink) {
        disarm(tree, &gates.guard, log);
    }

    /// What a gate may not write. The backlog is compared on its own.
    pub fn forbidden_writes(&self, tree: &WorkTree, gates: &ArmedGates) -> Result<Writes> {
        let writes = self.writes_since(tree, gates, &gates.before)?;
        let Some(base) = self.base.as_ref().filter(|_| !writes.is_empty()) else {
            // Without a claim there is no story whose work it could be.
            return Ok(writes);
        };
        let users = tree.users_files(base)?;
        let may_stay = MayStay::new(&self.keep, is_lock_file, users)?;
        Ok(writes.without_allowed(&may_stay))
    }

    fn writes_since(&self, tree: &WorkTree, gates: &ArmedGates, state: &Base) -> Result<Writes> {
        let is_out =
            |path: &Path| self.is_backlog(path) || gates.unread.iter().any(|unread| unread == path);
        Ok(tree.writes_since(state)?.without(is_out))
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
            false => Some(tree.keep_written()?),
        };
        let blocked: Vec<String> =
            tree.put_writes_back(&gates.before, writes)?.into_iter().map(shown).collect();
        tell_moved(tree, log);
        let is_new = |path: &String| !self.told.contains_key(path);
        if paths.iter().any(is_new) {
            let paths =
                paths.into_iter().filter(|path| is_new(path) && !blocked.contains(path)).collect();
            log.record(self.ran.repaired(Violation::Written { paths, blocked, kept }))?;
        }
        Ok(())
    }

    /// A gate that may change files passed: what it changed is the story's, except the user's files
    /// and what decides about the claim.
    /// If it undid work, nothing that it wrote is accepted, and the files are returned.
    pub fn accept(
        &self,
        tree: &WorkTree,
        gates: &ArmedGates,
        log: &mut dyn EventSink,
    ) -> Result<(ArmedGates, Vec<PathBuf>)> {
        let undone = match &self.base {
            Some(base) => tree.undone(base, &self.forbidden_writes(tree, gates)?)?,
            None => Vec::new(),
        };
        let Some(base) = self.base.as_ref().filter(|_| undone.is_empty()) else {
            self.undo(tree, gates, log)?;
            return Ok((gates.clone(), undone));
        };
        let users = tree.users_files(base)?;
        let writes = self.writes_since(tree, gates, &gates.before)?;
        let deciding = tree.changed_files(&gates.before, &self.all, &self.protect)?;
        let is_forbidden = |path: &Path| {
            users.iter().any(|users| users == path) || deciding.iter().any(|one| one.path == path)
        };
        let forbidden = writes.without(|path| !is_forbidden(path));
        self.put_back(tree, gates, &forbidden, log)?;
        let before = Base { tree: tree.base()?.tree, ..gates.before.clone() };
        tree.hold_before_gates(&before)?;
        Ok((ArmedGates { before, ..gates.clone() }, Vec::new()))
    }
}
