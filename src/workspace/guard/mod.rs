//! The guard: holds what an attempt must not change, checks it afterwards and repairs it.
//!
//! Parts are checked in a fixed order, each after the earlier ones are repaired: git's
//! configuration affects how everything else is read, and on another branch the user's files cannot
//! be compared. The caller records a violation before it repairs it, so that an interrupted repair
//! is repeated.

mod files;
mod repository;

use std::path::{Path, PathBuf};

use crate::model::{Base, StoryId, Violation};
use crate::text::signals::ticks_task_complete;

use self::files::Instructions;
use super::branch::BranchState;
use super::error::file_error;
use super::open::FileLocation;
use super::{Result, WorkTree};

pub use files::Losses;
pub use repository::{GitSetup, Stash};

/// The attempt that is guarded.
#[derive(Clone, Debug)]
pub struct GuardedAttempt {
    pub attempt: String,
    pub story: StoryId,
    pub iteration: u32,
    /// Where the story began.
    pub base: Base,
    /// The work tree right before the attempt, and the ref that it is kept at.
    pub before: Base,
    pub snapshot: Option<String>,
    /// The first number to try for `refs/ralph/attempts/<story>/`.
    pub number: u32,
    /// The file for the attempt's version of the instructions, if git does not track them.
    pub spare: PathBuf,
}

/// One part of what is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardPart {
    Locks,
    Setup,
    Stashes,
    Branch,
    UserFiles,
    Instructions,
}

impl GuardPart {
    const ALL: [Self; 6] = [
        Self::Locks,
        Self::Setup,
        Self::Stashes,
        Self::Branch,
        Self::UserFiles,
        Self::Instructions,
    ];

    /// In the order of the checks. An agent that ended by itself left no locks: locks are then of
    /// other processes.
    pub fn after_attempt(was_cut_short: bool) -> &'static [Self] {
        if was_cut_short { &Self::ALL } else { Self::ALL.get(1..).unwrap_or_default() }
    }

    /// After a crash, other changes may be the human's.
    pub fn after_crash() -> &'static [Self] {
        &[Self::Setup, Self::UserFiles]
    }
}

#[derive(Debug)]
pub struct Guard {
    attempt: GuardedAttempt,
    /// None if the earlier setup is unknown.
    setup: Option<GitSetup>,
    stashes: Vec<Stash>,
    instructions: Option<Instructions>,
}

impl Guard {
    /// Call before the agent starts. Stores on disk what a driver needs after a crash.
    pub fn arm(tree: &WorkTree, attempt: GuardedAttempt, file: Option<&Path>) -> Result<Self> {
        let stashes = tree.hold_stashes()?;
        let setup = Some(tree.hold_setup()?);
        tree.begin_attempt()?;
        let instructions = file.and_then(Instructions::hold);
        Ok(Self { attempt, setup, stashes, instructions })
    }

    /// For an attempt whose driver died.
    pub fn recovered(tree: &WorkTree, attempt: GuardedAttempt) -> Self {
        Self { attempt, setup: tree.held_setup(), stashes: Vec::new(), instructions: None }
    }

    /// The violation of one part, if any. Stores the attempt's version of the instructions.
    pub fn check(&self, tree: &WorkTree, held: GuardPart) -> Result<Option<Violation>> {
        Ok(match held {
            GuardPart::Locks => {
                some(tree.locks_of_attempt()?, |locks| Violation::Locks { paths: listed(&locks) })
            }
            GuardPart::Setup => some(self.changed_setup(tree)?, |names| {
                let kept = tree.changed_by(&self.attempt.attempt);
                Violation::Setup { names, kept: kept.to_string_lossy().into_owned() }
            }),
            GuardPart::Stashes => some(tree.dropped_stashes(&self.stashes)?, |gone| {
                let messages = gone.into_iter().map(|stash| stash.message).collect();
                Violation::Stashes { messages }
            }),
            GuardPart::Branch => match tree.branch_state(&self.attempt.base)? {
                BranchState::OnBranch => None,
                BranchState::Ahead { on } => Some(Violation::OtherBranch { on }),
                BranchState::Lost(how) => Some(Violation::BranchLost { how }),
            },
            GuardPart::UserFiles => {
                let Losses { lost, blocked } = self.losses(tree)?;
                let is_lost = !lost.is_empty() || !blocked.is_empty();
                let (lost, blocked) = (listed(&lost), listed(&blocked));
                let kept = self.attempt.snapshot.clone();
                is_lost.then_some(Violation::UserFiles { lost, blocked, kept })
            }
            GuardPart::Instructions => self.changed_instructions(tree)?,
        })
    }

    /// Repairs the violated part. A lost branch and marks are not repaired here.
    pub fn repair(&self, tree: &WorkTree, violation: &Violation) -> Result<()> {
        match violation {
            Violation::Locks { .. } => tree.remove_locks_of_attempt(),
            Violation::Setup { names, .. } => self
                .setup
                .as_ref()
                .map_or(Ok(()), |before| tree.repair_setup(before, names, &self.attempt.attempt)),
            Violation::Stashes { .. } => tree.repair_stashes(&self.stashes).map(drop),
            Violation::OtherBranch { .. } => tree.reattach(),
            Violation::UserFiles { .. } => {
                tree.repair_user_files(&self.attempt.before, &self.losses(tree)?.lost)
            }
            Violation::Instructions { .. } => {
                self.instructions.as_ref().map_or(Ok(()), |held| held.repair(tree))
            }
            Violation::BranchLost { .. } => Ok(()),
        }
    }

    /// Call after all checks.
    pub fn disarm(&self, tree: &WorkTree) -> Result<()> {
        tree.end_attempt(false).map(drop)
    }

    fn changed_setup(&self, tree: &WorkTree) -> Result<Vec<String>> {
        self.setup.as_ref().map_or(Ok(Vec::new()), |before| Ok(before.differences(&tree.setup()?)))
    }

    fn losses(&self, tree: &WorkTree) -> Result<Losses> {
        tree.losses(&self.attempt.base, &self.attempt.before)
    }

    fn changed_instructions(&self, tree: &WorkTree) -> Result<Option<Violation>> {
        let Some(held) = &self.instructions else { return Ok(None) };
        let Some(now) = held.changed() else { return Ok(None) };
        let claims = ticks_task_complete(&held.text(), &String::from_utf8_lossy(&now));
        let GuardedAttempt { story, iteration, base, number, spare, .. } = &self.attempt;
        let kept = if let Ok(FileLocation::Inside(_)) = tree.locate(held.path()) {
            let kept = tree.keep_attempt(story, *number, *iteration, base)?;
            kept.map(|(kept, _)| kept.reference)
        } else {
            tree.write_whole(spare, &now, 0o600).map_err(file_error("write", spare))?;
            Some(below(tree.root(), spare))
        };
        let path = below(tree.root(), held.path());
        Ok(Some(Violation::Instructions { path, kept, claims }))
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
