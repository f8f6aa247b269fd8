//! One night from its beginning to its end, through as many processes as it takes.

use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::tz::TimeZone;
use ralph::model::{Event, Recorded, RunStarted, StopReason, StoryId};
use ralph::ports::{Clock, Moment};
use ralph::runner::effects::Effects;
use ralph::runner::log::{JournalHistory, RunLog};
use ralph::runner::{Dispatcher, Ending, RunnerError};
use ralph::state::{RunState, Stage};

use super::attacks::Malice;
use super::check::{self, Checks};
use super::dice::Dice;
use super::scene::{AGENT, Scene};
use super::world::{MINUTE, World, seen, set_marks};

/// No night needs more processes.
const MOST_PROCESSES: u32 = 100;

/// Which night is played, and how closely it is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Play {
    pub seed: u64,
    pub lanes: u32,
    /// Every event is read back from JSON, folded and compared.
    pub thorough: bool,
}

/// What came of a night.
pub struct Played {
    pub attempts: u32,
    pub processes: u32,
    /// How often an agent or a gate attacked.
    pub attacks: u32,
    /// The most attempts at the same time.
    pub at_once: usize,
    pub events: Vec<Recorded>,
    pub reason: StopReason,
}

pub fn play(play: Play) -> Played {
    let lanes = NonZeroU32::new(play.lanes).unwrap();
    let mut dice = Dice::new(play.seed);
    let scene = Scene::draw(lanes, &mut dice);
    let checks = Checks::new(&scene, play.thorough);
    let is_costly = !scene.others_are_easy;
    let mut world = World::new(scene, dice, Malice::draw(play.seed, is_costly));
    world.plan_deeds();
    for process in 1..=MOST_PROCESSES {
        let (next, ending) = run(world, &checks);
        world = next;
        if let Some((state, reason)) = ending {
            check::end(&world, &state, &reason, &checks);
            let events = world.journal.events.take();
            assert_eq!(RunState::of(&events), state, "the journal says something else");
            let at_once = most_at_once(&events);
            return Played {
                attempts: world.attempts,
                processes: process,
                attacks: world.malice.count,
                at_once,
                events,
                reason,
            };
        }
    }
    unreachable!("the night does not end")
}

/// One process of the run; None: it was ended before the run was.
fn run(mut world: World, checks: &Checks) -> (World, Option<(RunState, StopReason)>) {
    (world.broken, world.broken_by_attack) = (false, false);
    let time = Arc::clone(&world.clock);
    let now = move || Moment { wall: time.load(Ordering::Relaxed), steady: Duration::ZERO };
    let clock = Clock::new(TimeZone::UTC, now);
    let journal = world.journal.clone();
    let mut log = RunLog::new(Box::new(journal), Box::new(checks.clone()), clock);
    log.replay(JournalHistory::of(world.journal.events.borrow().clone()));
    let usual = world.scene.policy.lanes;
    let lanes = match world.scene.lanes_vary {
        true => NonZeroU32::new(world.dice.count(1, 2 * usual.get())).unwrap(),
        false => usual,
    };
    world.config = Arc::new(world.scene.config(lanes, log.state.attempts.started));
    checks.policy(&world.config.policy);
    if world.scene.crashes > 0 && world.dice.percent(50) {
        world.scene.crashes -= 1;
        let steps = world.dice.count(1, 300);
        world.journal.life.ends_in(steps);
    }
    if let Err(error) = begin(&mut world, &mut log) {
        return (survive(world, error), None);
    }
    let config = Arc::clone(&world.config);
    let mut dispatcher = Dispatcher::new(world, log, config);
    let polled = pin!(dispatcher.run()).poll(&mut Context::from_waker(Waker::noop()));
    let Dispatcher { effects: world, log, .. } = dispatcher;
    match polled {
        Poll::Ready(Ok(Ending::Stopped(reason))) => (world, Some((log.state, reason))),
        Poll::Ready(Err(error)) => (survive(world, error), None),
        // Interrupted, or dropped in the middle of its wait.
        Poll::Ready(Ok(Ending::Interrupted { .. })) | Poll::Pending => (come_back(world), None),
    }
}

fn come_back(mut world: World) -> World {
    world.die();
    world.pass_time(world.now() + MINUTE);
    world
}

fn survive(world: World, error: RunnerError) -> World {
    assert!(world.journal.life.is_over(), "{error}");
    come_back(world)
}

/// What `ralph run` does before the loop.
fn begin(world: &mut World, log: &mut RunLog) -> Result<(), RunnerError> {
    log.run = "night".into();
    if !log.state.is_open() {
        let started = RunStarted {
            run: "night".into(),
            backlog: "PRD.json".into(),
            project: world.file.project.clone(),
            description: String::new(),
            agent: AGENT.into(),
            branch: None,
            allow_dirty: false,
            boot: None,
            carried: vec![],
        };
        let events = vec![Event::RunStarted(started), seen(&world.marks_in_file())];
        return log.record(&world.file, events);
    }
    world.clean_up(log)?;
    world.marks_are_suspect = log.state.cut_off;
    if log.state.cut_off {
        set_marks(&mut world.file, &log.state.marks);
    }
    world.current = world.file.clone();
    shelve_stale_work(world, log)?;
    let counted = log.state.costs.assumed();
    let lost = log.state.attempts.iter().map(|flight| Event::AttemptLost {
        attempt: flight.start.attempt.clone(),
        story: flight.start.story.clone(),
        counted,
    });
    let events: Vec<Event> = lost.chain([Event::RunContinued]).collect();
    log.record(&world.file, events)
}

/// Of stories that were settled, or went away, while no process ran.
fn shelve_stale_work(world: &mut World, log: &mut RunLog) -> Result<(), RunnerError> {
    let is_open = |id: &StoryId| world.file.story(id).is_some_and(|story| !story.is_settled());
    let accepted = log.state.stories.iter();
    let accepted = accepted.filter(|(_, known)| matches!(known.stage, Stage::Accepted { .. }));
    let in_lanes = log.state.lanes.iter().map(|(_, story)| story);
    let stale = in_lanes.chain(accepted.map(|(id, _)| id)).filter(|id| !is_open(id));
    let mut stale: Vec<StoryId> = stale.cloned().collect();
    stale.sort();
    stale.dedup();
    for story in stale {
        let event = if world.file.story(&story).is_some_and(|story| story.passes) {
            world.disown(log, &story);
            Event::WorkLetGo { story }
        } else {
            let reference = world.take_out(&story);
            Event::WorkSetAside { story, reference, claimed: false }
        };
        world.record(log, event)?;
    }
    Ok(())
}

fn most_at_once(events: &[Recorded]) -> usize {
    let mut state = RunState::default();
    let counts = events.iter().map(|recorded| {
        state.apply(recorded);
        state.attempts.count()
    });
    counts.max().unwrap_or_default()
}
