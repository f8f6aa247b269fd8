//! Where a story's unfinished work is.

use crate::model::{Base, Cause, LaneId};

/// Where the story's unfinished work is.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Work {
    #[default]
    None,
    InLane(InLane),
    /// At a ref, out of every lane.
    Shelved(String),
}

/// Work in a lane, measured from its base.
#[derive(Clone, Debug, PartialEq)]
pub struct InLane {
    pub lane: LaneId,
    pub base: Base,
    /// The work tree that shelving returns to, if commits of the story's stay on the branch.
    pub rest: Option<String>,
    /// The ref that is being unshelved.
    pub unshelving: Option<String>,
    /// A ref whose work conflicts with the tree.
    pub conflicting: Option<String>,
    /// Branch and tree are about to be rolled back.
    pub roll_back: Option<RollBack>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollBack {
    pub to: Base,
    pub why: Cause,
}

impl Work {
    pub fn in_lane(&self) -> Option<&InLane> {
        if let Self::InLane(work) = self { Some(work) } else { None }
    }

    pub(super) fn in_lane_mut(&mut self) -> Option<&mut InLane> {
        if let Self::InLane(work) = self { Some(work) } else { None }
    }

    pub fn roll_back(&self) -> Option<&RollBack> {
        self.in_lane()?.roll_back.as_ref()
    }

    /// The ref of shelved work, or of work that is being unshelved.
    pub fn shelved(&self) -> Option<&String> {
        match self {
            Self::Shelved(reference) => Some(reference),
            Self::InLane(work) => work.unshelving.as_ref(),
            Self::None => None,
        }
    }

    pub fn conflicting(&self) -> Option<&String> {
        self.in_lane()?.conflicting.as_ref()
    }

    /// Begins at a base. Shelved work is about to be unshelved.
    pub(super) fn begin(&mut self, lane: LaneId, base: &Base) {
        let unshelving = self.shelved().cloned();
        let conflicting = self.conflicting().cloned();
        let mut roll_back = self.roll_back().cloned();
        if let Some(RollBack { to, why: Cause::FreshStart }) = &mut roll_back {
            to.clone_from(base);
        }
        let base = base.clone();
        let rest = None;
        *self = Self::InLane(InLane { lane, base, rest, unshelving, conflicting, roll_back });
    }
}
