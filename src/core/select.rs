//! Which story is next, or why none is.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::backlog::{Backlog, Story};
use super::id::StoryId;

#[derive(Debug, PartialEq)]
pub enum Selection<'a> {
    Next(&'a Story),
    /// Every story passes or was skipped.
    AllSettled,
    /// Work is left, and none of it can be started: why, story by story.
    Blocked(Vec<Blocked>),
}

/// A story that cannot be started, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    pub story: StoryId,
    pub because: Because,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Because {
    /// Its question waits for an answer.
    Parked,
    WaitsForSkipped {
        on: StoryId,
    },
    WaitsForParked {
        on: StoryId,
    },
    /// On a story that could be worked on, if it were wanted.
    WaitsForOpen {
        on: StoryId,
    },
    /// On a story that waits itself.
    WaitsFor {
        on: StoryId,
    },
}

/// The first story (by priority where given) that can be started; with `only`, that one or none.
pub fn select<'a>(
    backlog: &'a Backlog,
    parked: &BTreeSet<StoryId>,
    only: Option<&StoryId>,
) -> Selection<'a> {
    let passing = passing(backlog);
    let open = || {
        let wanted = |story: &&Story| only.is_none_or(|only| *only == story.id);
        backlog.stories.iter().filter(|story| !story.is_settled()).filter(wanted)
    };
    let ready = open().filter(|story| can_start(story, parked, &passing));
    // `min_by` keeps the first of equals, so the file's order decides between them.
    if let Some(story) = ready.min_by(|a, b| rank(a).total_cmp(&rank(b))) {
        return Selection::Next(story);
    }
    let blocked: Vec<Blocked> = open()
        .map(|story| Blocked {
            story: story.id.clone(),
            because: reason(story, backlog, parked, &passing),
        })
        .collect();
    if blocked.is_empty() { Selection::AllSettled } else { Selection::Blocked(blocked) }
}

/// Not settled, not parked, and every dependency passes.
pub fn is_ready(story: &Story, backlog: &Backlog, parked: &BTreeSet<StoryId>) -> bool {
    !story.is_settled() && can_start(story, parked, &passing(backlog))
}

fn passing(backlog: &Backlog) -> BTreeSet<&StoryId> {
    backlog.stories.iter().filter(|story| story.passes).map(|story| &story.id).collect()
}

fn can_start(story: &Story, parked: &BTreeSet<StoryId>, passing: &BTreeSet<&StoryId>) -> bool {
    !parked.contains(&story.id) && story.depends_on.iter().all(|on| passing.contains(on))
}

fn rank(story: &Story) -> f64 {
    story.priority.unwrap_or(f64::INFINITY)
}

fn reason(
    story: &Story,
    backlog: &Backlog,
    parked: &BTreeSet<StoryId>,
    passing: &BTreeSet<&StoryId>,
) -> Because {
    if parked.contains(&story.id) {
        return Because::Parked;
    }
    let waiting_for = |which: &dyn Fn(&StoryId) -> bool| {
        story.depends_on.iter().find(|on| !passing.contains(on) && which(on)).cloned()
    };
    let is_skipped = |id: &StoryId| backlog.story(id).is_some_and(|s| s.skipped);
    if let Some(on) = waiting_for(&is_skipped) {
        Because::WaitsForSkipped { on }
    } else if let Some(on) = waiting_for(&|id| parked.contains(id)) {
        Because::WaitsForParked { on }
    } else {
        let on = waiting_for(&|_| true).unwrap_or_else(|| story.id.clone());
        let is_next = backlog.story(&on).is_some_and(|on| can_start(on, parked, passing));
        if is_next { Because::WaitsForOpen { on } } else { Because::WaitsFor { on } }
    }
}

#[cfg(test)]
mod tests;
