//! What the next process continues from an earlier run.

use crate::model::{Backlog, Base, Event, LaneId, Recorded, RunStarted, StoryId};
use crate::state::{RunState, Stage};
use crate::workspace::{GitError, WorkTree};

/// Stories whose question, guidance or unfinished work continues.
pub(super) fn carried(state: &RunState, backlog: &Backlog) -> Vec<StoryId> {
    let worth = state.stories.iter().filter(|(_, known)| known.is_worth_carrying());
    worth.map(|(id, _)| id).filter(|id| continues(state, backlog, id)).cloned().collect()
}

/// In the same backlog the id decides, so that a title can be corrected; in another backlog the
/// title must be the same too.
pub(super) fn continues(state: &RunState, backlog: &Backlog, id: &StoryId) -> bool {
    let same_title = |title: &str| state.story(id).is_some_and(|known| known.title == title);
    backlog.story(id).is_some_and(|story| {
        !story.is_settled() && (is_same(state, backlog) || same_title(&story.title))
    })
}

/// Not another backlog at the same path.
pub(super) fn is_same(state: &RunState, backlog: &Backlog) -> bool {
    state
        .run
        .as_ref()
        .is_some_and(|run| run.project == backlog.project && run.description == backlog.description)
}

/// The base of the story in the tree, moved onto the current branch.
pub fn base_on_branch(
    state: &RunState,
    tree: &WorkTree,
) -> Result<Option<(StoryId, Base)>, GitError> {
    let Some(story) = state.lanes.occupant(LaneId::HOME).cloned() else { return Ok(None) };
    let Some(known) = state.story(&story) else { return Ok(None) };
    let Some(base) = known.base() else { return Ok(None) };
    if matches!(known.stage, Stage::Accepted { .. }) || known.head == tree.head_commit()? {
        return Ok(None);
    }
    Ok(Some((story, tree.move_base(base, known.head.as_deref())?)))
}

/// The state that the next `ralph run` would start with: an open run continues, else a new one
/// begins.
pub fn as_next_process(mut state: RunState, backlog: &Backlog) -> RunState {
    let continues = state.is_open() && is_same(&state, backlog);
    let event = if continues {
        Event::RunContinued
    } else {
        Event::RunStarted(RunStarted {
            run: String::new(),
            backlog: String::new(),
            project: backlog.project.clone(),
            description: backlog.description.clone(),
            agent: String::new(),
            branch: None,
            allow_dirty: false,
            carried: carried(&state, backlog),
        })
    };
    state.apply(&Recorded { at: 0, event });
    state
}
