//! Effects that only write down what they are asked to do.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use crate::agent::{AgentIdentity, AgentReport};
use crate::decide::samples::{base, story};
use crate::decide::situation::{FreeDisk, LaneJob, Observed, StuckDue, Tasks};
use crate::decide::stuck::StuckStep;
use crate::decide::weigh::Gates;
use crate::model::{
    AgentSignals, Approval, AttemptStarted, Backlog, CostCertainty, EndedBy, Escalation, Event,
    EvidenceItem, Gate, GateEnd, GateReport, LaneId, Notice, Outcome, Policy, Recorded, Request,
    Role, RunMarkers, SettingsText, SpentToday, StoryChange, StoryId, Usage, Wait, millis,
};
use crate::ports::{Activity, Reporter, View};
use crate::process::Order;
use crate::process::pump::SupervisedEnd;
use crate::runner::config::RunConfig;
use crate::runner::effects::{
    About, Effects, EndedAttempt, GatesFound, GatesOf, Happened, Inspection, Integration, JobResult,
};
use crate::runner::error::{Result, RunnerError};
use crate::runner::log::RunLog;
use crate::runner::task::EventSink;
use crate::settings::{Flags, RunSettings};
use crate::store::{Journal, StoreError, SyncPoint};
use crate::workspace::Difference;

pub struct Fake {
    /// What is on disk; the run knows it from the next refresh on.
    pub file: Backlog,
    backlog: Backlog,
    pub problem: Option<String>,
    pub disk_is_low: bool,
    pub busy: Duration,
    pub stuck: Vec<StuckDue>,
    pub requests: Vec<(i64, Option<Request>)>,
    pub happens: VecDeque<Happened>,
    /// Jobs that are under way do not end by themselves.
    pub jobs_last: bool,
    pub jobs: Vec<(LaneJob, StoryId, LaneId)>,
    /// What a job recorded on its way.
    records: Vec<Event>,
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
            file: backlog.clone(),
            backlog,
            problem: None,
            disk_is_low: false,
            busy: Duration::ZERO,
            stuck: vec![],
            requests: vec![],
            happens: VecDeque::new(),
            jobs_last: false,
            jobs: vec![],
            records: vec![],
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
        for backlog in [&mut self.file, &mut self.backlog] {
            let story = backlog.stories.iter_mut().find(|story| story.id == *id).unwrap();
            (story.passes, story.skipped) = (passes, skipped);
        }
    }

    /// The oldest job under way ends.
    pub fn end_job(&mut self) {
        let (job, story, lane) = self.jobs.remove(0);
        let result = match job {
            LaneJob::Prepare => JobResult::Ready,
            LaneJob::Keep => JobResult::Kept(None),
            LaneJob::Land => {
                let lane = LaneId::HOME;
                let base = Event::BaseSet { story: story.clone(), base: base("tip"), lane };
                let reference = String::new();
                let there =
                    Event::WorkBroughtBack { story: story.clone(), reference, conflicts: vec![] };
                self.records.extend([base, there]);
                JobResult::Landed { clean: true }
            }
            LaneJob::Integrate => {
                self.set(&story, true, false);
                JobResult::Integrated({
                    let (commit, change) = ("commit".into(), StoryChange::default());
                    Integration::Done { commit, change }
                })
            }
            LaneJob::Skip => {
                self.set(&story, false, true);
                JobResult::Skipped(None)
            }
            LaneJob::Shelve => JobResult::Shelved(Some(format!("refs/{story}"))),
            LaneJob::RollBack => JobResult::RolledBack(None),
        };
        self.happens.push_front(Happened::JobEnded { lane, story, result });
    }
}

impl Effects for Fake {
    fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    fn restore_backlog(&mut self, _log: &mut RunLog) -> Result<()> {
        self.problem = None;
        self.did.push("restore the backlog".to_owned());
        Ok(())
    }

    fn backlog_problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    fn refresh(&mut self, _log: &mut RunLog) -> Result<()> {
        self.backlog.clone_from(&self.file);
        Ok(())
    }

    fn observe(&mut self, log: &mut RunLog) -> Result<Observed> {
        self.turns += 1;
        assert!(self.turns < 1000, "it decides again and again: {:?}", self.did);
        let bytes = if self.disk_is_low { 10 } else { 1_000_000 };
        Ok(Observed {
            now: log.now(),
            busy_ms: millis(self.busy),
            disk: Some(FreeDisk { bytes, place: "/".into() }),
            stuck: self.stuck.clone(),
            today: SpentToday::default(),
            backlog_usable: self.problem.is_none(),
            tasks: Tasks::default(),
        })
    }

    async fn pending_interrupt(&mut self) -> Option<i32> {
        None
    }

    async fn next(&mut self, log: &mut RunLog, most: Option<Duration>) -> Result<Happened> {
        self.waits = most;
        if !self.jobs_last && !self.jobs.is_empty() {
            self.end_job();
        }
        log.record(&self.backlog, std::mem::take(&mut self.records))?;
        match self.happens.pop_front() {
            Some(happened) => Ok(happened),
            None => std::future::pending().await,
        }
    }

    fn start_attempt(&mut self, log: &mut RunLog, story: &StoryId, lane: LaneId) -> Result<()> {
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
            held: None,
        };
        log.record(&self.backlog, vec![Event::AttemptStarted(Box::new(start))])
    }

    fn start_job(
        &mut self,
        _log: &mut RunLog,
        job: LaneJob,
        story: &StoryId,
        lane: LaneId,
    ) -> Result<()> {
        match job {
            LaneJob::Prepare | LaneJob::Keep => {}
            LaneJob::Land => self.note(format!("land {story}")),
            LaneJob::Integrate => self.note(format!("integrate {story}")),
            LaneJob::Skip => self.note(format!("skip {story}")),
            LaneJob::Shelve => self.note(format!("shelve {story}")),
            LaneJob::RollBack => self.note(format!("roll back {story}")),
        }
        assert!(self.jobs.iter().all(|(.., busy)| *busy != lane), "lane {lane} is in use");
        self.jobs.push((job, story.clone(), lane));
        Ok(())
    }

    fn gates_are_over(&mut self, _log: &mut RunLog) -> Result<()> {
        Ok(())
    }

    fn attempt_is_over(&mut self, _log: &mut RunLog, _ended: &EndedAttempt) -> Result<()> {
        Ok(())
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn forget_attempt(&mut self, _log: &mut RunLog, _attempt: &str) -> Result<()> {
        Ok(())
    }

    fn run_gates(&mut self, _log: &mut RunLog, of: GatesOf) -> Result<()> {
        self.note(match of {
            GatesOf::Baseline => "baseline".to_owned(),
            GatesOf::FirstLook { story } => format!("first look at {story}"),
            GatesOf::Claim { story, .. } => format!("gates of {story}"),
        });
        Ok(())
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
    ) -> Result<bool> {
        self.note(format!("mark {story}"));
        self.set(story, passes, skipped);
        Ok(true)
    }

    fn ask(&mut self, about: About, story: &StoryId, _question: Escalation, _patience: Duration) {
        self.note(match about {
            About::Story(_) => format!("ask about {story}"),
            About::Attempt { attempt, .. } => format!("ask about {attempt}"),
        });
    }

    fn withdraw(&mut self, about: &About, at_once: bool) {
        let how = if at_once { "close" } else { "withdraw" };
        self.note(match about {
            About::Story(story) => format!("{how} {story}"),
            About::Attempt { attempt, .. } => format!("{how} {attempt}"),
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

    fn requests(&mut self, _log: &mut RunLog) -> Result<Vec<(i64, Option<Request>)>> {
        Ok(self.requests.clone())
    }

    fn approved(&mut self, _log: &mut RunLog, _all: Vec<Approval>) -> Result<()> {
        Ok(())
    }

    fn settle_request(&mut self, number: i64) -> Result<()> {
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

pub struct Silent;

impl Reporter for Silent {
    fn on_event(&mut self, _recorded: &Recorded, _view: View<'_>) {}

    fn on_activity(&mut self, _activity: &Activity) {}

    fn on_wait(&mut self, _wait: &Wait) {}

    fn on_notice(&mut self, _notice: &Notice) {}
}

/// What a job records and tells.
#[derive(Default)]
pub struct Heard {
    pub events: Vec<Event>,
    pub notices: Vec<Notice>,
    /// Nothing can be recorded.
    pub is_deaf: bool,
}

impl EventSink for Heard {
    fn record(&mut self, event: Event) -> Result<()> {
        if self.is_deaf {
            return Err(RunnerError::TaskLost("nobody listens".into()));
        }
        self.events.push(event);
        Ok(())
    }

    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

/// The story changed something.
pub fn changed() -> GatesFound {
    GatesFound { changed: true, ..GatesFound::default() }
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
    let difference = Difference { committed: false, paths: vec!["work.rs".into()] };
    Happened::AttemptEnded(Box::new(EndedAttempt {
        attempt: attempt.into(),
        report,
        ended_by: None,
        processes: SupervisedEnd { survivors: Some(vec![]), ..SupervisedEnd::default() },
        elapsed: Duration::from_mins(1),
        log_problem: None,
        inspection: Inspection { difference: Some(difference), ..Inspection::default() },
        at_start: story(attempt.trim_end_matches(char::is_numeric)),
    }))
}

pub fn config(policy: Policy) -> RunConfig {
    let mut settings = RunSettings::new("", &Flags::default(), &|_| None).unwrap();
    settings.answer_timeout = Duration::from_mins(15);
    RunConfig {
        settings,
        settings_text: SettingsText::default(),
        policy,
        instructions: String::new(),
        instructions_file: None,
        markers: RunMarkers::default(),
        gates: Gates { all: vec![Gate::shell("g")], ..Gates::default() },
        allow_dirty: false,
        held: Vec::new(),
        human_files: vec![],
        verbose: false,
        backlog_name: "PRD.json".into(),
        backlog_in_tree: None,
        backlog_key: "PRD.json".into(),
        branch: None,
        journal_was_damaged: false,
        agent_keeps_allowance: false,
    }
}
