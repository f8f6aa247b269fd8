//! The loop: decide, start, wait, conclude, record.
//!
//! It touches no file, process or terminal, so tests and simulations run the same code. The
//! loop has one wait, in [`Effects::next`]; everything that takes time is a task.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::decide::next::decide;
use crate::decide::situation::{Action, LaneJob, Observed, Tasks};
use crate::model::{
    AgentNotice, Backlog, Cause, EndCause, EndedBy, Event, LaneId, Notice, SpentToday, StopReason,
    StoryId, Wait,
};
use crate::process::Order;
use crate::runner::RunConfig;
use crate::runner::effects::{About, Effects, GatesOf, Happened, JobResult, KeptWork};
use crate::runner::error::Result;
use crate::runner::log::RunLog;

/// How long the backlog may be broken while a story waits to be closed.
const REPAIR_PATIENCE: Duration = Duration::from_mins(1);

/// How a run's process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The run is over.
    Stopped(StopReason),
    /// The run stays open; the next `ralph run` continues it.
    Interrupted { signal: i32 },
}

pub struct Dispatcher<E> {
    pub effects: E,
    pub log: RunLog,
    pub config: Arc<RunConfig>,
    pub(super) tasks: Tasks,
    /// Open questions, and whether they were withdrawn, and if so, at once.
    pub(super) questions: BTreeMap<About, Option<bool>>,
    /// The run stops as soon as every menu is closed.
    pub(super) is_stopping: bool,
    /// The first interrupt, and how many came.
    pub(super) interrupted: Option<i32>,
    pub(super) interrupts: u32,
    /// Since the second interrupt.
    pub(super) killed_at: Option<i64>,
    /// Since when a decided mark cannot be written.
    unwritable_since: Option<i64>,
    /// What ended last could not be recorded.
    pub(super) is_unrecorded: bool,
    /// What was spent today, at the last check.
    pub(super) today: SpentToday,
}

/// What follows an action.
pub(super) enum Turn {
    Decide,
    Wait(Option<Wait>),
    /// With the event that says so.
    End(Ending, Event),
}

impl<E: Effects> Dispatcher<E> {
    pub fn new(effects: E, log: RunLog, config: Arc<RunConfig>) -> Self {
        let tasks = Tasks::default();
        Self {
            effects,
            log,
            config,
            tasks,
            questions: BTreeMap::new(),
            is_stopping: false,
            interrupted: None,
            interrupts: 0,
            killed_at: None,
            unwritable_since: None,
            is_unrecorded: false,
            today: SpentToday::default(),
        }
    }

    pub async fn run(&mut self) -> Result<Ending> {
        let ending = self.work().await;
        if let Err(error) = &ending {
            self.effects.order(Order::Stop);
            if error.is_lost_journal() {
                self.put_back_unrecorded().await;
            }
        }
        self.close_menus().await;
        if ending.is_err() {
            // Another error says nothing more.
            drop(self.record_end(None).await);
        }
        ending
    }

    async fn work(&mut self) -> Result<Ending> {
        loop {
            if let Some(signal) = self.effects.pending_interrupt().await {
                self.take_interrupt(signal);
            }
            let wait = match self.start_what_is_due()? {
                Turn::End(ending, end) => return self.record_end(Some(end)).await.map(|()| ending),
                Turn::Decide => continue,
                Turn::Wait(wait) => wait,
            };
            // From here on the human may change the lane's tree.
            self.tasks.ready = None;
            self.log.check()?;
            self.tell_wait(wait.as_ref());
            let most = wait.map(|wait| self.until(&wait));
            let happened = self.effects.next(&mut self.log, most).await?;
            let checked = self.log.check_place();
            let concluded = self.conclude(happened);
            self.is_unrecorded = concluded.is_err();
            concluded.and(checked)?;
        }
    }

    /// One decision; interrupts come first.
    fn start_what_is_due(&mut self) -> Result<Turn> {
        if let Some(signal) = self.interrupted {
            return self.interrupt(signal);
        }
        self.effects.refresh(&mut self.log)?;
        self.take_requests()?;
        self.withdraw_moot_questions();
        let observed = self.observe()?;
        let backlog = self.effects.backlog();
        let action = decide(&self.log.state, backlog, &self.config.policy, &observed);
        self.check_unwritable(&observed)?;
        self.start(action)
    }

    fn observe(&mut self) -> Result<Observed> {
        let seen = self.effects.observe(&mut self.log)?;
        self.today = seen.today;
        Ok(Observed { tasks: self.tasks.clone(), ..seen })
    }

    fn start(&mut self, action: Action) -> Result<Turn> {
        self.is_stopping = matches!(action, Action::Stop(_));
        match action {
            Action::Wait(wait) => return Ok(Turn::Wait(wait)),
            Action::Stop(_) if !self.questions.is_empty() => {
                self.close_all();
                return Ok(Turn::Wait(None));
            }
            Action::Stop(reason) => {
                let end = Event::RunEnded { reason: reason.clone() };
                return Ok(Turn::End(Ending::Stopped(reason), end));
            }
            Action::Baseline => self.start_gates(GatesOf::Baseline)?,
            Action::FirstLook { story } => self.start_gates(GatesOf::FirstLook { story })?,
            Action::Check { story, attempt } => {
                self.start_gates(GatesOf::Claim { story, attempt })?;
            }
            Action::Attempt { story, lane } => self.start_attempt(story, lane)?,
            Action::Land { story } => self.start_job(LaneJob::Land, &story, LaneId::HOME)?,
            Action::Integrate { story } => self.integrate(story)?,
            Action::Raise { story, question } => {
                self.record(vec![Event::QuestionRaised { story, question }])?;
            }
            Action::Ask { story } => self.ask(story),
            Action::Answer { story, answer } => {
                self.record(vec![Event::QuestionAnswered { story, answer }])?;
            }
            Action::Park { story } => self.record(vec![Event::StoryParked { story }])?,
            Action::StartOver { story, to } => {
                self.record(vec![Event::ReturnPlanned { story, to, why: Cause::FreshStart }])?;
            }
            Action::RollBack { story } => {
                self.start_job(LaneJob::RollBack, &story, self.lane_of(&story))?;
            }
            Action::Shelve { story } => self.shelve(&story)?,
            Action::Disown { story } => {
                self.effects.disown(&mut self.log, &story);
                self.record(vec![Event::WorkLetGo { story }])?;
            }
            Action::Skip { story } => self.start_job(LaneJob::Skip, &story, LaneId::HOME)?,
            Action::Unstick(due) => self.unstick(&due)?,
            Action::End(cause) => self.end_everything(cause),
            Action::OpenBreaker { why, until } => {
                self.record(vec![Event::BreakerOpened { why, until }])?;
            }
            Action::Alert { level } => self.record(vec![Event::BudgetNear { level }])?,
            Action::Throttle { level, until } => {
                self.record(vec![Event::Throttled { level, until }])?;
            }
        }
        Ok(Turn::Decide)
    }

    pub(super) fn conclude(&mut self, happened: Happened) -> Result<()> {
        match happened {
            Happened::AttemptEnded(ended) => self.attempt_ended(*ended),
            Happened::GatesEnded { of, items, found } => self.gates_ended(of, items, found),
            Happened::JobEnded { lane, story, result } => self.job_ended(lane, story, result),
            Happened::Answered { about, asked } => self.answered(about, asked),
            Happened::WaitSkipped => self.record(vec![Event::WaitCutShort]),
            Happened::Interrupt(signal) => {
                self.take_interrupt(signal);
                Ok(())
            }
            Happened::Tick => Ok(()),
        }
    }

    pub(super) fn record(&mut self, events: Vec<Event>) -> Result<()> {
        self.log.record(self.effects.backlog(), events)
    }

    pub(super) fn backlog(&self) -> &Backlog {
        self.effects.backlog()
    }

    /// Where a story's work is, or would be.
    pub(super) fn lane_of(&self, story: &StoryId) -> LaneId {
        self.log.state.lanes.of(story).unwrap_or(LaneId::HOME)
    }

    pub(super) fn start_job(&mut self, job: LaneJob, story: &StoryId, lane: LaneId) -> Result<()> {
        self.tasks.jobs.insert(lane, job);
        self.effects.start_job(&mut self.log, job, story, lane)
    }

    /// Stores a failed attempt's work.
    pub(super) fn keep(&mut self, story: &StoryId) -> Result<()> {
        self.start_job(LaneJob::Keep, story, self.lane_of(story))
    }

    fn shelve(&mut self, story: &StoryId) -> Result<()> {
        self.start_job(LaneJob::Shelve, story, self.lane_of(story))
    }

    fn integrate(&mut self, story: StoryId) -> Result<()> {
        if self.backlog().story(&story).is_some() {
            return self.start_job(LaneJob::Integrate, &story, LaneId::HOME);
        }
        self.log.notice(Notice::CompletedButGone { story: story.clone() });
        self.shelve(&story)
    }

    fn job_ended(&mut self, lane: LaneId, story: StoryId, result: JobResult) -> Result<()> {
        self.tasks.jobs.remove(&lane);
        self.end_is_over();
        let event = match result {
            JobResult::Ready => {
                self.tasks.ready = Some((lane, story));
                return Ok(());
            }
            JobResult::Integrated(integration) => return self.integrated(story, integration),
            JobResult::Kept(None) | JobResult::BacklogChanged => return Ok(()),
            JobResult::Kept(Some(KeptWork { reference, changes })) => {
                Event::AttemptKept { story, reference, changes }
            }
            JobResult::Skipped(commit) => Event::StorySkipped { story, commit },
            JobResult::Shelved(reference) => {
                let claimed = self.is_claimed(&story);
                Event::WorkSetAside { story, reference, claimed }
            }
            JobResult::Landed { clean: true } => return Ok(()),
            JobResult::Landed { clean: false } => return self.conflicts(story),
            JobResult::RolledBack(reference) => Event::Returned { story, reference },
        };
        self.record(vec![event])
    }

    /// Whether it may start is decided again when the lane is ready for it.
    fn start_attempt(&mut self, story: StoryId, lane: LaneId) -> Result<()> {
        if self.tasks.ready.take() == Some((lane, story.clone())) {
            return self.effects.start_attempt(&mut self.log, &story, lane);
        }
        self.start_job(LaneJob::Prepare, &story, lane)
    }

    /// Waits for the human to fix the backlog, but not forever: then its last good version comes back.
    fn check_unwritable(&mut self, observed: &Observed) -> Result<()> {
        let mut unfinished = self.log.state.unfinished();
        let waits = unfinished.find(|(_, known)| known.is_being_settled());
        let waits = waits.filter(|_| !observed.backlog_usable).map(|(story, _)| story.clone());
        drop(unfinished);
        let Some(story) = waits else {
            self.unwritable_since = None;
            return Ok(());
        };
        let Some(since) = self.unwritable_since else {
            self.unwritable_since = Some(observed.now);
            let problem = self.effects.backlog_problem().unwrap_or_default().to_owned();
            let patience = REPAIR_PATIENCE;
            self.log.notice(Notice::ClaimWaits { story, problem, patience });
            return Ok(());
        };
        let patience = i64::try_from(REPAIR_PATIENCE.as_millis()).unwrap_or(i64::MAX);
        if observed.now.saturating_sub(since) < patience {
            return Ok(());
        }
        // If that fails it is tried again.
        self.unwritable_since = Some(observed.now);
        self.effects.restore_backlog(&mut self.log)
    }

    fn tell_wait(&mut self, wait: Option<&Wait>) {
        // While something runs, the display shows that.
        let wait = wait.filter(|_| self.log.state.attempts.is_idle());
        self.effects.listen_for_skip(wait.is_some() && self.tasks.asking.is_empty());
        wait.into_iter().for_each(|wait| self.log.reporter.on_wait(wait));
    }

    fn until(&self, wait: &Wait) -> Duration {
        let left = wait.until.saturating_sub(self.log.now());
        Duration::from_millis(u64::try_from(left).unwrap_or_default())
    }

    fn end_everything(&mut self, cause: EndCause) {
        self.tasks.ending = true;
        self.log.notice(Notice::Agent(AgentNotice::Ended(cause)));
        if cause != EndCause::RunTime {
            return self.effects.order(Order::Stop);
        }
        // Claims made in time are still checked: stopped gates would have to run again, and their
        // time would not count.
        for flight in self.log.state.attempts.iter() {
            self.effects.end_attempt(&flight.start.attempt, EndedBy::Human);
        }
    }

    pub(super) fn end_is_over(&mut self) {
        if self.tasks.ending && self.is_idle() {
            self.tasks.ending = false;
        }
    }

    /// No agent, gate or job runs.
    pub(super) fn is_idle(&self) -> bool {
        self.log.state.attempts.is_idle() && self.tasks.is_idle()
    }
}
