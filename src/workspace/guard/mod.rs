//! The guard: holds what untrusted code must not change, checks it afterwards and repairs it.
//!
//! Parts are checked in a fixed order, each after the earlier ones are repaired: git's
//! configuration affects how everything else is read, and on another branch the user's files cannot
//! be compared. The caller records a violation before it repairs it, so that an interrupted repair
//! is repeated.

mod beside;
mod changes;
mod configured;
mod earlier;
mod files;
mod heads;
mod held;
mod ignored;
mod ignored_store;
mod ignored_walk;
mod index;
mod look;
mod modules;
mod own_refs;
mod private;
mod put_back;
mod ref_repair;
mod ref_store;
mod refs;
mod stashes;
mod unrecorded;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::{Base, HeldKind, Violation};
use crate::text::signals::ticks_task_complete;

use super::branch::BranchState;
use super::{Result, WorkTree};

pub(super) use self::held::HeldFiles;
use self::held::HeldObjects;
use self::ignored::HeldIgnored;
use self::index::IndexDamage;
use self::ref_store::HeldRefs;

pub(super) use beside::Beside;
pub use files::Losses;
pub use heads::mend_heads;
pub use held::HeldPlace;
pub(super) use ignored_store::IgnoredCache;
pub(super) use ignored_walk::is_of_tools;
pub(super) use own_refs::OwnRefs;
pub use stashes::Stash;
pub use writes::{MayStay, Writes};

/// The folder for versions of git's setup from before the next process knows what ran.
const INTERRUPTED: &str = "interrupted";

/// What is guarded against.
#[derive(Clone, Debug)]
pub struct Guarded {
    /// A name for what runs: the folder for its versions of held files.
    pub ran: String,
    /// Where the story began.
    pub base: Base,
    /// The work tree right before, and the ref that it is kept at.
    pub before: Base,
    pub snapshot: Option<String>,
}

/// One part of what is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardPart {
    Locks,
    Held(HeldKind),
    Stashes,
    Refs,
    Index,
    Branch,
    Private,
    Ignored,
    UserFiles,
}

impl GuardPart {
    const ALL: [Self; 13] = [
        Self::Locks,
        Self::Held(HeldKind::GitSetup),
        Self::Held(HeldKind::Instructions),
        Self::Held(HeldKind::Settings),
        Self::Held(HeldKind::AgentSettings),
        Self::Held(HeldKind::GateScripts),
        Self::Stashes,
        Self::Refs,
        Self::Index,
        Self::Branch,
        Self::Private,
        Self::Ignored,
        Self::UserFiles,
    ];

    /// In the order of the checks.
    pub fn after_attempt() -> &'static [Self] {
        &Self::ALL
    }

    /// What gates wrote to the work tree is no part of this: some of it may stay.
    pub fn after_gates() -> &'static [Self] {
        Self::ALL.split_last().map(|(_, parts)| parts).unwrap_or_default()
    }

    /// The files that only the human changes.
    pub fn held() -> &'static [Self] {
        Self::ALL.get(1..6).unwrap_or_default()
    }

    /// After a crash, before any of these files is used. The settings are compared on their own.
    pub fn held_after_crash() -> &'static [Self] {
        &[
            Self::Held(HeldKind::GitSetup),
            Self::Held(HeldKind::Instructions),
            Self::Held(HeldKind::AgentSettings),
            Self::Held(HeldKind::GateScripts),
            Self::Stashes,
            Self::Refs,
            Self::Private,
            Self::Ignored,
        ]
    }

    /// After a crash, once the held files are back: other changes may be the human's.
    pub fn after_crash() -> &'static [Self] {
        &[Self::Index, Self::UserFiles]
    }
}

#[derive(Debug)]
pub struct Guard {
    guarded: Guarded,
    /// Empty if the earlier files are unknown.
    held: HeldFiles,
    /// The hash of the held files as they are stored.
    stored: Option<String>,
    /// None if the earlier stashes are unknown.
    stashes: Option<Vec<Stash>>,
    /// None if the earlier refs are unknown.
    refs: Option<HeldRefs>,
    /// None if the earlier files are unknown.
    ignored: Option<Arc<HeldIgnored>>,
}

impl Guard {
    /// Call before anything untrusted starts. Stores on disk what a driver needs after a crash.
    pub fn arm(tree: &WorkTree, guarded: Guarded, places: &[HeldPlace]) -> Result<Self> {
        let stashes = tree.hold_stashes()?;
        let scripts = tree.gate_scripts.borrow();
        let script = |path: &PathBuf| HeldPlace { kind: HeldKind::GateScripts, path: path.clone() };
        let places = places.iter().cloned().chain(scripts.iter().map(script));
        let named = tree.configured_files()?.into_iter();
        let places = tree.git_setup().into_iter().chain(named).chain(places);
        let mut held = HeldFiles::hold(tree.root(), places.collect())?;
        let refs = tree.hold_refs()?;
        let ignored = tree.hold_ignored()?;
        let index = tree.hold_index()?;
        held.objects = HeldObjects {
            index,
            head: tree.held_head_now()?,
            refs: Some(refs.commit.to_string()),
            ignored: Some(ignored.hash.clone()),
            beside: Some(tree.held_beside()),
            stashes: stashes.iter().map(Stash::stored).collect(),
            own_refs: tree.hold_own_refs(&refs.refs),
        };
        tree.hold_objects()?;
        let stored = tree.store_held(&held)?;
        tree.begin_attempt()?;
        let (stashes, refs, ignored) = (Some(stashes), Some(refs), Some(ignored));
        Ok(Self { guarded, held, stored, stashes, refs, ignored })
    }

    /// For something whose driver died. `stored`: the hash of the held files then.
    pub fn recovered(tree: &WorkTree, guarded: Guarded, stored: Option<&str>) -> Self {
        // Without them the checks fail, and say so.
        let _ = tree.return_objects();
        let held = stored.and_then(|hash| tree.stored_held(hash));
        let stashes = held.as_ref().map(|held| &held.objects.stashes);
        let stashes = stashes.map(|all| all.iter().filter_map(Stash::from_stored).collect());
        let held = held.unwrap_or_default();
        let refs = held.objects.refs.as_deref().and_then(|id| tree.stored_refs(id));
        let ignored = held.objects.ignored.as_deref();
        let ignored = ignored.and_then(|hash| tree.stored_ignored(hash));
        tree.know_own_refs(&held.objects.own_refs);
        tree.check_held_index(held.objects.index.as_deref());
        if let Some(beside) = &held.objects.beside {
            tree.take_beside(beside);
        }
        let stored = stored.map(ToOwned::to_owned);
        Self { guarded, held, stored, stashes, refs, ignored }
    }

    /// For the held files as the last guard left them. None: there was none in this process.
    pub fn of_last_look(tree: &WorkTree, ran: &str) -> Option<Self> {
        let held = tree.last_look.borrow().clone()?;
        let (stashes, ran) = (None, ran.to_owned());
        let none = Base { commit: None, tree: String::new() };
        let guarded = Guarded { ran, base: none.clone(), before: none, snapshot: None };
        Some(Self { guarded, held, stored: None, stashes, refs: None, ignored: None })
    }

    /// Puts git's setup back after whatever was guarded was interrupted. Call before anything else:
    /// the setup says where the work tree is and what programs git runs. Whoever could change what is
    /// held could change the setup too, so the journal is not needed.
    pub fn restore_setup(tree: &WorkTree) -> Result<Option<Violation>> {
        let Some(held) = tree.unconfirmed_held() else { return Ok(None) };
        if let Some(beside) = &held.objects.beside {
            tree.take_beside(beside);
        }
        let none = Base { commit: None, tree: String::new() };
        let ran = INTERRUPTED.to_owned();
        let guarded = Guarded { ran, base: none.clone(), before: none, snapshot: None };
        let guard = Self { guarded, held, stored: None, stashes: None, refs: None, ignored: None };
        let violation = guard.check(tree, GuardPart::Held(HeldKind::GitSetup))?;
        if let Some(violation) = &violation {
            guard.repair(tree, violation)?;
        }
        Ok(violation)
    }

    /// By the note of it: something untrusted was under way when its driver died.
    pub fn was_interrupted(tree: &WorkTree) -> bool {
        tree.was_interrupted()
    }

    /// Puts the index back if something untrusted left none that can be used. Call before anything
    /// reads it.
    pub fn restore_index(tree: &WorkTree) -> Result<Option<Violation>> {
        if !tree.index_is_unusable() {
            return Ok(None);
        }
        let began = tree.head_at_attempt();
        let folder = tree.changed_by(INTERRUPTED);
        tree.repair_index(IndexDamage::Whole, began.as_deref(), &folder)?;
        Ok(Some(Violation::Index { paths: Vec::new() }))
    }

    /// The hash of the held files, for the journal.
    pub fn stored(&self) -> Option<&str> {
        self.stored.as_deref()
    }

    /// Call before the checks, which read what may have been deleted.
    pub fn return_objects(&self, tree: &WorkTree) -> Result<()> {
        tree.return_objects()
    }

    /// The violation of one part, if any.
    pub fn check(&self, tree: &WorkTree, part: GuardPart) -> Result<Option<Violation>> {
        Ok(match part {
            GuardPart::Locks => {
                some(tree.locks_of_attempt()?, |locks| Violation::Locks { paths: listed(&locks) })
            }
            GuardPart::Held(whose) => self.changed_files(tree, whose)?,
            GuardPart::Stashes => {
                let Some(before) = &self.stashes else { return Ok(None) };
                let (dropped, new) = tree.other_stashes(before)?;
                let names = |stashes: Vec<Stash>| -> Vec<String> {
                    stashes.into_iter().map(|stash| stash.message).collect()
                };
                let is_other = !dropped.is_empty() || !new.is_empty();
                let (messages, new) = (names(dropped), names(new));
                is_other.then_some(Violation::Stashes { messages, new })
            }
            GuardPart::Refs => {
                let held = self.refs.as_ref();
                held.and_then(|held| tree.refs_violation(held, &self.guarded.ran))
            }
            GuardPart::Index => self.index_damage(tree)?.map(|damage| {
                let paths: Vec<PathBuf> = match damage {
                    IndexDamage::Whole => Vec::new(),
                    IndexDamage::Entries(entries) => entries.into_iter().map(|one| one.0).collect(),
                };
                Violation::Index { paths: listed(&paths) }
            }),
            GuardPart::Branch => match tree.branch_state(&self.guarded.base)? {
                BranchState::OnBranch => None,
                BranchState::Ahead { on } => Some(Violation::OtherBranch { on }),
                BranchState::Lost(how) => Some(Violation::BranchLost { how }),
            },
            GuardPart::Private => {
                let folder = tree.changed_by(&self.guarded.ran);
                // Gates write more of what git ignores.
                let names = self.guarded.snapshot.is_some();
                tree.private_violation(self.ignored.as_deref(), self.states(), &folder, names)?
            }
            GuardPart::Ignored => match &self.ignored {
                Some(held) => tree.ignored_violation(held),
                None => None,
            },
            GuardPart::UserFiles => {
                let losses = self.losses(tree)?;
                let (lost, blocked) = (listed(&losses.lost), listed(&losses.blocked));
                let (changed, kept) = (listed(&losses.changed), self.guarded.snapshot.clone());
                let violation = Violation::UserFiles { lost, blocked, changed, kept };
                (losses != Losses::default()).then_some(violation)
            }
        })
    }

    /// Repairs the violated part. A lost branch and marks are not repaired here.
    pub fn repair(&self, tree: &WorkTree, violation: &Violation) -> Result<()> {
        match violation {
            Violation::Locks { .. } => tree.remove_locks_of_attempt(),
            Violation::Held { whose, .. } => {
                let paths = self.held.differences(&self.held.again(tree.root(), *whose)?, *whose);
                tree.put_back(&self.held, &paths, &tree.changed_by(&self.guarded.ran))
            }
            Violation::Stashes { .. } => {
                tree.repair_stashes(self.stashes.as_deref().unwrap_or_default()).map(drop)
            }
            Violation::Refs { .. } => match &self.refs {
                Some(held) => tree.repair_refs(held, &self.guarded.ran),
                None => Ok(()),
            },
            Violation::Index { .. } => match self.index_damage(tree)? {
                Some(damage) => {
                    let folder = tree.changed_by(&self.guarded.ran);
                    tree.repair_index(damage, self.guarded.before.commit.as_deref(), &folder)
                }
                None => Ok(()),
            },
            Violation::PrivateFiles { .. } => {
                let folder = tree.changed_by(&self.guarded.ran);
                tree.repair_private(self.ignored.as_deref(), self.states(), &folder)
            }
            Violation::IgnoredFiles { .. } => match &self.ignored {
                Some(held) => tree.repair_ignored(held, &self.guarded.ran),
                None => Ok(()),
            },
            Violation::OtherBranch { .. } => tree.reattach(),
            Violation::UserFiles { .. } => {
                tree.repair_user_files(&self.guarded.before, &self.losses(tree)?.lost)
            }
            Violation::BranchLost { .. } | Violation::Written { .. } => Ok(()),
        }
    }

    /// Call after all checks.
    pub fn disarm(&self, tree: &WorkTree) -> Result<()> {
        tree.last_look.replace(Some(self.held.clone()));
        tree.write_beside()?;
        tree.end_attempt()
    }

    fn states(&self) -> (&Base, &Base) {
        (&self.guarded.base, &self.guarded.before)
    }

    fn index_damage(&self, tree: &WorkTree) -> Result<Option<IndexDamage>> {
        if !tree.index_is_unusable() {
            tree.correct_index()?;
        }
        tree.index_damage(&self.guarded.base, self.guarded.before.commit.as_deref())
    }

    fn losses(&self, tree: &WorkTree) -> Result<Losses> {
        tree.losses(&self.guarded.base, &self.guarded.before)
    }

    fn changed_files(&self, tree: &WorkTree, whose: HeldKind) -> Result<Option<Violation>> {
        let now = self.held.again(tree.root(), whose)?;
        let changed = self.held.differences(&now, whose);
        let ticks = |path: &PathBuf| ticks_task_complete(&self.held.text(path), &now.text(path));
        let claims = whose == HeldKind::Instructions && changed.iter().any(ticks);
        let kept = tree.changed_by(&self.guarded.ran);
        Ok(some(changed, |changed| {
            let paths: Vec<PathBuf> = changed.iter().map(|path| tree.shown(path)).collect();
            let kept = below(tree.root(), &kept);
            Violation::Held { whose, paths: listed(&paths), kept, claims }
        }))
    }
}

fn some<T>(found: Vec<T>, violation: impl FnOnce(Vec<T>) -> Violation) -> Option<Violation> {
    if found.is_empty() { None } else { Some(violation(found)) }
}

fn below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn listed(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}
