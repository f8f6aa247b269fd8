//! The next story, or why there is none.

use crate::model::{Backlog, Because, Blocked, Story, StoryId};

#[derive(Debug, PartialEq)]
pub enum Selection<'a> {
    Next(&'a Story),
    /// Every story passes or was skipped.
    AllSettled,
    /// Stories are left, but none can be started.
    Blocked(Vec<Blocked>),
}

/// The first story (by priority where given) that can be started; with `only`, that one or none.
/// `is_held`: stories that wait for an answer or have an attempt in flight.
pub fn select<'a>(
    backlog: &'a Backlog,
    is_held: &dyn Fn(&StoryId) -> bool,
    only: Option<&StoryId>,
) -> Selection<'a> {
    let open = || {
        let wanted = |story: &&Story| only.is_none_or(|only| *only == story.id);
        backlog.stories.iter().filter(|story| !story.is_settled()).filter(wanted)
    };
    let mut best: Option<&Story> = None;
    for story in open() {
        // Between equals the file's order decides.
        let is_better = best.is_none_or(|best| rank(story) < rank(best));
        if is_better && can_start(story, backlog, is_held) {
            best = Some(story);
        }
    }
    if let Some(story) = best {
        return Selection::Next(story);
    }
    let blocked: Vec<Blocked> = open()
        .map(|story| Blocked { story: story.id.clone(), because: reason(story, backlog, is_held) })
        .collect();
    if blocked.is_empty() { Selection::AllSettled } else { Selection::Blocked(blocked) }
}

/// Not settled, not held, and every dependency passes.
pub fn is_ready(story: &Story, backlog: &Backlog, is_held: &dyn Fn(&StoryId) -> bool) -> bool {
    !story.is_settled() && can_start(story, backlog, is_held)
}

fn passes(backlog: &Backlog, id: &StoryId) -> bool {
    backlog.story(id).is_some_and(|story| story.passes)
}

fn can_start(story: &Story, backlog: &Backlog, is_held: &dyn Fn(&StoryId) -> bool) -> bool {
    story.depends_on.iter().all(|on| passes(backlog, on)) && !is_held(&story.id)
}

fn rank(story: &Story) -> f64 {
    story.priority.unwrap_or(f64::INFINITY)
}

fn reason(story: &Story, backlog: &Backlog, is_held: &dyn Fn(&StoryId) -> bool) -> Because {
    if is_held(&story.id) {
        return Because::Parked;
    }
    let waiting_for = |which: &dyn Fn(&StoryId) -> bool| {
        story.depends_on.iter().find(|on| !passes(backlog, on) && which(on)).cloned()
    };
    let is_skipped = |id: &StoryId| backlog.story(id).is_some_and(|s| s.skipped);
    if let Some(on) = waiting_for(&is_skipped) {
        Because::WaitsForSkipped { on }
    } else if let Some(on) = waiting_for(is_held) {
        Because::WaitsForParked { on }
    } else {
        let on = waiting_for(&|_| true).unwrap_or_else(|| story.id.clone());
        let is_next = backlog.story(&on).is_some_and(|on| can_start(on, backlog, is_held));
        if is_next { Because::WaitsForOpen { on } } else { Because::WaitsFor { on } }
    }
}

#[cfg(test)]
mod tests;
