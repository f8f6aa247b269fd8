//! A story's unfinished work in a lane, while the human commits on the same branch.

use crate::model::{Base, CommitName, Event, LaneId, StoryId};
use crate::runner::error::Result;
use crate::runner::task::EventSink;
use crate::state::RunState;
use crate::workspace::{GitError, HumanCommits, WorkTree};

/// A story with work in a lane.
#[derive(Clone)]
pub struct Occupant {
    pub story: StoryId,
    pub lane: LaneId,
    pub base: Base,
    /// The work tree that shelving returns to, if commits of the story's stay on the branch.
    pub rest: Option<String>,
    /// The branch tip as its last attempt, or the gates of its claim, left it.
    pub head: Option<String>,
}

impl Occupant {
    pub fn of(state: &RunState, story: &StoryId) -> Option<Self> {
        let known = state.story(story)?;
        let work = known.work.in_lane()?;
        let (story, base, head) = (story.clone(), work.base.clone(), known.head.clone());
        Some(Self { story, lane: work.lane, base, rest: work.rest.clone(), head })
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
        Ok(self.follow(tree, log)?.base)
    }

    /// The same with the rest of what counts from now on.
    pub fn follow(self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<Self> {
        let Some(base) = self.moved_base(tree)? else { return Ok(self) };
        let head = self.head.as_deref();
        let below = tree.commits_since(head, self.base.commit.as_deref())?;
        let rest = match &self.rest {
            Some(rest) => {
                let rest = Base { tree: rest.clone(), ..self.base.clone() };
                Some(tree.move_base(&rest, head)?.tree)
            }
            None if below.is_empty() => None,
            None => Some(tree.move_base(&self.base, self.base.commit.as_deref())?.tree),
        };
        self.move_to(tree, Moved { base, rest, commits: Vec::new(), below }, log)
    }

    /// On top of the human's commits that were made while its agent worked. `before`: the branch tip
    /// before that.
    pub fn follow_human(
        self,
        tree: &WorkTree,
        found: HumanCommits,
        before: Option<&str>,
        log: &mut dyn EventSink,
    ) -> Result<Self> {
        let HumanCommits { humans, below, top, .. } = found;
        let base = tree.with_commits(&self.base, &humans, &top)?;
        let known = match &self.rest {
            Some(rest) => Some(Base { tree: rest.clone(), ..self.base.clone() }),
            None => (!below.is_empty()).then(|| self.base.clone()),
        };
        let rest = known.map(|rest| tree.with_changes_between(&rest, before, Some(&top)));
        let rest = rest.transpose()?.map(|rest| rest.tree);
        self.move_to(tree, Moved { base, rest, commits: humans, below }, log)
    }

    fn move_to(self, tree: &WorkTree, moved: Moved, log: &mut dyn EventSink) -> Result<Self> {
        let Moved { base, rest, commits, below } = moved;
        tree.hold(&base)?;
        let (story, lane) = (self.story.clone(), self.lane);
        log.record(Event::BaseSet { story: story.clone(), base: base.clone(), lane })?;
        if rest.is_some() || !commits.is_empty() {
            log.record(Event::HumanCommitted { story, commits, below, rest: rest.clone() })?;
        }
        Ok(Self { head: base.commit.clone(), base, rest, ..self })
    }
}

/// Where a story's work is after the human committed.
struct Moved {
    base: Base,
    rest: Option<String>,
    /// To be named: made while an agent worked.
    commits: Vec<CommitName>,
    below: Vec<CommitName>,
}
