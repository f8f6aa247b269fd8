//! What must be true after every event, and of every night.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use ralph::decide::select::is_ready;
use ralph::model::{
    AttemptEnded, AttemptStarted, Because, Event, Notice, OnEscalation, Policy, Recorded,
    ServiceFault, StopReason, Story, StoryId, Usd, Verdict, Wait,
};
use ralph::ports::{Activity, Reporter, View};
use ralph::state::{Acceptance, BreakerPhase, RunState};

use super::branch::{Origin, Proof};
use super::scene::{AGENT, ALLOWANCE, Scene};
use super::world::World;

/// Hears of every event, and knows what may follow which.
#[derive(Clone)]
pub struct Checks(Rc<RefCell<Facts>>);

struct Facts {
    policy: Policy,
    /// Of all processes so far.
    most_lanes: u32,
    /// There never is more than one lane.
    is_serial: bool,
    /// The fold of the events as they come back from JSON, where that is compared.
    folded: Option<RunState>,
    /// Attempts in flight: the number in the run, and the iteration.
    open: BTreeMap<String, (u32, u32)>,
    /// The iterations that count.
    iterations: BTreeSet<u32>,
    started: u32,
    spent: Usd,
    /// Claims whose evidence is about another commit than the branch's.
    outdated: BTreeSet<StoryId>,
    /// The last fault, how often it came, and how many attempts had been started then.
    fault: Option<(ServiceFault, u32, u32)>,
}

impl Checks {
    pub fn new(scene: &Scene, thorough: bool) -> Self {
        Self(Rc::new(RefCell::new(Facts {
            policy: scene.policy.clone(),
            most_lanes: 0,
            is_serial: scene.policy.lanes == NonZeroU32::MIN && !scene.lanes_vary,
            folded: thorough.then(RunState::default),
            open: BTreeMap::new(),
            iterations: BTreeSet::new(),
            started: 0,
            spent: Usd::ZERO,
            outdated: BTreeSet::new(),
            fault: None,
        })))
    }

    /// Another process takes up the run.
    pub fn policy(&self, policy: &Policy) {
        let mut facts = self.0.borrow_mut();
        facts.most_lanes = facts.most_lanes.max(policy.lanes.get());
        facts.policy = policy.clone();
    }
}

impl Reporter for Checks {
    fn on_event(&mut self, recorded: &Recorded, view: View<'_>) {
        self.0.borrow_mut().hear(recorded, view);
    }

    fn on_activity(&mut self, _activity: &Activity) {}

    fn on_wait(&mut self, _wait: &Wait) {}

    fn on_notice(&mut self, _notice: &Notice) {}
}

impl Facts {
    fn hear(&mut self, recorded: &Recorded, view: View<'_>) {
        if let Some(folded) = &mut self.folded {
            let text = serde_json::to_string(&recorded.event).unwrap();
            let event = Event::from_json(&text).unwrap();
            folded.apply(&Recorded { at: recorded.at, event });
            assert_eq!(folded, view.state, "the journal says something else after {text}");
            let unfinished = folded.stories.iter().filter(|(_, known)| known.is_unfinished());
            assert!(unfinished.eq(folded.unfinished()), "after {text}");
        }
        match &recorded.event {
            Event::AttemptStarted(start) => self.started(start, recorded.at, view),
            Event::AttemptEnded(end) => self.ended(end, view.state),
            Event::AttemptLost { attempt, counted, .. } => {
                assert!(self.open.remove(attempt).is_some(), "{attempt} ended before");
                self.spent += *counted;
            }
            Event::ClaimOutdated { story } => drop(self.outdated.insert(story.clone())),
            Event::ClaimChecked { story, .. } => drop(self.outdated.remove(story)),
            Event::StoryClosed(closed) => {
                let story = &closed.story;
                assert!(!self.outdated.contains(story), "{story} is closed without its gates");
            }
            Event::RunContinued => assert!(self.open.is_empty(), "{:?} are forgotten", self.open),
            Event::RunEnded { .. } => {
                assert!(view.state.attempts.is_idle(), "agents still run");
                assert!(self.open.is_empty());
            }
            _ => {}
        }
        assert_eq!(view.state.costs.spent, self.spent, "money is counted once");
    }

    fn started(&mut self, start: &AttemptStarted, at: i64, view: View<'_>) {
        let (state, policy) = (view.state, &self.policy);
        let lanes = usize::try_from(policy.lanes.get()).unwrap();
        assert!(state.attempts.count() <= lanes, "more attempts than lanes");
        let is_agents = policy.agent_lanes().contains(&start.lane.0);
        assert!(is_agents, "no agent works in lane {}", start.lane);
        let flights = || state.attempts.iter().map(|flight| &flight.start);
        let stories: BTreeSet<_> = flights().map(|start| &start.story).collect();
        let taken: BTreeSet<_> = flights().map(|start| start.lane).collect();
        assert_eq!(stories.len(), state.attempts.count(), "a story twice in flight");
        assert_eq!(taken.len(), state.attempts.count(), "two attempts in a lane");
        for flight in flights() {
            assert_eq!(state.lanes.of(&flight.story), Some(flight.lane));
        }
        let most = policy.max_iterations.unwrap();
        assert!(state.attempts.iterations <= most, "more than {most} iterations");
        self.started += 1;
        self.open.insert(start.attempt.clone(), (self.started, start.iteration));
        if self.is_serial {
            let last = self.iterations.last().copied().unwrap_or_default();
            assert_eq!(start.iteration, last + 1, "what does not count has no number");
        }
        if let Some(budget) = policy.budgets.per_run {
            let given = state.costs.spent + state.attempts.reserved();
            // An attempt may always cost a cent.
            assert!(given <= budget + Usd::of(0.01), "{given} of {budget} is given out");
        }
        let is_new = self.iterations.insert(start.iteration);
        assert!(is_new, "iteration {} is there twice: {:?}", start.iteration, self.iterations);
        if let Some(streak) = state.service.streak(AGENT) {
            assert_eq!(
                state.attempts.count(),
                1,
                "one attempt finds out whether the fault is over"
            );
            assert_eq!(streak.wait(policy.on_limit, at), None, "the service is not waited for");
        }
        self.bounds(state);
    }

    fn ended(&mut self, end: &AttemptEnded, state: &RunState) {
        let open = self.open.remove(&end.attempt);
        let (number, iteration) = open.unwrap();
        self.spent += end.cost.counted(&end.usage);
        let counted = u32::try_from(self.iterations.len()).unwrap();
        if state.attempts.iterations < counted {
            assert!(
                matches!(end.verdict, Verdict::NotTheStory { .. } | Verdict::PromptTooLong { .. }),
                "{:?} does not count",
                end.verdict
            );
            self.iterations.remove(&iteration);
        }
        let counted = u32::try_from(self.iterations.len()).unwrap();
        assert_eq!(state.attempts.iterations, counted, "iterations are counted once");
        self.heed_service(&end.verdict, number, state);
    }

    /// What one wave of attempts says of the service counts once.
    fn heed_service(&mut self, verdict: &Verdict, number: u32, state: &RunState) {
        let is_news = self.fault.as_ref().is_none_or(|(.., wave)| number > *wave);
        match verdict {
            Verdict::NotTheStory { fault, .. }
                if !is_news
                    && self.fault.as_ref().is_none_or(|(f, ..)| fault.gravity() <= f.gravity()) =>
            {
                self.fault.as_mut().unwrap().2 = self.started;
            }
            Verdict::NotTheStory { fault, .. } => {
                let before = self.fault.take().filter(|(f, ..)| f.gravity() == fault.gravity());
                let count = before.map_or(1, |(_, count, _)| count + u32::from(is_news));
                self.fault = Some((fault.clone(), count, self.started));
            }
            Verdict::Interrupted => {}
            _ if is_news => self.fault = None,
            _ => {}
        }
        let known = state.service.streak(AGENT).map(|streak| streak.count);
        assert_eq!(known, self.fault.as_ref().map(|(_, count, _)| *count), "faults in a row");
    }

    /// What holds before each attempt, and at the end.
    fn bounds(&self, state: &RunState) {
        let policy = &self.policy;
        let most = policy.max_iterations.unwrap();
        assert!(state.attempts.iterations <= most, "{} of {most}", state.attempts.iterations);
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap();
        let limit = ms(policy.limits.max_run_time.unwrap());
        // Agents get a few seconds to end.
        let worked = state.work_time.agents_ms;
        let most = limit + u64::from(self.most_lanes) * 6_000;
        assert!(worked <= most, "agents worked for {worked} of {limit} ms");
        let each: Usd = (0..self.most_lanes).map(|_| Usd::of(ALLOWANCE)).sum();
        if let Some(budget) = policy.budgets.per_run {
            let spent = state.costs.spent;
            assert!(spent <= budget + each, "{spent} of {budget}, more than an iteration too much");
        }
        if let Some(budget) = policy.budgets.per_story {
            let dearest = state.stories.values().map(|story| story.spent).max().unwrap_or_default();
            assert!(dearest <= budget + Usd::of(ALLOWANCE), "{dearest} of {budget} on one story");
        }
    }
}

pub fn end(world: &World, state: &RunState, reason: &StopReason, checks: &Checks) {
    let facts = checks.0.borrow();
    facts.bounds(state);
    let backlog = &world.current;
    let everything = backlog.remaining() == 0;
    assert_eq!(*reason == StopReason::AllDone, everything, "{reason:?}");
    assert!(state.attempts.is_idle() && world.running.is_empty() && world.gates.is_empty());
    // Neither what the run knows nor what is in the file passes for the human's.
    for story in backlog.stories.iter().chain(&world.file.stories).filter(|story| story.passes) {
        let before = world.scene.backlog.story(&story.id).is_some_and(|story| story.passes);
        let id = &story.id;
        assert!(before || world.settled.contains(id) || is_closed(world, id), "{id} is marked");
    }
    let attack = world.branch.iter().find(|commit| commit.origin == Origin::Attack);
    assert!(attack.is_none(), "{attack:?} is on the branch");
    if *reason == StopReason::AllDone {
        done_is_done(world);
    }
    rightly_so(world, state, reason);
    if world.scene.others_are_easy {
        others_are_done(world, state, reason);
    }
}

/// The story's mark has its commit: of what the gates of an accepted claim saw, and they passed with
/// good reason. Or the human accepted the claim.
fn is_closed(world: &World, story: &StoryId) -> bool {
    let events = world.journal.events.borrow();
    let last = events.iter().rev().find_map(|recorded| match &recorded.event {
        Event::StoryClosed(closed) if closed.story == *story => Some(closed.clone()),
        _ => None,
    });
    let Some(closed) = last else { return false };
    let mut branch = world.branch.iter();
    let commit = branch.find(|one| one.id == closed.commit && one.marks.as_ref() == Some(story));
    let Some(Origin::Close { attempt, by, of }) = commit.map(|commit| &commit.origin) else {
        return false;
    };
    match by {
        Acceptance::Human { .. } => world.accepted.contains(story),
        Acceptance::Evidence if !world.scene.has_gates => *attempt == closed.attempt,
        Acceptance::Evidence => {
            let proof = world.proven.get(attempt);
            *attempt == closed.attempt && proof == Some(&Proof { on: *of, is_honest: true })
        }
    }
}

/// Each story of the start was closed by evidence, or settled or removed by the human.
fn done_is_done(world: &World) {
    for story in &world.scene.backlog.stories {
        let id = &story.id;
        let by_human = world.settled.contains(id) || world.removed.contains(id);
        let is_skipped = world.current.story(id).is_some_and(|story| story.skipped);
        let done = story.is_settled() || by_human || is_closed(world, id);
        let may_skip = world.config.policy.on_escalation == OnEscalation::Skip;
        assert!(done || (is_skipped && may_skip), "{id} is not done");
    }
}

/// The reason that is told holds.
fn rightly_so(world: &World, state: &RunState, reason: &StopReason) {
    let (backlog, policy) = (&world.current, &world.config.policy);
    let is_asking = |id: &StoryId| state.is_asking(id);
    match reason {
        StopReason::NothingToSelect { blocked } => {
            for one in blocked {
                let waits = one.because != Because::Parked;
                assert!(waits || is_asking(&one.story), "{} is given up unasked", one.story);
            }
            let wanted = |story: &&Story| policy.only.as_ref().is_none_or(|only| *only == story.id);
            let mut ready = backlog.stories.iter().filter(wanted);
            let ready = ready.find(|story| is_ready(story, backlog, &is_asking));
            assert_eq!(ready, None, "there is something to do");
        }
        StopReason::MaxIterations { limit } => assert_eq!(state.attempts.iterations, *limit),
        StopReason::Once => assert!(policy.once),
        StopReason::StoryDone { story } => assert!(backlog.story(story).unwrap().is_settled()),
        StopReason::Aborted => assert!(state.aborted),
        StopReason::BreakerOpen { .. } => {
            assert!(matches!(state.breaker.phase, BreakerPhase::Failed { .. }));
        }
        StopReason::ConsecutiveErrors { limit, .. } => {
            assert!(state.failures.errors(u32::MAX) >= *limit);
        }
        StopReason::Failing { failed, .. } => {
            assert!(state.recent.failures(u32::MAX) >= Some(*failed));
        }
        StopReason::DiskLow { .. } => assert!(world.disk_is_low),
        _ => {}
    }
}

/// One hopeless story never costs the others, and the human hears of it.
fn others_are_done(world: &World, state: &RunState, reason: &StopReason) {
    let Some((hopeless, way)) = &world.scene.hopeless else { return };
    let backlog = &world.current;
    for story in &backlog.stories {
        if !depends(story, hopeless, world) && !story.skipped {
            assert!(story.passes, "{way:?} {hopeless} cost {}: {reason:?}", story.id);
        }
    }
    let settled = backlog.story(hopeless).is_some_and(Story::is_settled);
    let asked = state.questions().any(|(story, _)| story == hopeless);
    let stopped =
        matches!(reason, StopReason::ConsecutiveErrors { .. } | StopReason::Failing { .. });
    let blocked = backlog.story(hopeless).is_some_and(|story| {
        story.depends_on.iter().any(|on| backlog.story(on).is_some_and(|on| on.skipped))
    });
    let heard = settled || asked || stopped || blocked;
    assert!(heard || world.config.policy.on_escalation == OnEscalation::Skip, "{reason:?}");
}

/// On that story, or on one that was skipped.
fn depends(story: &Story, on: &StoryId, world: &World) -> bool {
    let known = |id: &StoryId| world.current.story(id);
    let mut others = story.depends_on.iter().filter_map(known);
    story.id == *on || others.any(|one| one.skipped || depends(one, on, world))
}
