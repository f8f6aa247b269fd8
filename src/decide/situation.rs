//! The input of a decision.

use std::collections::{BTreeMap, BTreeSet};

use crate::decide::stuck::StuckStep;
use crate::model::{Backlog, LaneId, Policy, SpentToday, StoryId};
use crate::state::RunState;

/// What a decision depends on besides state and policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Milliseconds since the Unix epoch.
    pub now: i64,
    /// The work time of everything that runs now, without machine sleep.
    pub busy_ms: u64,
    /// None if it cannot be measured.
    pub disk: Option<FreeDisk>,
    /// Stuck agents, and the step that is due.
    pub stuck: Vec<StuckDue>,
    pub today: SpentToday,
    pub tasks: Tasks,
    /// The backlog file can be read and written.
    pub backlog_usable: bool,
}

impl Default for Observed {
    fn default() -> Self {
        Self {
            now: 0,
            busy_ms: 0,
            disk: None,
            stuck: Vec::new(),
            today: SpentToday::default(),
            tasks: Tasks::default(),
            backlog_usable: true,
        }
    }
}

/// Running tasks other than attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tasks {
    pub baseline: bool,
    /// Stories whose claims are being checked.
    pub checking: BTreeSet<StoryId>,
    /// Lanes whose work tree is in use, and for what.
    pub jobs: BTreeMap<LaneId, LaneJob>,
    /// A lane that was just made ready for an attempt at a story.
    pub ready: Option<(LaneId, StoryId)>,
    /// Stories whose questions are open.
    pub asking: BTreeSet<StoryId>,
    /// Everything was ordered to end.
    pub ending: bool,
}

/// Something that is done to the work tree of a lane for a story. Nothing else happens there until
/// it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneJob {
    /// Make it ready for an attempt.
    Prepare,
    /// Store a failed attempt's work at a ref; it stays in the lane too.
    Keep,
    /// Commit an accepted claim's work to the branch.
    Integrate,
    /// Commit a skipped story's mark.
    Skip,
    /// Move unfinished work from the lane to a ref.
    Shelve,
    /// Carry out a planned roll-back of branch and tree.
    RollBack,
}

impl Tasks {
    pub fn runs_gates(&self) -> bool {
        self.baseline || !self.checking.is_empty()
    }

    /// Neither gates nor jobs run.
    pub fn is_idle(&self) -> bool {
        !self.runs_gates() && self.jobs.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckDue {
    pub attempt: String,
    pub step: StuckStep,
}

/// The path with the least free space among those that the run writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeDisk {
    pub bytes: u64,
    pub place: String,
}

/// The input of a decision.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    pub state: &'a RunState,
    pub backlog: &'a Backlog,
    pub policy: &'a Policy,
    pub observed: &'a Observed,
}
