//! A story's unfinished work in a lane, while the human commits on the same branch.

use crate::model::{Base, Event, LaneId, StoryId};
use crate::runner::error::Result;
use crate::runner::task::EventSink;
use crate::state::RunState;
use crate::workspace::{GitError, WorkTree};

/// A story with work in a lane.
#[derive(Clone)]
pub struct Occupant {
    pub story: StoryId,
    pub lane: LaneId,
    pub base: Base,
    /// The branch tip as its last attempt, or the gates of its claim, left it.
    pub head: Option<String>,
}

impl Occupant {
    pub fn of(state: &RunState, story: &StoryId) -> Option<Self> {
        let known = state.story(story)?;
        let work = known.work.in_lane()?;
        let (story, base, head) = (story.clone(), work.base.clone(), known.head.clone());
        Some(Self { story, lane: work.lane, base, head })
    }

    /// On top of the commits since then, which are the human's. None: there are none.
    pub fn moved_base(&self, tree: &WorkTree) -> Result<Option<Base>, GitError> {
        if self.lane != LaneId::HOME {
            return Ok(None);
        }
        tree.moved_base(&self.base, self.head.as_deref())
    }

    /// Returns the base that counts from now on.
    pub fn follow_branch(self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<Base> {
        let Some(base) = self.moved_base(tree)? else { return Ok(self.base) };
        tree.hold(&base)?;
        let (story, lane) = (self.story, self.lane);
        log.record(Event::BaseSet { story, base: base.clone(), lane })?;
        Ok(base)
    }
}
