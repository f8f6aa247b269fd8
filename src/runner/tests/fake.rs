//! Effects that only write down what they are asked to do.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use crate::agent::{AgentIdentity, AgentReport};
use crate::decide::samples::base;
use crate::decide::situation::{FreeDisk, StuckDue};
use crate::decide::staging;
use crate::decide::stuck::StuckStep;
use crate::decide::weigh::Gates;
use crate::model::{
    AgentSignals, AttemptStarted, Backlog, Concern, CostCertainty, EndedBy, Escalation, Event,
    EvidenceItem, Footprint, Gate, GateEnd, GateReport, LaneId, Outcome, Policy, Recorded, Request,
    Role, RunMarkers, SpentToday, StoryId, Usage, Wait,
};
use crate::ports::{Activity, Notice, Reporter, View};
use crate::process::Order;
use crate::process::pump::SupervisedEnd;
use crate::runner::config::RunConfig;
use crate::runner::effects::{
    About, Effects, EndedAttempt, GatesOf, Happened, Inspection, Integration, Sighting,
};
use crate::runner::error::RunnerError;
use crate::runner::log::RunLog;
use crate::settings::{Flags, RunSettings};
use crate::store::{Journal, StoreError};
use crate::workspace::Keeping;

pub struct Fake {
    pub backlog: Backlog,
    pub problem: Option<String>,
    pub disk_is_low: bool,
    pub busy: Duration,
    pub stuck: Vec<StuckDue>,
    pub concerns: Vec<Concern>,
    pub requests: Vec<(i64, Option<Request>)>,
    pub happens: VecDeque<Happened>,
    pub did: Vec<String>,
    /// How often the loop looked around.
    pub turns: u32,
    /// How long the last wait was to last at most.
    pub waits: Option<Duration>,
    pub time: Arc<AtomicI64>,
    attempts: u32,
}

impl Fake {
    pub fn new(backlog: Backlog) -> Self {
        Self {
            backlog,
            problem: None,
            disk_is_low: false,
            busy: Duration::ZERO,
            stuck: vec![],
            concerns: vec![],
            requests: vec![],
            happens: VecDeque::new(),
            did: vec![],
            turns: 0,
            waits: None,
            time: Arc::new(AtomicI64::new(1_800_000_000_000)),
            attempts: 0,
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        self.did.push(text.into());
    }

    fn set(&mut self, id: &StoryId, passes: bool, skipped: bool) {
        let found = self.backlog.stories.iter_mut().find(|story| story.id == *id);
        let story = found.unwrap();
        (story.passes, story.skipped) = (passes, skipped);
    }
}

impl Effects for Fake {
    fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    fn backlog_problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    fn refresh(&mut self, _log: &mut RunLog) -> Result<(), RunnerError> {
        Ok(())
    }

    fn observe(&mut self, _log: &mut RunLog) -> Result<Sighting, RunnerError> {
        self.turns += 1;
        assert!(self.turns < 1000, "it decides again and again: {:?}", self.did);
        let bytes = if self.disk_is_low { 10 } else { 1_000_000 };
        Ok(Sighting {
            busy: self.busy,
            disk: Some(FreeDisk { bytes, place: "/".into() }),
            stuck: self.stuck.clone(),
            today: SpentToday::default(),
            backlog_usable: self.problem.is_none(),
        })
    }

    async fn pending_signal(&mut self) -> Option<i32> {
        None
    }

    async fn next(&mut self, _log: &mut RunLog, most: Option<Duration>) -> Happened {
        self.waits = most;
        match self.happens.pop_front() {
            Some(happened) => happened,
            None => std::future::pending().await,
        }
    }

    fn start_attempt(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        lane: LaneId,
    ) -> Result<(), RunnerError> {
        self.attempts += 1;
        let attempt = format!("{story}{}", self.attempts);
        self.note(format!("start {attempt} in {lane}"));
        let start = AttemptStarted {
            attempt,
            iteration: log.state.attempts.next_iteration(),
            role: Role::Implement,
            story: story.clone(),
            title: format!("Title of {story}"),
            agent: "mock".into(),
            lane,
            base: base("first"),
            criteria: None,
            before: Some(base("first")),
            snapshot: None,
            guided: false,
            why: Default::default(),
            allowance: None,
            stable: None,
        };
        log.record(&self.backlog, vec![Event::AttemptStarted(Box::new(start))])
    }

    fn inspect(
        &mut self,
        _log: &mut RunLog,
        _start: &AttemptStarted,
        _ended: &EndedAttempt,
    ) -> Result<Inspection, RunnerError> {
        let footprint = Footprint { changed: Some(true), ..Footprint::default() };
        Ok(Inspection { changed: true, footprint, ..Inspection::default() })
    }

    fn concerns(
        &mut self,
        _log: &mut RunLog,
        _start: &AttemptStarted,
    ) -> Result<Vec<Concern>, RunnerError> {
        Ok(std::mem::take(&mut self.concerns))
    }

    fn forget_attempt(&mut self, _log: &mut RunLog, _attempt: &str) -> Result<(), RunnerError> {
        Ok(())
    }

    fn run_gates(&mut self, _log: &mut RunLog, of: GatesOf) -> Result<(), RunnerError> {
        self.note(match of {
            GatesOf::Baseline => "baseline".to_owned(),
            GatesOf::Claim { story, .. } => format!("gates of {story}"),
        });
        Ok(())
    }

    fn changed_since_base(&mut self, _log: &RunLog, _story: &StoryId) -> Result<bool, RunnerError> {
        Ok(true)
    }

    fn keep_failed(&mut self, _log: &mut RunLog, _story: &StoryId) -> Result<(), RunnerError> {
        Ok(())
    }

    fn integrate(
        &mut self,
        _log: &mut RunLog,
        story: &StoryId,
    ) -> Result<Integration, RunnerError> {
        self.note(format!("integrate {story}"));
        self.set(story, true, false);
        Ok(Integration::Done { commit: "commit".into() })
    }

    fn skip(&mut self, _log: &mut RunLog, story: &StoryId) -> Result<Option<String>, RunnerError> {
        self.note(format!("skip {story}"));
        self.set(story, false, true);
        Ok(None)
    }

    fn shelve(
        &mut self,
        _log: &mut RunLog,
        story: &StoryId,
    ) -> Result<Option<String>, RunnerError> {
        self.note(format!("shelve {story}"));
        Ok(Some(format!("refs/{story}")))
    }

    fn roll_back(
        &mut self,
        _log: &mut RunLog,
        story: &StoryId,
    ) -> Result<Option<String>, RunnerError> {
        self.note(format!("roll back {story}"));
        Ok(None)
    }

    fn disown(&mut self, _log: &mut RunLog, story: &StoryId) {
        self.note(format!("disown {story}"));
    }

    fn mark(
        &mut self,
        _log: &mut RunLog,
        story: &StoryId,
        passes: bool,
        skipped: bool,
    ) -> Result<(), RunnerError> {
        self.note(format!("mark {story}"));
        self.set(story, passes, skipped);
        Ok(())
    }

    fn ask(&mut self, about: About, story: &StoryId, _question: Escalation, _patience: Duration) {
        self.note(match about {
            About::Story(_) => format!("ask about {story}"),
            About::Attempt { attempt, .. } => format!("ask about {attempt}"),
        });
    }

    fn withdraw(&mut self, about: &About) {
        self.note(match about {
            About::Story(story) => format!("withdraw {story}"),
            About::Attempt { attempt, .. } => format!("withdraw {attempt}"),
        });
    }

    fn takes_messages(&self, _attempt: &str) -> bool {
        true
    }

    fn say(&mut self, attempt: &str, text: &str) {
        self.note(format!("say to {attempt}: {text}"));
    }

    fn end_attempt(&mut self, attempt: &str, why: EndedBy) {
        self.note(format!("end {attempt}: {why:?}"));
    }

    fn stuck_step(&mut self, attempt: &str, step: Option<StuckStep>) {
        self.stuck.retain(|due| due.attempt != attempt);
        if step.is_none() {
            self.note(format!("{attempt} gets more time"));
        }
    }

    fn busy(&self, _attempt: &str) -> Duration {
        self.busy
    }

    fn order(&mut self, order: Order) {
        self.note(format!("{order:?} everything"));
    }

    fn listen_for_skip(&mut self, _on: bool) {}

    fn requests(&mut self) -> Result<Vec<(i64, Option<Request>)>, RunnerError> {
        Ok(self.requests.clone())
    }

    fn settle_request(&mut self, number: i64) -> Result<(), RunnerError> {
        self.requests.retain(|(other, _)| *other != number);
        Ok(())
    }
}

/// The journal.
#[derive(Clone, Default)]
pub struct Kept {
    pub events: Rc<RefCell<Vec<Recorded>>>,
}

impl Journal for Kept {
    fn append(&mut self, _run: &str, at: i64, events: &[Event]) -> Result<(), StoreError> {
        let recorded = events.iter().map(|event| Recorded { at, event: event.clone() });
        self.events.borrow_mut().extend(recorded);
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn read(&self, _cursor: i64) -> Result<(Vec<Recorded>, i64), StoreError> {
        Ok((vec![], 0))
    }
}

pub struct Silent;

impl Reporter for Silent {
    fn on_event(&mut self, _recorded: &Recorded, _view: View<'_>) {}

    fn on_activity(&mut self, _activity: &Activity) {}

    fn on_wait(&mut self, _wait: &Wait) {}

    fn on_notice(&mut self, _notice: &Notice) {}
}

pub fn passed() -> EvidenceItem {
    gate(GateEnd::Passed)
}

pub fn gate(end: GateEnd) -> EvidenceItem {
    let (gate, tail) = ("g".into(), String::new());
    EvidenceItem::Gate(GateReport { gate, guards: None, end, elapsed_ms: 1, tail })
}

pub fn ended(attempt: &str, outcome: Outcome, signals: AgentSignals) -> Happened {
    let report = AgentReport {
        outcome,
        signals,
        usage: Usage::default(),
        models: vec![],
        certainty: CostCertainty::Whole,
        subscription: None,
        identity: AgentIdentity::default(),
        context: None,
        denied: BTreeMap::new(),
        final_text: String::new(),
    };
    Happened::AttemptEnded(Box::new(EndedAttempt {
        attempt: attempt.into(),
        report,
        ended_by: None,
        processes: SupervisedEnd { survivors: Some(vec![]), ..SupervisedEnd::default() },
        elapsed: Duration::from_mins(1),
        log_problem: None,
    }))
}

pub fn config(policy: Policy) -> RunConfig {
    let usual = RunSettings::new("", &Flags::default(), &|_| None).unwrap();
    RunConfig {
        policy,
        instructions: String::new(),
        instructions_file: None,
        markers: RunMarkers::default(),
        require_two_claims: false,
        memory: usual.memory,
        timeouts: usual.timeouts,
        stuck: usual.stuck,
        gates: Gates { all: vec![Gate::shell("g")], ..Gates::default() },
        protect: vec![],
        staging: staging::Rules::default(),
        allow_dirty: false,
        settings_file: PathBuf::new(),
        log_limit: 0,
        answer_patience: Duration::from_mins(15),
        human_files: vec![],
        verbose: false,
        backlog_name: "PRD.json".into(),
        backlog_in_tree: None,
        backlog_key: "PRD.json".into(),
        keeping: Keeping { count: None, days: None },
        branch: None,
        branch_is_chosen: false,
        journal_was_damaged: false,
        agent_keeps_allowance: false,
    }
}
