//! The next action; the only place that stops a run.
//!
//! Called until it returns `Wait`: each action is one thing to start now, so that every free lane
//! is filled. Pure: running tasks are part of `Observed`.

use crate::decide::budget::{self, BudgetCheck};
use crate::decide::concerns;
use crate::decide::limits;
use crate::decide::select::{Selection, is_ready, select};
use crate::decide::situation::{Action, LaneJob, Observed, Situation};
use crate::decide::stagnation;
use crate::model::{
    Answer, Backlog, EndCause, LaneId, OnEscalation, Policy, StopReason, Story, StoryId,
};
use crate::state::{BreakerPhase, RunState, Stage, StoryState};

pub fn decide(state: &RunState, backlog: &Backlog, policy: &Policy, observed: &Observed) -> Action {
    let now = Situation::new(state, backlog, policy, observed);
    now.baseline()
        .or_else(|| now.finish())
        .or_else(|| now.end())
        .or_else(|| now.unstick())
        .or_else(|| now.check())
        .or_else(|| now.stop_for(now.agent_fault()))
        .or_else(|| now.question())
        .or_else(|| now.tidy_lanes())
        .or_else(|| now.skip())
        .or_else(|| now.stop_for(limits::reason(&now)))
        .or_else(|| now.attempt().map(|attempt| now.hold_back().unwrap_or(attempt)))
        .map(|action| now.look_first(action))
        .unwrap_or(Action::Wait(None))
}

impl Situation<'_> {
    /// No agent and no gate runs, and no work tree is in use.
    fn is_idle(&self) -> bool {
        self.state.attempts.is_idle() && self.observed.tasks.is_idle()
    }

    fn baseline(&self) -> Option<Action> {
        if self.observed.tasks.baseline {
            return self.end().or(Some(Action::Wait(None)));
        }
        let is_first = !self.state.has_baseline && self.state.attempts.started == 0;
        let is_due = self.policy.baseline && is_first && !self.backlog.is_settled();
        is_due.then(|| self.disk_low().map_or(Action::Baseline, Action::Stop))
    }

    /// Carries out earlier decisions first.
    fn finish(&self) -> Option<Action> {
        self.integrate().or_else(|| self.queue()).or_else(|| {
            let is_due = |(id, known): &&(&StoryId, &StoryState)| {
                let lane = self.state.lanes.of(id).unwrap_or(LaneId::HOME);
                known.work.roll_back().is_some() && self.is_free(lane)
            };
            let due = self.unfinished.iter().find(is_due);
            due.map(|(story, _)| Action::RollBack { story: (*story).clone() })
        })
    }

    /// Accepted claims, the oldest first. One that has left its lane is brought back on the way.
    fn integrate(&self) -> Option<Action> {
        if !self.observed.backlog_usable || !self.is_free(LaneId::HOME) {
            return None;
        }
        let is_open = |id: &StoryId| self.backlog.story(id).is_none_or(|one| !one.is_settled());
        let is_due = |id: &StoryId, known: &StoryState| {
            matches!(known.stage, Stage::Accepted { .. }) && is_open(id)
        };
        let (story, known) = self.oldest(is_due)?;
        match self.state.lanes.occupant(LaneId::HOME) {
            Some(other) if known.base().is_none() => Some(Action::Shelve { story: other.clone() }),
            _ => Some(Action::Integrate { story: story.clone() }),
        }
    }

    /// A claim leaves its agent's lane at once, and waits for its turn to be checked and integrated.
    fn queue(&self) -> Option<Action> {
        let mut lanes = self.state.lanes.iter().filter(|(lane, _)| *lane != LaneId::HOME);
        let is_due =
            |(lane, story): &(LaneId, &StoryId)| self.is_free(*lane) && self.is_claimed(story);
        lanes.find(is_due).map(|(_, story)| Action::Shelve { story: story.clone() })
    }

    /// Of the claims that are in the human's tree or can come there.
    fn oldest(
        &self,
        is_due: impl Fn(&StoryId, &StoryState) -> bool,
    ) -> Option<(&StoryId, &StoryState)> {
        let home = self.state.lanes.occupant(LaneId::HOME);
        let has_room = !home.is_some_and(|id| self.is_claimed(id));
        let is_there = |known: &StoryState| match known.work.in_lane() {
            Some(work) => work.lane == LaneId::HOME,
            None => has_room,
        };
        let claims = self.unfinished.iter().copied();
        let claims = claims.filter(|(id, known)| is_due(id, known) && is_there(known));
        claims.min_by_key(|(_, known)| known.stage.claim().map(|claim| claim.iteration))
    }

    /// Its claim is not decided yet.
    fn is_claimed(&self, id: &StoryId) -> bool {
        self.state.story(id).is_some_and(|known| known.stage.is_claimed())
    }

    /// Neither an attempt nor a gate runs in the lane, and its work tree is not in use.
    fn is_free(&self, lane: LaneId) -> bool {
        let tasks = &self.observed.tasks;
        let is_checked = |story| tasks.checking.contains(story);
        self.state.attempts.is_free(lane)
            && !tasks.jobs.contains_key(&lane)
            && !self.state.lanes.occupant(lane).is_some_and(is_checked)
    }

    fn end(&self) -> Option<Action> {
        let state = self.state;
        // Start nothing before everything has ended.
        if self.observed.tasks.ending && !self.is_idle() {
            return Some(Action::Wait(None));
        }
        let attempts = !state.attempts.is_idle();
        let disk_low = self.disk_low();
        let cause = if state.aborted && !self.is_idle() {
            EndCause::Aborted
        } else if disk_low.is_some() && !self.is_idle() {
            EndCause::DiskLow
        } else if attempts && limits::run_time(self).is_some() {
            EndCause::RunTime
        } else if state.aborted {
            let reason = limits::reason(self);
            return Some(Action::Stop(reason.unwrap_or(StopReason::Aborted)));
        } else {
            // Nothing runs: a gate that fails because the disk is full would reject a true claim,
            // and an answer could not be acted on.
            let is_done = || limits::reason(self) == Some(StopReason::AllDone);
            let end = |why| if self.is_settling() { Action::Wait(None) } else { Action::Stop(why) };
            return disk_low.filter(|_| !is_done()).map(end);
        };
        Some(Action::End(cause))
    }

    fn disk_low(&self) -> Option<StopReason> {
        let (floor, disk) = (self.policy.min_free_disk?, self.observed.disk.as_ref()?);
        let (free, place) = (disk.bytes, disk.place.clone());
        (free < floor).then_some(StopReason::DiskLow { free, floor, place })
    }

    fn unstick(&self) -> Option<Action> {
        let mut due = self.observed.stuck.iter();
        let due = due.find(|due| self.state.attempts.get(&due.attempt).is_some())?;
        Some(Action::Unstick(due.clone()))
    }

    /// Claims are checked where they are integrated, one after the other, so that what is integrated
    /// is what was checked.
    fn check(&self) -> Option<Action> {
        if !self.is_free(LaneId::HOME) {
            return None;
        }
        let is_due = |id: &StoryId, known: &StoryState| {
            let is_decided = known.held.is_empty() && !known.awaits_backlog();
            matches!(known.stage, Stage::Claimed(_)) && is_decided && self.backlog.is_open(id)
        };
        let (story, known) = self.oldest(is_due)?;
        let (claim, story) = (known.stage.claim()?, story.clone());
        // After a crash, half of its work may be there.
        let is_there = known.work.in_lane().is_some_and(|work| work.unshelving.is_none());
        Some(match self.state.lanes.occupant(LaneId::HOME) {
            _ if is_there => Action::Check { story, attempt: claim.attempt.clone() },
            Some(other) if *other != story => Action::Shelve { story: other.clone() },
            _ => Action::Land { story },
        })
    }

    /// Questions of open stories, in the backlog's order.
    fn question(&self) -> Option<Action> {
        let touched = self.unfinished.iter().filter(|(id, _)| self.is_wanted(id));
        let due = touched.filter_map(|(id, known)| {
            let place = self.backlog.place(id)?;
            let story = self.backlog.stories.get(place).filter(|one| !one.is_settled())?;
            Some((place, self.raise(story, known).or_else(|| self.ask(story, known))?))
        });
        due.min_by_key(|(place, _)| *place).map(|(_, action)| action)
    }

    fn raise(&self, story: &Story, known: &StoryState) -> Option<Action> {
        if self.state.attempts.at(&story.id).is_some() {
            return None;
        }
        let is_undecided = matches!(known.stage, Stage::Open | Stage::Claimed(_));
        let held = is_undecided.then(|| concerns::question(&story.id, &known.held)).flatten();
        if let Some(question) = held.filter(|_| !self.observed.tasks.checking.contains(&story.id)) {
            return Some(Action::Raise { story: story.id.clone(), question });
        }
        if known.stage != Stage::Open {
            return None;
        }
        let used_up = || budget::story_question(&story.id, known.spent, &self.policy.budgets);
        let question = stagnation::question(story, known, self.policy).or_else(used_up)?;
        Some(Action::Raise { story: story.id.clone(), question })
    }

    fn ask(&self, story: &Story, known: &StoryState) -> Option<Action> {
        let story = story.id.clone();
        if known.question()?.parked || self.observed.tasks.asking.contains(&story) {
            return None;
        }
        Some(match self.policy.on_escalation {
            OnEscalation::Ask if self.policy.human_present => Action::Ask { story },
            OnEscalation::Ask | OnEscalation::Park => Action::Park { story },
            OnEscalation::Skip => Action::Answer { story, answer: Answer::Skip },
            OnEscalation::Abort => Action::Answer { story, answer: Answer::Abort },
        })
    }

    /// No story starts on top of another story's unfinished work.
    fn tidy_lanes(&self) -> Option<Action> {
        let mut lanes = self.state.lanes.iter().filter(|(lane, _)| self.is_free(*lane));
        lanes.find_map(|(lane, story)| self.tidy(story, lane))
    }

    fn tidy(&self, id: &StoryId, lane: LaneId) -> Option<Action> {
        let story = self.backlog.story(id);
        if story.is_some_and(|story| story.passes) {
            return Some(Action::Disown { story: id.clone() });
        }
        let known = self.state.story(id)?;
        let is_agents = self.policy.agent_lanes().contains(&lane.0);
        let stays = story.is_some_and(|story| match &known.stage {
            // Here it is in the way of other claims, or a process before this one had more lanes.
            Stage::Open | Stage::Asking { .. } if !is_agents => false,
            Stage::Open => is_ready(story, self.backlog, &|id| self.state.is_parked(id)),
            Stage::Claimed(_) | Stage::Accepted { .. } => !story.is_settled(),
            Stage::Asking { question, .. } => !question.parked && !story.is_settled(),
            Stage::Skipping | Stage::Closed { .. } | Stage::Skipped => false,
        });
        if !stays {
            return Some(Action::Shelve { story: id.clone() });
        }
        // After repeated failures the next attempt gets a clean tree, and a list of what was tried.
        let limit = self.policy.fresh_start_after.filter(|_| known.stage == Stage::Open)?;
        let to = known.base().filter(|_| known.failures() >= limit)?;
        Some(Action::StartOver { story: id.clone(), to: to.clone() })
    }

    fn skip(&self) -> Option<Action> {
        let is_due = |(id, known): &&(&StoryId, &StoryState)| {
            known.stage == Stage::Skipping
                && self.state.attempts.at(id).is_none()
                && !self.observed.tasks.checking.contains(*id)
                && self.state.lanes.of(id).is_none()
                && self.backlog.story(id).is_some_and(|story| !story.passes)
        };
        let can_be = self.observed.backlog_usable && self.is_free(LaneId::HOME);
        let (story, _) = self.unfinished.iter().find(is_due).filter(|_| can_be)?;
        Some(Action::Skip { story: (*story).clone() })
    }

    /// Starts nothing more, and waits for everything that runs or is being answered.
    fn stop_for(&self, reason: Option<StopReason>) -> Option<Action> {
        let reason = reason?;
        let waits = !self.is_idle() || !self.observed.tasks.asking.is_empty();
        Some(if waits || self.is_settling() { Action::Wait(None) } else { Action::Stop(reason) })
    }

    /// A mark is decided but cannot be written yet.
    fn is_settling(&self) -> bool {
        !self.observed.backlog_usable
            && self.unfinished.iter().any(|(_, known)| known.is_being_settled())
    }

    /// A fault of the agent or its service: other stories would fail too.
    fn agent_fault(&self) -> Option<StopReason> {
        let failures = &self.state.failures;
        if let Some(times) = failures.at_once() {
            return Some(StopReason::FailsAtOnce { times, error: failures.last_error.clone() });
        }
        self.state.service.streak(&self.policy.agent)?.stop(self.policy.on_limit)
    }

    /// Reasons to wait although a story is ready.
    fn hold_back(&self) -> Option<Action> {
        let (state, limits, now) = (self.state, &self.policy.limits, self.observed.now);
        let service = || state.service.streak(&self.policy.agent)?.wait(self.policy.on_limit, now);
        let wait = |wait| Action::Wait(Some(wait));
        self.alert()
            .or_else(|| service().map(wait))
            .or_else(|| self.breaker())
            .or_else(|| state.failures.wait(limits.backoff, now).map(wait))
            .or_else(|| self.throttle())
            .or_else(|| self.probe())
            .or_else(|| BudgetCheck::of(self).is_reserved().then_some(Action::Wait(None)))
    }

    fn alert(&self) -> Option<Action> {
        let spent = self.unfinished.iter().map(|(id, known)| (*id, known.spent));
        let level = BudgetCheck::of(self).alert(spent)?;
        Some(Action::Alert { level })
    }

    fn breaker(&self) -> Option<Action> {
        let (state, now) = (self.state, self.observed.now);
        let cool_down = self.policy.limits.cool_down?;
        if let Some(why) = state.breaker.is_due(state.failures.breakdowns) {
            let cool_down = i64::try_from(cool_down.as_millis()).unwrap_or(i64::MAX);
            return Some(Action::OpenBreaker { why, until: now.saturating_add(cool_down) });
        }
        state.breaker.wait(now).map(|wait| Action::Wait(Some(wait)))
    }

    /// One pause before each attempt; the human can skip it.
    fn throttle(&self) -> Option<Action> {
        let (costs, now) = (&self.state.costs, self.observed.now);
        if costs.pause.is_some() {
            return costs.wait(now).map(|wait| Action::Wait(Some(wait)));
        }
        let (level, pause) = BudgetCheck::of(self).throttle()?;
        Some(Action::Throttle { level, until: now.saturating_add(pause) })
    }

    /// After a fault of the service or an open breaker, one attempt tests whether it is over.
    fn probe(&self) -> Option<Action> {
        let faults = self.state.service.streak(&self.policy.agent).is_some();
        let probe = match &self.state.breaker.phase {
            BreakerPhase::HalfOpen { probe, .. } => self.policy.limits.cool_down.map(|_| probe),
            _ => None,
        };
        let is_busy = (faults || probe.is_some()) && !self.state.attempts.is_idle();
        let is_undecided = |id: &StoryId| self.is_claimed(id) && self.backlog.is_open(id);
        (is_busy || probe.is_some_and(is_undecided)).then_some(Action::Wait(None))
    }

    /// Work in a lane continues before another story starts.
    fn attempt(&self) -> Option<Action> {
        // One after the other: the start of each counts for the next.
        if self.observed.tasks.jobs.values().any(|job| *job == LaneJob::Prepare) {
            return None;
        }
        let lanes = self.policy.agent_lanes().map(LaneId);
        let mut lanes: Vec<LaneId> = lanes.filter(|lane| self.is_free(*lane)).collect();
        let ready = self.observed.tasks.ready.as_ref().map(|(lane, _)| *lane);
        lanes.sort_by_key(|lane| Some(*lane) != ready);
        lanes.iter().find_map(|lane| self.attempt_in(*lane)).or_else(|| self.start_another(&lanes))
    }

    /// Before a story's first attempt, in the tree that it begins with.
    fn look_first(&self, action: Action) -> Action {
        let Action::Attempt { story, lane: LaneId::HOME } = &action else { return action };
        let is_new = self.state.story(story).is_none_or(|known| known.totals.attempts == 0);
        let is_due = is_new && !self.state.looked_at.contains(story);
        match is_due && self.policy.first_looks.contains(story) && self.is_idle() {
            true => Action::FirstLook { story: story.clone() },
            false => action,
        }
    }

    /// The next attempt at the story whose work is in the lane.
    fn attempt_in(&self, lane: LaneId) -> Option<Action> {
        let story = self.state.lanes.occupant(lane)?;
        let attempt = || Action::Attempt { story: story.clone(), lane };
        (self.is_wanted(story) && self.is_open(story)).then(attempt)
    }

    /// Uses an empty lane; otherwise shelves a story that waits for an answer.
    fn start_another(&self, lanes: &[LaneId]) -> Option<Action> {
        let occupant = |lane: &LaneId| self.state.lanes.occupant(*lane);
        let stays =
            |id: &StoryId| (self.is_wanted(id) && !self.state.is_asking(id)) || self.is_claimed(id);
        let makes_room = |lane: &&LaneId| !occupant(lane).is_some_and(stays);
        let empty = lanes.iter().find(|lane| occupant(lane).is_none());
        let lane = empty.or_else(|| lanes.iter().find(makes_room))?;
        let is_taken = |id: &StoryId| !self.is_open(id) || self.state.lanes.of(id).is_some();
        let selected = select(self.backlog, &is_taken, self.policy.only.as_ref());
        let Selection::Next(next) = selected else { return None };
        Some(match occupant(lane) {
            Some(other) => Action::Shelve { story: other.clone() },
            None => Action::Attempt { story: next.id.clone(), lane: *lane },
        })
    }

    /// It waits for its next attempt, and none is in flight.
    fn is_open(&self, id: &StoryId) -> bool {
        let known = self.state.story(id);
        let stage = known.map(|known| &known.stage);
        stage.is_none_or(|stage| *stage == Stage::Open || stage.is_settled())
            && !known.is_some_and(StoryState::awaits_backlog)
            && self.state.attempts.at(id).is_none()
    }
}

#[cfg(test)]
mod tests;
