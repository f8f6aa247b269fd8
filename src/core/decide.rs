//! What to do next; the only place that stops a run.

use super::backlog::{Backlog, Story};
use super::budget::{self, Level, Purse, Today};
use super::event::{Answer, Base};
use super::health::Rung;
use super::id::StoryId;
use super::limits;
use super::pause::{Wait, WaitFor};
use super::policy::{OnEscalation, Policy, StopReason};
use super::rut;
use super::select::{Selection, is_ready, select};
use super::signal::Escalation;
use super::state::{RunState, StoryState};
use super::weather::Weather;

/// Attempts that may run at the same time.
const SLOTS: usize = 1;

#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Finish what an accepted claim began.
    Close {
        story: StoryId,
        attempt: String,
    },
    /// Find out whether a claim is true.
    Check {
        story: StoryId,
        attempt: String,
    },
    /// The story gets nowhere: make a question of it.
    Raise {
        story: StoryId,
        question: Escalation,
    },
    Ask {
        story: StoryId,
    },
    /// Answer an open question as the human decided before the run.
    Answer {
        story: StoryId,
        answer: Answer,
    },
    Park {
        story: StoryId,
    },
    /// Too many attempts failed: plan to begin again from the story's base.
    StartOver {
        story: StoryId,
        to: Base,
    },
    /// Finish what was planned: branch and tree go back.
    Return {
        story: StoryId,
    },
    /// Take the story's unfinished work out of the tree.
    SetAside {
        story: StoryId,
    },
    /// The human settled it: leave what is in the tree to the human.
    LetGo {
        story: StoryId,
    },
    Skip {
        story: StoryId,
    },
    Attempt {
        story: StoryId,
    },
    /// Something under way has to end first.
    Wait,
    /// The agent gets nowhere.
    Climb(Due),
    /// What is under way must not go on: tell it to end, and keep its work.
    EndAttempts,
    /// Not before this moment.
    WaitUntil(Wait),
    /// It is not one story that fails: pause until then.
    OpenBreaker {
        why: String,
        until: i64,
    },
    /// Say that a budget is nearly used up.
    Alert {
        level: Level,
    },
    /// Begin a pause before the next attempt.
    Throttle {
        level: Level,
        until: i64,
    },
    Stop(StopReason),
}

/// What a decision depends on beside what is known and what is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the Unix epoch.
    pub now: i64,
    /// How long the attempt under way has been at work, while the machine was awake.
    pub busy_ms: u64,
    /// None where nobody can tell.
    pub disk: Option<FreeDisk>,
    /// An agent gets nowhere, and something is due.
    pub stuck: Option<Due>,
    pub today: Today,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub attempt: String,
    pub rung: Rung,
}

/// Room where the run writes: the place that has least of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeDisk {
    pub bytes: u64,
    pub place: String,
}

pub fn decide(state: &RunState, backlog: &Backlog, policy: &Policy, moment: &Moment) -> Next {
    if let Some((story, attempt)) = unconfirmed_close(state) {
        return Next::Close { story, attempt };
    }
    if let Some(story) = unfinished_return(state) {
        return Next::Return { story };
    }
    if state.aborted && state.in_flight.is_empty() {
        let reason = limits::reason(state, backlog, policy, moment);
        return Next::Stop(reason.unwrap_or(StopReason::Aborted));
    }
    let full = disk_is_low(policy, moment);
    let must_end = || full.is_some() || limits::run_time(state, policy, moment).is_some();
    if !state.in_flight.is_empty() && must_end() {
        return Next::EndAttempts;
    }
    if let Some(due) = &moment.stuck
        && state.in_flight.contains_key(&due.attempt)
    {
        return Next::Climb(due.clone());
    }
    if state.in_flight.len() >= SLOTS {
        return Next::Wait;
    }
    if let Some((story, attempt)) = undecided_claim(state, backlog) {
        // A gate that fails for want of room would refuse a claim that is true.
        return full.unwrap_or(Next::Check { story, attempt });
    }
    if let Some(reason) = agents_trouble(state, policy, moment.now) {
        return Next::Stop(reason);
    }
    questions(state, backlog, policy)
        .or_else(|| leave(state, backlog))
        .or_else(|| start_over(state, policy))
        .or_else(|| skip(state, backlog))
        .or_else(|| limits::reason(state, backlog, policy, moment).map(Next::Stop))
        .or_else(|| alert(state, policy, moment))
        .or_else(|| state.wait_for_service(policy.on_limit, moment.now).map(Next::WaitUntil))
        .or_else(|| breaker(state, policy, moment.now))
        .or_else(|| rest(state, policy, moment.now))
        .or(full)
        .or_else(|| throttle(state, policy, moment))
        .unwrap_or_else(|| attempt(state, backlog, policy))
}

fn unconfirmed_close(state: &RunState) -> Option<(StoryId, String)> {
    state.stories.iter().find_map(|(id, story)| Some((id.clone(), story.closing.clone()?)))
}

/// A claim that is in question waits for the human, and one of a settled story is moot.
fn undecided_claim(state: &RunState, backlog: &Backlog) -> Option<(StoryId, String)> {
    let claims = state.stories.iter().filter(|(_, story)| story.question.is_none());
    let mut claims = claims.filter_map(|(id, story)| Some((id.clone(), story.claim.clone()?)));
    claims.find(|(id, _)| backlog.story(id).is_some_and(|story| !story.is_settled()))
}

fn unfinished_return(state: &RunState) -> Option<StoryId> {
    let mut stories = state.stories.iter();
    stories.find(|(_, story)| story.returning.is_some()).map(|(id, _)| id.clone())
}

/// What failed so often is in the way of what might not: the next attempt gets a clean tree, and
/// is told what was tried.
fn start_over(state: &RunState, policy: &Policy) -> Option<Next> {
    let id = state.in_tree.as_ref()?;
    let known = state.story(id)?;
    let failed = u32::try_from(known.row.len()).unwrap_or(u32::MAX);
    let to =
        known.base.clone().filter(|_| failed >= policy.fresh_start_after.unwrap_or(u32::MAX))?;
    Some(Next::StartOver { story: id.clone(), to })
}

/// Questions of stories that are still in the backlog and open.
fn questions(state: &RunState, backlog: &Backlog, policy: &Policy) -> Option<Next> {
    let open =
        backlog.stories.iter().filter(|story| !story.is_settled() && is_wanted(story, policy));
    open.filter_map(|story| Some((story, state.story(&story.id)?))).find_map(|(story, known)| {
        raise(story, known, policy).or_else(|| ask(story, known, policy))
    })
}

fn is_wanted(story: &Story, policy: &Policy) -> bool {
    policy.only.as_ref().is_none_or(|only| *only == story.id)
}

fn raise(story: &Story, known: &StoryState, policy: &Policy) -> Option<Next> {
    if known.question.is_some() {
        return None;
    }
    let used_up = || budget::story_question(&story.id, known.spent, &policy.budgets);
    let question = rut::question(story, known, policy).or_else(used_up)?;
    Some(Next::Raise { story: story.id.clone(), question })
}

fn ask(story: &Story, known: &StoryState, policy: &Policy) -> Option<Next> {
    if known.question.as_ref()?.parked {
        return None;
    }
    let story = story.id.clone();
    Some(match policy.on_escalation {
        OnEscalation::Ask if policy.human_present => Next::Ask { story },
        OnEscalation::Ask | OnEscalation::Park => Next::Park { story },
        OnEscalation::Skip => Next::Answer { story, answer: Answer::Skip },
        OnEscalation::Abort => Next::Answer { story, answer: Answer::Abort },
    })
}

/// No story carries another one's wreckage: work in the tree belongs to the story that goes on.
fn leave(state: &RunState, backlog: &Backlog) -> Option<Next> {
    let id = state.in_tree.as_ref()?;
    if backlog.story(id).is_some_and(|story| story.passes) {
        return Some(Next::LetGo { story: id.clone() });
    }
    let goes_on = backlog.story(id).is_some_and(|story| goes_on(story, state, backlog));
    (!goes_on).then(|| Next::SetAside { story: id.clone() })
}

fn goes_on(story: &Story, state: &RunState, backlog: &Backlog) -> bool {
    let skip_wanted = state.story(&story.id).is_some_and(|known| known.skip_wanted);
    !skip_wanted && is_ready(story, backlog, &state.parked())
}

fn skip(state: &RunState, backlog: &Backlog) -> Option<Next> {
    let wanted = |story: &&Story| {
        !story.passes && state.story(&story.id).is_some_and(|known| known.skip_wanted)
    };
    let story = backlog.stories.iter().find(wanted)?;
    Some(Next::Skip { story: story.id.clone() })
}

/// No story's fault, and nothing that another story would change.
fn agents_trouble(state: &RunState, policy: &Policy, now: i64) -> Option<StopReason> {
    if let Some(times) = state.slump.at_once() {
        return Some(StopReason::FailsAtOnce { times, error: state.slump.last_error.clone() });
    }
    match state.trouble.as_ref()?.weather(policy.on_limit, now) {
        Weather::Stop(reason) => Some(reason),
        Weather::Fine | Weather::WaitUntil(_) => None,
    }
}

fn breaker(state: &RunState, policy: &Policy, now: i64) -> Option<Next> {
    let cool_down = policy.limits.cool_down?;
    if let Some(why) = state.breaker.is_due(state.slump.breakdowns) {
        let until = now.saturating_add(i64::try_from(cool_down.as_millis()).unwrap_or(i64::MAX));
        return Some(Next::OpenBreaker { why, until });
    }
    state.cool_down(now).map(Next::WaitUntil)
}

/// A failure that comes at once must not come again and again at once.
fn rest(state: &RunState, policy: &Policy, now: i64) -> Option<Next> {
    let until = state.slump.rests_until(policy.limits.backoff).filter(|until| now < *until)?;
    let error = state.slump.last_error.clone();
    Some(Next::WaitUntil(Wait { what: WaitFor::Retry, error, until }))
}

fn disk_is_low(policy: &Policy, moment: &Moment) -> Option<Next> {
    let (floor, disk) = (policy.min_free_disk?, moment.disk.as_ref()?);
    let (free, place) = (disk.bytes, disk.place.clone());
    (free < floor).then_some(Next::Stop(StopReason::DiskLow { free, floor, place }))
}

fn alert(state: &RunState, policy: &Policy, moment: &Moment) -> Option<Next> {
    let stories = state.stories.iter().map(|(id, known)| (id, known.spent));
    let level = Purse::of(state, policy, moment).alert(stories)?;
    Some(Next::Alert { level })
}

/// One pause before each attempt; a human can end it.
fn throttle(state: &RunState, policy: &Policy, moment: &Moment) -> Option<Next> {
    if state.spending.pause.is_some() {
        return state.throttled(moment.now).map(Next::WaitUntil);
    }
    let (level, pause) = Purse::of(state, policy, moment).throttle()?;
    Some(Next::Throttle { level, until: moment.now.saturating_add(pause) })
}

fn attempt(state: &RunState, backlog: &Backlog, policy: &Policy) -> Next {
    // Work that is in the tree goes on before anything else is begun.
    let in_tree = state.in_tree.as_ref().filter(|id| policy.only.as_ref().is_none_or(|o| o == *id));
    if let Some(story) = in_tree {
        return Next::Attempt { story: story.clone() };
    }
    match select(backlog, &state.parked(), policy.only.as_ref()) {
        Selection::Next(story) => match &state.in_tree {
            Some(other) => Next::SetAside { story: other.clone() },
            None => Next::Attempt { story: story.id.clone() },
        },
        // With `--story`: that story is not there any more.
        Selection::AllSettled => Next::Stop(StopReason::NothingToSelect { blocked: vec![] }),
        Selection::Blocked(blocked) => Next::Stop(StopReason::NothingToSelect { blocked }),
    }
}

#[cfg(test)]
mod tests;
