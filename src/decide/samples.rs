//! What the core's tests share: stories in a few words, and a run's history as a chain.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use crate::decide::gate_files::Thing;
use crate::decide::situation::{Observed, Tasks};
use crate::model::{
    AgentSignals, Answer, AttemptCost, AttemptEnded, AttemptStarted, Backlog, Base, Budgets, Cause,
    CompletionMarkers, Escalation, EscalationKind, Event, Footprint, LaneId, Limits, MemoryLimits,
    OnEscalation, OnLimit, Outcome, Policy, Recorded, Role, RunStarted, SpentToday, Story,
    StoryClosed, StoryId, Usage, Verdict,
};
use crate::state::{RunState, StoryState};

pub fn id(text: &str) -> StoryId {
    StoryId::try_from(text).unwrap()
}

pub fn story(name: &str) -> Story {
    Story {
        id: id(name),
        title: format!("Title of {name}"),
        description: String::new(),
        criteria: vec!["It works".into()],
        passes: false,
        skipped: false,
        depends_on: Vec::new(),
        priority: None,
        verify: vec![],
        max_attempts: None,
        markers: CompletionMarkers::default(),
    }
}

pub trait Told {
    fn passing(self) -> Self;
    fn skipped(self) -> Self;
    fn after(self, others: &[&str]) -> Self;
    fn ranked(self, priority: f64) -> Self;
}

impl Told for Story {
    fn passing(self) -> Self {
        Self { passes: true, ..self }
    }

    fn skipped(self) -> Self {
        Self { skipped: true, ..self }
    }

    fn after(self, others: &[&str]) -> Self {
        Self { depends_on: others.iter().map(|other| id(other)).collect(), ..self }
    }

    fn ranked(self, priority: f64) -> Self {
        Self { priority: Some(priority), ..self }
    }
}

pub fn backlog(stories: impl IntoIterator<Item = Story>) -> Backlog {
    Backlog::new("p".into(), String::new(), stories.into_iter().collect())
}

/// No human, and no limits except a story's own attempts.
pub fn policy() -> Policy {
    Policy {
        on_limit: OnLimit::Wait,
        max_iterations: None,
        once: false,
        attempts_before: 0,
        only: None,
        stuck_threshold: NonZeroU32::new(3).unwrap(),
        fresh_start_after: None,
        limits: Limits::default(),
        max_attempts: NonZeroU32::new(5).unwrap(),
        on_escalation: OnEscalation::Ask,
        min_free_disk: None,
        human_present: false,
        budgets: Budgets::default(),
        lanes: NonZeroU32::MIN,
        agent: "mock".into(),
        baseline: false,
        first_looks: Default::default(),
    }
}

pub const MEMORY: MemoryLimits =
    MemoryLimits { outcomes: 5, errors: 5, worked: 3, entry: 500, total: 5000 };

/// Nothing runs, and nothing is in the way.
impl Default for Observed {
    fn default() -> Self {
        Self {
            now: 0,
            busy_ms: 0,
            disk: None,
            stuck: Vec::new(),
            today: SpentToday::default(),
            tasks: Tasks::default(),
            backlog_usable: true,
        }
    }
}

pub fn attended() -> Policy {
    Policy { human_present: true, ..policy() }
}

pub fn failed(error: &str) -> Verdict {
    Verdict::Failed { error: error.into(), fingerprint: error.into() }
}

pub fn escalation(summary: &str) -> Escalation {
    Escalation {
        kind: EscalationKind::Stuck,
        summary: summary.into(),
        context: String::new(),
        options: vec!["left".into(), "right".into()],
        question: "Which?".into(),
        unread: None,
    }
}

pub fn base(tree: &str) -> Base {
    Base { commit: Some(format!("commit of {tree}")), tree: tree.into() }
}

pub fn guidance(text: &str) -> Answer {
    Answer::Guidance { text: text.into() }
}

/// Events as they happen, one after the other; the time is their number.
#[derive(Clone)]
pub struct History {
    pub state: RunState,
    pub events: Vec<Recorded>,
    pub at: i64,
}

impl Default for History {
    fn default() -> Self {
        Self { state: RunState::default(), events: Vec::new(), at: 0 }.run(&[])
    }
}

impl History {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn then(mut self, event: Event) -> Self {
        self.at += 1;
        let recorded = Recorded { at: self.at, event };
        self.state.apply(&recorded);
        self.events.push(recorded);
        self
    }

    /// A new run.
    pub fn run(self, carried: &[&str]) -> Self {
        let run = format!("run {}", self.at);
        self.then(Event::RunStarted(RunStarted {
            description: String::new(),
            run,
            backlog: "PRD.json".into(),
            project: "p".into(),
            agent: "mock".into(),
            branch: None,
            allow_dirty: false,
            boot: None,
            carried: carried.iter().map(|story| id(story)).collect(),
        }))
    }

    pub fn started(self, story: &str) -> Self {
        self.started_in(story, LaneId::HOME)
    }

    pub fn started_in(self, story: &str, lane: LaneId) -> Self {
        let iteration = self.state.attempts.next_iteration();
        let why = self.of(story).why;
        self.then(Event::AttemptStarted(Box::new(AttemptStarted {
            attempt: format!("attempt {iteration}"),
            iteration,
            role: Role::Implement,
            story: id(story),
            title: format!("Title of {story}"),
            agent: "mock".into(),
            lane,
            base: base("first"),
            criteria: None,
            before: Some(base("first")),
            snapshot: None,
            guided: false,
            why,
            allowance: None,
            stable: None,
            held: None,
        })))
    }

    pub fn ended(self, verdict: Verdict, usage: Usage) -> Self {
        self.ended_as(|end| AttemptEnded { verdict, usage, ..end })
    }

    pub fn costing(self, verdict: Verdict, usage: Usage, cost: AttemptCost) -> Self {
        self.ended_as(|end| AttemptEnded { verdict, usage, cost, ..end })
    }

    /// Ends the running attempt with a given end.
    pub fn ended_as(self, change: impl FnOnce(AttemptEnded) -> AttemptEnded) -> Self {
        let under_way = self.state.attempts.iter().next().unwrap().start.clone();
        self.then(Event::AttemptEnded(Box::new(change(AttemptEnded {
            attempt: under_way.attempt,
            story: under_way.story,
            outcome: Outcome::Completed,
            signals: AgentSignals::default(),
            verdict: Verdict::Progress,
            usage: Usage::default(),
            elapsed_ms: 100,
            head: Some("head after".into()),
            concerns: vec![],
            agent_version: None,
            model: None,
            said: None,
            context: None,
            triggers: vec![],
            footprint: Footprint::default(),
            cost: AttemptCost::default(),
            denied: BTreeMap::new(),
        }))))
    }

    /// An attempt with last words.
    pub fn said(self, story: &str, verdict: Verdict, words: &str) -> Self {
        let mut ended = self.started(story).ended(verdict, Usage::default());
        let last = ended.events.pop().unwrap();
        let Event::AttemptEnded(end) = last.event else { unreachable!() };
        let end = AttemptEnded { said: Some(words.to_owned()), ..*end };
        let event = Event::AttemptEnded(Box::new(end));
        ended.events.push(Recorded { at: last.at, event });
        let mut state = RunState::default();
        ended.events.iter().for_each(|recorded| state.apply(recorded));
        Self { state, ..ended }
    }

    pub fn tried(self, story: &str, verdict: Verdict) -> Self {
        self.started(story).ended(verdict, Usage::default())
    }

    /// An attempt that leaves this footprint.
    pub fn left(self, story: &str, verdict: Verdict, footprint: Footprint) -> Self {
        self.started(story).ended_as(|end| AttemptEnded { verdict, footprint, ..end })
    }

    pub fn tried_often(self, story: &str, verdict: &Verdict, times: u32) -> Self {
        (0..times).fold(self, |history, _| history.tried(story, verdict.clone()))
    }

    pub fn planned(self, story: &str) -> Self {
        let attempt = self.last_attempt();
        self.then(Event::ClosePlanned { attempt, story: id(story) })
    }

    pub fn closed(self, story: &str) -> Self {
        let attempt = self.last_attempt();
        let commit = format!("commit of {story}");
        self.then(Event::StoryClosed(StoryClosed {
            attempt,
            story: id(story),
            commit,
            change: None,
        }))
    }

    pub fn raised(self, story: &str) -> Self {
        self.then(Event::QuestionRaised { story: id(story), question: escalation("stuck") })
    }

    pub fn answered(self, story: &str, answer: Answer) -> Self {
        self.then(Event::QuestionAnswered { story: id(story), answer })
    }

    pub fn parked(self, story: &str) -> Self {
        self.then(Event::StoryParked { story: id(story) })
    }

    pub fn shelved(self, story: &str, reference: Option<&str>) -> Self {
        let reference = reference.map(str::to_owned);
        self.then(Event::WorkSetAside { story: id(story), reference, claimed: false })
    }

    pub fn returning(self, story: &str, why: Cause) -> Self {
        self.then(Event::ReturnPlanned { story: id(story), to: base("first"), why })
    }

    pub fn returned(self, story: &str, reference: Option<&str>) -> Self {
        let reference = reference.map(str::to_owned);
        self.then(Event::Returned { story: id(story), reference })
    }

    pub fn skipped(self, story: &str) -> Self {
        self.then(Event::StorySkipped { story: id(story), commit: None })
    }

    fn last_attempt(&self) -> String {
        format!("attempt {}", self.state.attempts.next_iteration() - 1)
    }

    /// The story whose work is in the home lane.
    pub fn in_home(&self) -> Option<StoryId> {
        self.state.lanes.occupant(LaneId::HOME).cloned()
    }

    pub fn of(&self, story: &str) -> StoryState {
        self.state.story(&id(story)).cloned().unwrap_or_default()
    }
}

/// A work tree with these files; a text that begins with `->` is a link.
pub fn sight<'a>(files: &'a [(&str, &str)]) -> impl Fn(&Path) -> Option<Thing> + 'a {
    move |path| {
        let file = files.iter().find(|(name, _)| Path::new(name) == path);
        let is_folder = || files.iter().any(|(name, _)| Path::new(name).starts_with(path));
        match file {
            Some((_, text)) => Some(match text.strip_prefix("->") {
                Some(target) => Thing::Link(target.into()),
                None => Thing::File((*text).to_owned()),
            }),
            None => is_folder().then_some(Thing::Folder),
        }
    }
}
