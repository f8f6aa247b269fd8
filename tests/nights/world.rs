//! What the dispatcher acts on: agents, gates, files and a human that exist in a queue only.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ralph::decide::stuck::{StuckPolicy, StuckStep, StuckTracker};
use ralph::model::{
    Backlog, EndedBy, Event, LaneId, Outcome, Recorded, Request, Story, StoryId, Usd,
};
use ralph::ports::Asked;
use ralph::runner::effects::{About, GatesOf};
use ralph::runner::log::RunLog;
use ralph::runner::{RunConfig, RunnerError};
use ralph::state::Marks;
use ralph::store::{Journal, Store, StoreError, StorePlace, SyncPoint};

use super::attacks::{Attack, Attacker, Malice};
use super::branch::{Commit, Proof, Work};
use super::dice::Dice;
use super::human::Deed;
use super::jobs::RunningJob;
use super::reply::Reply;
use super::scene::Scene;

/// When every night begins.
pub const BEGIN: i64 = 1_800_000_000_000;
pub const SECOND: i64 = 1000;
pub const MINUTE: i64 = 60 * SECOND;

/// A moment, and how many were planned before.
pub type Slot = (i64, u64);

/// What will happen unless something else happens first.
pub enum Planned {
    AttemptEnds(String),
    GatesEnd(GatesOf),
    JobEnds(LaneId),
    Answer(About, Asked),
    /// What a human does by himself.
    Deed(Deed),
    Attack(Attacker, Attack),
    Crash,
}

pub struct Running {
    pub story: StoryId,
    pub reply: Reply,
    pub began: i64,
    pub slot: Slot,
    pub ended_by: Option<EndedBy>,
    pub allowance: Option<Usd>,
    pub at_start: Story,
    pub tracker: StuckTracker,
    /// When something is due about it, if it makes no progress.
    pub look_at: Option<i64>,
}

pub struct RunningGates {
    pub of: GatesOf,
    pub began: i64,
    pub slot: Slot,
    pub stopped: bool,
}

/// How much longer ralph lives, in steps that could be its last.
#[derive(Clone, Default)]
pub struct Life(Rc<Cell<Option<u32>>>);

impl Life {
    pub fn ends_in(&self, steps: u32) {
        self.0.set(Some(steps));
    }

    pub fn begins_anew(&self) {
        self.0.set(None);
    }

    pub fn is_over(&self) -> bool {
        self.0.get() == Some(0)
    }

    /// False: it ended before.
    fn goes_on(&self) -> bool {
        self.0.set(self.0.get().map(|left| left.saturating_sub(1)));
        !self.is_over()
    }
}

#[derive(Clone, Default)]
pub struct Memory {
    pub events: Rc<RefCell<Vec<Recorded>>>,
    pub life: Life,
}

impl Journal for Memory {
    fn append(&mut self, _run: &str, at: i64, events: &[Event]) -> Result<(), StoreError> {
        if !self.life.goes_on() {
            return Err(nowhere());
        }
        let recorded = events.iter().map(|event| Recorded { at, event: event.clone() });
        self.events.borrow_mut().extend(recorded);
        Ok(())
    }

    fn check_place(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn sync_point(&self) -> SyncPoint {
        SyncPoint::default()
    }

    fn read(&self, _cursor: i64) -> Result<(Vec<Recorded>, i64), StoreError> {
        Ok((vec![], 0))
    }
}

/// What a journal fails with.
fn nowhere() -> StoreError {
    let [shared, own, anchor] = ["/dev/null/ralph"; 3].map(Into::into);
    let store = Store::new(StorePlace { shared, own, work_tree: String::new(), anchor });
    match store.lease("") {
        Err(error) => error,
        Ok(_) => unreachable!("a folder in a file"),
    }
}

pub struct World {
    pub scene: Scene,
    pub config: Arc<RunConfig>,
    pub dice: Dice,
    pub malice: Malice,
    pub clock: Arc<AtomicI64>,
    pub journal: Memory,
    pub queue: BTreeMap<Slot, Planned>,
    planned: u64,
    /// The backlog as it is on the disk, and why it cannot be read.
    pub file: Backlog,
    pub broken: bool,
    /// The last good version was written: what waits for it goes on at the next tick.
    pub is_restored: bool,
    /// Maybe not by the human.
    pub broken_by_attack: bool,
    /// As the run knows it.
    pub current: Backlog,
    pub problem: Option<String>,
    pub marks_are_suspect: bool,
    pub running: BTreeMap<String, Running>,
    pub gates: Vec<RunningGates>,
    pub jobs: BTreeMap<LaneId, RunningJob>,
    pub questions: BTreeMap<About, Slot>,
    /// The human answers one question after the other.
    pub human_is_free_at: i64,
    pub requests: Vec<(i64, Request)>,
    pub asked_for: i64,
    pub listens: bool,
    pub disk_is_low: bool,
    pub is_interrupted: bool,
    /// Whose unfinished work is in which lane, whatever the run thinks.
    pub trees: BTreeMap<LaneId, StoryId>,
    /// Stories with something to lose.
    pub changed: BTreeSet<StoryId>,
    pub shelved: BTreeMap<StoryId, String>,
    /// What each attempt came to, for its gates.
    pub claims: BTreeMap<String, (bool, String)>,
    /// Attempts whose gates passed.
    pub proven: BTreeMap<String, Proof>,
    /// What stories changed.
    pub work: BTreeMap<StoryId, Work>,
    pub versions: u64,
    /// A claim's work before its gates, which run now.
    pub before_gates: Option<(StoryId, Work)>,
    /// Stories that an attack removed from the file, and from where.
    pub taken_out: Vec<(usize, Story)>,
    /// Stories whose claims a human accepted.
    pub accepted: BTreeSet<StoryId>,
    /// Stories that a human settled, one way or the other.
    pub settled: BTreeSet<StoryId>,
    /// Stories that a human removed.
    pub removed: BTreeSet<StoryId>,
    /// The commits that close stories.
    pub commits: BTreeMap<StoryId, String>,
    /// All commits since the start.
    pub branch: Vec<Commit>,
    pub attempts: u32,
    pub steps: u32,
}

impl World {
    pub fn new(scene: Scene, mut dice: Dice, malice: Malice) -> Self {
        let disk_is_low = dice.percent(4);
        let backlog = scene.backlog.clone();
        let config = Arc::new(scene.config(scene.policy.lanes, 0));
        Self {
            config,
            scene,
            dice,
            malice,
            clock: Arc::new(AtomicI64::new(BEGIN)),
            journal: Memory::default(),
            queue: BTreeMap::new(),
            planned: 0,
            file: backlog.clone(),
            broken: false,
            is_restored: false,
            broken_by_attack: false,
            current: backlog,
            problem: None,
            marks_are_suspect: false,
            running: BTreeMap::new(),
            gates: Vec::new(),
            jobs: BTreeMap::new(),
            questions: BTreeMap::new(),
            human_is_free_at: 0,
            requests: Vec::new(),
            asked_for: 0,
            listens: false,
            disk_is_low,
            is_interrupted: false,
            trees: BTreeMap::new(),
            changed: BTreeSet::new(),
            shelved: BTreeMap::new(),
            claims: BTreeMap::new(),
            proven: BTreeMap::new(),
            work: BTreeMap::new(),
            versions: 0,
            before_gates: None,
            taken_out: Vec::new(),
            branch: Vec::new(),
            accepted: BTreeSet::new(),
            settled: BTreeSet::new(),
            removed: BTreeSet::new(),
            commits: BTreeMap::new(),
            attempts: 0,
            steps: 0,
        }
    }

    pub fn now(&self) -> i64 {
        self.clock.load(Ordering::Relaxed)
    }

    pub fn pass_time(&self, until: i64) {
        self.clock.fetch_max(until, Ordering::Relaxed);
    }

    pub fn plan(&mut self, at: i64, what: Planned) -> Slot {
        self.planned += 1;
        let slot = (at.max(self.now()), self.planned);
        self.queue.insert(slot, what);
        slot
    }

    /// Not later than that.
    pub fn hasten(&mut self, slot: Slot, at: i64) -> Slot {
        match self.queue.remove(&slot) {
            Some(what) => self.plan(slot.0.min(at), what),
            None => slot,
        }
    }

    /// ralph may die before and after everything that it does.
    pub fn step(&mut self) -> Result<(), RunnerError> {
        if self.journal.life.goes_on() {
            return Ok(());
        }
        Err(std::io::Error::other("ralph died").into())
    }

    /// The process is gone, with everything that it started.
    pub fn die(&mut self) {
        let is_humans = |what: &Planned| matches!(what, Planned::Deed(_) | Planned::Crash);
        self.queue.retain(|_, what| is_humans(what));
        self.running.clear();
        self.gates.clear();
        self.jobs.clear();
        self.questions.clear();
        self.requests.clear();
        self.listens = false;
        self.is_interrupted = false;
        self.journal.life.begins_anew();
    }

    pub fn record(&self, log: &mut RunLog, event: Event) -> Result<(), RunnerError> {
        log.record(&self.current, vec![event])
    }

    pub fn lane_of(&self, story: &StoryId) -> Option<LaneId> {
        self.trees.iter().find(|(_, occupant)| *occupant == story).map(|(lane, _)| *lane)
    }

    /// Work leaves its lane and is kept; None when there is none.
    pub fn take_out(&mut self, story: &StoryId) -> Option<String> {
        self.trees.retain(|_, occupant| occupant != story);
        if self.changed.remove(story) {
            let reference = format!("refs/{story}/{}", self.planned);
            self.planned += 1;
            self.shelved.insert(story.clone(), reference);
        }
        self.shelved.get(story).cloned()
    }

    /// As the real one does it: what is not the story's first.
    pub fn unshelve(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        lane: LaneId,
    ) -> Result<(), RunnerError> {
        let known = log.state.story(story).and_then(|known| known.work.shelved().cloned());
        let Some(reference) = known else {
            assert!(!self.shelved.contains_key(story), "the work of {story} is lost");
            return Ok(());
        };
        if let Some(kept) = self.shelved.get(story) {
            assert_eq!(*kept, reference, "the work of {story} is lost");
        }
        let base = super::effects::base();
        self.record(log, Event::BaseSet { story: story.clone(), base, lane })?;
        self.step()?;
        if self.shelved.remove(story).is_some() {
            self.changed.insert(story.clone());
        }
        self.trees.insert(lane, story.clone());
        let conflicts = self.dice.percent(10) && !self.scene.others_are_easy;
        let conflicts = conflicts.then(|| "a.rs".to_owned()).into_iter().collect();
        self.record(log, Event::WorkBroughtBack { story: story.clone(), reference, conflicts })
    }

    pub fn show_marks(&mut self, marks: &Marks) {
        set_marks(&mut self.current, marks);
    }

    /// What was spent since midnight, in all runs.
    pub fn spent_today(&self, began: i64) -> Usd {
        let events = self.journal.events.borrow();
        let today = events.iter().rev().take_while(|recorded| recorded.at >= began);
        let counted = today.filter_map(|recorded| match &recorded.event {
            Event::AttemptEnded(end) => Some(end.cost.counted(&end.usage)),
            Event::AttemptLost { counted, .. } => Some(*counted),
            _ => None,
        });
        counted.sum()
    }

    /// When something has to be looked at, though nothing ends.
    pub fn next_look(&self, log: &RunLog) -> Option<i64> {
        let now = self.now();
        let stuck = self.running.values().filter_map(|running| running.look_at);
        let broken = self.broken.then_some(now + MINUTE);
        let looks = stuck.chain(broken).chain(self.time_is_over_at(log));
        looks.filter(|at| *at > now).min()
    }

    fn time_is_over_at(&self, log: &RunLog) -> Option<i64> {
        let limit = self.config.policy.limits.max_run_time?;
        let workers = u32::try_from(self.running.len() + self.gates.len()).unwrap();
        let worked = Duration::from_millis(log.state.work_time.ms()) + self.busy_all();
        let left = limit.checked_sub(worked)?.checked_div(workers)?;
        Some(self.now() + i64::try_from(left.as_millis()).unwrap() + 1)
    }

    pub fn busy_all(&self) -> Duration {
        let began = self.running.values().map(|running| running.began);
        let began = began.chain(self.gates.iter().map(|gates| gates.began));
        began.map(|began| self.since(began)).sum()
    }

    pub fn since(&self, began: i64) -> Duration {
        Duration::from_millis(u64::try_from(self.now() - began).unwrap())
    }
}

impl Running {
    pub fn end(&mut self, why: EndedBy) {
        self.ended_by.get_or_insert(why);
        self.reply.outcome = match why {
            EndedBy::Stuck => Outcome::Stuck,
            _ => Outcome::EndedByUs,
        };
        self.reply.usage.cost_usd = None;
        self.reply.signals = Default::default();
    }

    pub fn stuck_step(&mut self, step: Option<StuckStep>, now: i64, policy: &StuckPolicy) {
        let busy = Duration::from_millis(u64::try_from(now - self.began).unwrap());
        match step {
            Some(step) => self.tracker.take(step, busy),
            None => self.tracker.reset(busy),
        }
        let rest = match step {
            None => policy.stuck_after,
            Some(StuckStep::Nudge) => Some(policy.ask_after),
            Some(StuckStep::Ask) => Some(policy.answer),
            Some(StuckStep::Terminate) => None,
        };
        let rest = rest.filter(|_| self.reply.is_stuck);
        self.look_at = rest.map(|rest| now + i64::try_from(rest.as_millis()).unwrap());
    }
}

pub fn set_marks(backlog: &mut Backlog, marks: &Marks) {
    for story in &mut backlog.stories {
        story.passes = marks.passing.contains(&story.id);
        story.skipped = marks.skipped.contains(&story.id);
    }
}

pub fn seen(marks: &Marks) -> Event {
    Event::MarksSeen {
        passing: marks.passing.iter().cloned().collect(),
        skipped: marks.skipped.iter().cloned().collect(),
    }
}
