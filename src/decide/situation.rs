//! What a decision depends on, and what it can be.

use std::collections::{BTreeMap, BTreeSet};

use crate::decide::stuck::StuckStep;
use crate::model::{
    Answer, Backlog, Base, BudgetLevel, EndCause, Escalation, LaneId, Policy, SpentToday,
    StopReason, StoryId, Wait,
};
use crate::state::{RunState, StoryState};

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
    /// The dispatcher's.
    pub tasks: Tasks,
    /// The backlog file can be read and written.
    pub backlog_usable: bool,
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
    /// Bring a claim's shelved work to the lane where claims are checked and integrated.
    Land,
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
    /// Neither gates nor jobs run.
    pub fn is_idle(&self) -> bool {
        !self.baseline && self.checking.is_empty() && self.jobs.is_empty()
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
pub struct Situation<'a> {
    pub state: &'a RunState,
    pub backlog: &'a Backlog,
    pub policy: &'a Policy,
    pub observed: &'a Observed,
    /// Stories that were begun and need something more.
    pub unfinished: Vec<(&'a StoryId, &'a StoryState)>,
}

impl<'a> Situation<'a> {
    pub fn new(
        state: &'a RunState,
        backlog: &'a Backlog,
        policy: &'a Policy,
        observed: &'a Observed,
    ) -> Self {
        let unfinished = state.unfinished().collect();
        Self { state, backlog, policy, observed, unfinished }
    }

    /// `--story` may name the only one to work on.
    pub fn is_wanted(&self, id: &StoryId) -> bool {
        self.policy.only.as_ref().is_none_or(|only| only == id)
    }
}

/// One thing to start now.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Run the gates of every story before any work.
    Baseline,
    /// Run gates of the story before its first attempt.
    FirstLook { story: StoryId },
    /// Start one in the lane if that is ready for it, else make the lane ready.
    Attempt { story: StoryId, lane: LaneId },
    /// Bring a claim's shelved work to the human's tree, where it is checked and integrated.
    Land { story: StoryId },
    /// Run the gates for a claim.
    Check { story: StoryId, attempt: String },
    /// Commit an accepted claim's work to the branch.
    Integrate { story: StoryId },
    /// The story makes no progress: ask the human.
    Raise { story: StoryId, question: Escalation },
    /// Show the story's question to the human.
    Ask { story: StoryId },
    /// Answer an open question as configured (`on_escalation`).
    Answer { story: StoryId, answer: Answer },
    /// Leave the story's question for the next run.
    Park { story: StoryId },
    /// Too many attempts failed: plan a fresh start from the story's base.
    StartOver { story: StoryId, to: Base },
    /// Carry out a planned roll-back of branch and tree.
    RollBack { story: StoryId },
    /// Move the story's unfinished work from its lane to a ref.
    Shelve { story: StoryId },
    /// The human settled the story; its unfinished work is the human's now.
    Disown { story: StoryId },
    /// Commit the story's skip mark.
    Skip { story: StoryId },
    /// Take a step against a stuck agent.
    Unstick(StuckDue),
    /// End everything that runs; the work is kept.
    End(EndCause),
    /// More than one story fails: pause until then.
    OpenBreaker { why: String, until: i64 },
    /// A budget is nearly used up.
    Alert { level: BudgetLevel },
    /// Begin a pause before the next attempt.
    Throttle { level: BudgetLevel, until: i64 },
    /// Nothing can be started until something ends or a time is reached.
    Wait(Option<Wait>),
    /// The run is over.
    Stop(StopReason),
}
