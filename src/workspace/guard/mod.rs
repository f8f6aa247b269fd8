//! What an attempt must not change: held before it, compared after it, repaired.
//!
//! The parts are checked in a fixed order, and each only after the ones before it were repaired:
//! the repository's configuration decides how everything else is read, and what an agent did
//! elsewhere than on the branch says nothing about the user's files. Whoever repairs records the
//! violation first, so that a repair that was cut off is made again.

mod agent_locks;
mod instructions;
mod setup;
mod stashes;
mod user_files;

use std::path::{Path, PathBuf};

use crate::model::{Base, StoryId, Violation};
use crate::text::signals::ticks_task_complete;

use self::instructions::Instructions;
use super::WorkTree;
use super::branch::Whereabouts;
use super::error::{GitError, file_error};
use super::preflight::FileLocation;

pub use setup::GitSetup;
pub use stashes::Stash;
pub use user_files::Losses;

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
    /// From here on a number for `refs/ralph/attempts/<story>/` may be free.
    pub number: u32,
    /// Gets the attempt's version of the instructions if git does not know that file.
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
    /// In the order in which they are to be checked. An agent that ended by itself left no locks
    /// in the middle of its work: what is locked then is somebody else's.
    pub fn after_attempt(was_cut_short: bool) -> &'static [Self] {
        const ALL: [GuardPart; 6] = [
            GuardPart::Locks,
            GuardPart::Setup,
            GuardPart::Stashes,
            GuardPart::Branch,
            GuardPart::UserFiles,
            GuardPart::Instructions,
        ];
        if was_cut_short { &ALL } else { ALL.get(1..).unwrap_or_default() }
    }

    /// When the driver died with the attempt, nobody can tell whether the agent or the human
    /// changed the rest since.
    pub fn after_crash() -> &'static [Self] {
        &[Self::Setup, Self::UserFiles]
    }
}

#[derive(Debug)]
pub struct Guard {
    attempt: GuardedAttempt,
    /// None: nobody can tell how it was.
    setup: Option<GitSetup>,
    stashes: Vec<Stash>,
    instructions: Option<Instructions>,
}

impl Guard {
    /// Before the agent starts. What a driver needs that comes after a crash is on disk.
    pub fn arm(
        tree: &WorkTree,
        attempt: GuardedAttempt,
        instructions: Option<&Path>,
    ) -> Result<Self, GitError> {
        let stashes = tree.hold_stashes()?;
        let setup = Some(tree.hold_setup()?);
        tree.begin_attempt()?;
        let instructions = instructions.and_then(Instructions::hold);
        Ok(Self { attempt, setup, stashes, instructions })
    }

    /// For an attempt whose driver died.
    pub fn recovered(tree: &WorkTree, attempt: GuardedAttempt) -> Self {
        Self { attempt, setup: tree.held_setup(), stashes: Vec::new(), instructions: None }
    }

    /// What the attempt did to one part. What it made of the instructions is kept by this.
    pub fn check(&self, tree: &WorkTree, held: GuardPart) -> Result<Option<Violation>, GitError> {
        Ok(match held {
            GuardPart::Locks => {
                some(tree.locks_of_attempt()?, |locks| Violation::Locks { paths: listed(&locks) })
            }
            GuardPart::Setup => some(self.changed_setup(tree)?, |names| {
                let kept = tree.changed_setup(&self.attempt.attempt);
                Violation::Setup { names, kept: kept.to_string_lossy().into_owned() }
            }),
            GuardPart::Stashes => some(tree.dropped_stashes(&self.stashes)?, |gone| {
                let messages = gone.into_iter().map(|stash| stash.message).collect();
                Violation::Stashes { messages }
            }),
            GuardPart::Branch => match tree.whereabouts(&self.attempt.base)? {
                Whereabouts::Home => None,
                Whereabouts::Ahead { on } => Some(Violation::OtherBranch { on }),
                Whereabouts::Strayed(how) => Some(Violation::BranchLost { how }),
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

    /// Makes what was violated what it was before the attempt. A lost branch and marks are not
    /// repaired here.
    pub fn repair(&self, tree: &WorkTree, violation: &Violation) -> Result<(), GitError> {
        match violation {
            Violation::Locks { .. } => tree.remove_locks_of_attempt(),
            Violation::Setup { names, .. } => match &self.setup {
                Some(before) => tree.put_back_setup(before, names, &self.attempt.attempt),
                None => Ok(()),
            },
            Violation::Stashes { .. } => tree.put_back_stashes(&self.stashes).map(drop),
            Violation::OtherBranch { .. } => tree.come_home(),
            Violation::UserFiles { .. } => {
                tree.put_back(&self.attempt.before, &self.losses(tree)?.lost)
            }
            Violation::Instructions { .. } => match &self.instructions {
                Some(held) => held.restore(tree),
                None => Ok(()),
            },
            Violation::BranchLost { .. } => Ok(()),
        }
    }

    /// Once everything is checked, or nothing of it is this attempt's any more.
    pub fn disarm(&self, tree: &WorkTree) -> Result<(), GitError> {
        tree.end_attempt(false).map(drop)
    }

    fn changed_setup(&self, tree: &WorkTree) -> Result<Vec<String>, GitError> {
        self.setup.as_ref().map_or(Ok(Vec::new()), |before| Ok(before.differences(&tree.setup()?)))
    }

    fn losses(&self, tree: &WorkTree) -> Result<Losses, GitError> {
        tree.losses(&self.attempt.base, &self.attempt.before)
    }

    fn changed_instructions(&self, tree: &WorkTree) -> Result<Option<Violation>, GitError> {
        let Some(held) = &self.instructions else { return Ok(None) };
        let Some(now) = held.changed() else { return Ok(None) };
        let claims = ticks_task_complete(&held.text(), &String::from_utf8_lossy(&now));
        let GuardedAttempt { story, iteration, base, number, spare, .. } = &self.attempt;
        let kept = if let Ok(FileLocation::Inside(_)) = tree.place_of(held.path()) {
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
