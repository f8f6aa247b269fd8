//! What must be true of every night.

use std::time::Duration;

use ralph::core::backlog::Story;
use ralph::core::id::StoryId;
use ralph::core::money::Usd;
use ralph::core::policy::StopReason;
use ralph::core::select::{Because, is_ready};

use super::night::Night;
use super::scene::ALLOWANCE;

pub fn start(night: &Night, story: &StoryId) {
    let state = &night.state;
    assert!(state.in_flight.is_empty(), "two attempts at once");
    assert!(state.in_tree.as_ref().is_none_or(|other| other == story), "another's wreckage");
    assert!(state.questions().all(|(asked, _)| asked != story), "its question is open");
    assert!(!night.given_up.contains(story), "a human skipped it");
    let known = night.scene.backlog.story(story).unwrap();
    assert!(is_ready(known, &night.scene.backlog, &state.parked()), "it cannot be started");
    bounds(night);
}

/// What holds before each attempt, and at the end.
fn bounds(night: &Night) {
    let (state, policy) = (&night.state, &night.scene.policy);
    let most = policy.max_iterations.unwrap();
    assert!(state.iterations <= most, "{} of {most} iterations", state.iterations);
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap();
    let limit = ms(policy.limits.max_run_time.unwrap());
    assert!(state.worked.agents_ms <= limit, "agents worked for {}", state.worked.agents_ms);
    let spent = state.spending.spent;
    assert!(Usd::of(night.spent) <= spent, "{} of {spent} counted", night.spent);
    if let Some(budget) = policy.budgets.per_run {
        let most = budget + Usd::of(ALLOWANCE);
        assert!(spent <= most, "spent {spent} of {budget}, more than one iteration too much");
    }
    if let Some(budget) = policy.budgets.per_story {
        let dearest = state.stories.values().map(|story| story.spent).max().unwrap_or_default();
        let most = budget + Usd::of(ALLOWANCE);
        assert!(dearest <= most, "spent {dearest} of {budget} on one story");
    }
}

pub fn end(night: &Night, reason: &StopReason, seed: u64) {
    bounds(night);
    let backlog = &night.scene.backlog;
    let everything = backlog.remaining() == 0;
    assert_eq!(*reason == StopReason::AllDone, everything, "night {seed}: {reason:?}");
    if let StopReason::NothingToSelect { blocked } = reason {
        for one in blocked {
            let waits = one.because != Because::Parked;
            let asked = night.state.questions().any(|(story, _)| *story == one.story);
            assert!(
                waits || asked,
                "night {seed}: {} is given up, and nobody was asked",
                one.story
            );
        }
        let stuck = backlog.stories.iter().filter(|story| story.skipped && !story.passes);
        let mut stuck = stuck.map(|story| &story.id);
        assert!(stuck.all(|story| night.given_up.contains(story)), "night {seed}");
    }
    if night.scene.others_are_easy {
        others_are_done(night, reason, seed);
    }
}

/// One hopeless story never costs the others, and the human hears of it.
fn others_are_done(night: &Night, reason: &StopReason, seed: u64) {
    let Some((hopeless, way)) = &night.scene.hopeless else { return };
    let backlog = &night.scene.backlog;
    for story in &backlog.stories {
        if !depends(story, hopeless, night) {
            assert!(story.passes, "night {seed}: {way:?} {hopeless} cost {}: {reason:?}", story.id);
        }
    }
    let settled = backlog.story(hopeless).is_some_and(Story::is_settled);
    let asked = night.state.questions().any(|(story, _)| story == hopeless);
    let stopped = matches!(reason, StopReason::ConsecutiveErrors { .. });
    assert!(settled || asked || stopped, "night {seed}: nobody heard of {hopeless}: {reason:?}");
}

fn depends(story: &Story, on: &StoryId, night: &Night) -> bool {
    let known = |id: &StoryId| night.scene.backlog.story(id);
    story.id == *on || story.depends_on.iter().filter_map(known).any(|one| depends(one, on, night))
}
