//! The real effects: work tree, processes, files, human.

mod approvals;
mod attempt;
pub mod backlog;
pub mod between_runs;
mod gates;
pub mod held_backlog;
mod jobs;
mod lost_head;
pub mod observe;
pub mod prompt;
mod questions;
pub mod recovery;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::agent::Backend;
use crate::decide::situation::{FreeDisk, LaneJob, Observed};
use crate::decide::stuck::StuckStep;
use crate::model::{
    Approval, Backlog, Base, EndedBy, Escalation, Event, LaneId, Request, SpentToday, StoryId,
};
use crate::ports::{Ask, Clock, Human};
use crate::process::{Order, Supervisor};
use crate::runner::config::RunConfig;
use crate::runner::effects::{About, Effects, EndedAttempt, GatesOf, Happened, Left};
use crate::runner::error::{Result, RunnerError};
use crate::runner::interrupts::Interrupts;
use crate::runner::lane::Lane;
use crate::runner::log::RunLog;
use crate::runner::task::human::SkipWait;
use crate::runner::task::prepare::Prepared;
use crate::runner::task::{Mailbox, Message};
use crate::store::ralph_dir::RalphDir;
use crate::store::{Answers, Approvals, PendingRequest, Requests};
use crate::text::redact::SecretRules;
use crate::workspace::StoredBlob;
use attempt::RunningAttempt;
use backlog::BacklogFile;
use between_runs::TreeLook;
use held_backlog::BacklogWriter;
use observe::CostStores;
use questions::Questions;

/// How often requests, files, the disk and the clock are checked.
const LOOK: Duration = Duration::from_millis(250);
/// Queued activities.
const ACTIVITIES: usize = 64;

/// The parts of a run, wired by the command.
pub struct Env {
    pub backlog: BacklogFile,
    /// The human's work tree, on the branch of the run.
    pub home: Lane,
    pub ralph_dir: RalphDir,
    pub requests: Requests,
    /// What the human approved.
    pub answers: Answers,
    pub agent: Arc<dyn Backend>,
    pub supervisor: Supervisor,
    /// Redacts output of agents and gates.
    pub secrets: Arc<SecretRules>,
    pub human: Arc<dyn Human>,
    pub costs: CostStores,
    pub clock: Clock,
    /// Makes the ids of runs and attempts.
    pub new_id: fn() -> String,
}

pub struct World {
    env: Env,
    config: Arc<RunConfig>,
    interrupts: Interrupts,
    mailbox: Mailbox,
    messages: mpsc::Receiver<Message>,
    /// Lanes that are ready for an attempt.
    prepared: BTreeMap<LaneId, Prepared>,
    running: BTreeMap<String, RunningAttempt>,
    /// Orders to running gates, and their start.
    gates: Vec<(GatesOf, watch::Sender<Option<Order>>, Instant)>,
    questions: Questions,
    skip_wait: Option<SkipWait>,
    /// Differing marks in the file were set by an agent.
    marks_are_suspect: bool,
    /// What could have changed the backlog since the last look.
    backlog_writer: Option<BacklogWriter>,
    /// A program that agents or gates started may still run (`keep_processes`): what changes is not
    /// known to be the human's, whether or not an attempt is under way.
    has_kept: bool,
    /// A job writes the backlog file.
    is_writing_marks: bool,
    /// A job is under way in the human's tree.
    has_home_job: bool,
    /// Of the human's tree, while nothing runs.
    look: TreeLook,
    /// The free space when agents were ended because of it.
    disk_was_low: Option<FreeDisk>,
    /// What was spent today, at the last check.
    today: SpentToday,
    /// What the human approved, as it was when the run began, and what commands told since.
    approvals: Approvals,
    /// Pending requests that a command of the human's made.
    human_requests: Vec<PendingRequest>,
    /// Files reported as left out of a commit.
    told_left_out: BTreeSet<String>,
    /// A lane's tree after a close: the base of a story that starts at once, without a scan.
    known_bases: BTreeMap<LaneId, Base>,
    /// The backlog's text that was prepared last, as git stores it.
    stored_ahead: Option<(Arc<str>, StoredBlob)>,
}

impl World {
    pub fn new(env: Env, config: Arc<RunConfig>, interrupts: Interrupts) -> Self {
        let (mailbox, messages) = mpsc::channel(ACTIVITIES);
        let questions = Questions::new(Arc::clone(&env.human), mailbox.clone());
        Self {
            env,
            config,
            interrupts,
            mailbox,
            messages,
            prepared: BTreeMap::new(),
            running: BTreeMap::new(),
            gates: Vec::new(),
            questions,
            skip_wait: None,
            marks_are_suspect: false,
            backlog_writer: None,
            has_kept: false,
            is_writing_marks: false,
            has_home_job: false,
            look: TreeLook::default(),
            disk_was_low: None,
            today: SpentToday::default(),
            approvals: Approvals::default(),
            human_requests: Vec::new(),
            told_left_out: BTreeSet::new(),
            known_bases: BTreeMap::new(),
            stored_ahead: None,
        }
    }

    /// There is only one today: see `Policy::lanes`.
    fn lane(&self, lane: LaneId) -> Result<&Lane> {
        if lane == LaneId::HOME { Ok(&self.env.home) } else { Err(RunnerError::NoLane(lane)) }
    }

    fn record(&self, log: &mut RunLog, event: Event) -> Result<()> {
        log.record(self.env.backlog.current(), vec![event])
    }
}

impl Effects for World {
    fn backlog(&self) -> &Backlog {
        self.env.backlog.current()
    }

    fn backlog_problem(&self) -> Option<&str> {
        self.env.backlog.problem()
    }

    fn refresh(&mut self, log: &mut RunLog) -> Result<()> {
        self.refresh_backlog(log)?;
        self.settle_marks(log)
    }

    fn observe(&mut self, log: &mut RunLog) -> Result<Observed> {
        self.look_around(log)
    }

    async fn pending_interrupt(&mut self) -> Option<i32> {
        self.interrupts.try_next()
    }

    async fn next(&mut self, log: &mut RunLog, most: Option<Duration>) -> Result<Happened> {
        // A human may edit files while the loop waits.
        if !self.is_writing_marks {
            self.known_bases.clear();
        }
        self.look_before_wait(log);
        let tick = sleep(most.map_or(LOOK, |most| most.min(LOOK)));
        tokio::pin!(tick);
        loop {
            if let Some(over) = self.questions.next_over() {
                return Ok(over);
            }
            let skipped = async {
                match &mut self.skip_wait {
                    Some(wait) => wait.skipped().await,
                    None => std::future::pending().await,
                }
            };
            let message = tokio::select! {
                signal = self.interrupts.next() => return Ok(Happened::Interrupt(signal)),
                Some(message) = self.messages.recv() => message,
                () = skipped => return Ok(Happened::WaitSkipped),
                () = &mut tick => return Ok(Happened::Tick),
            };
            if let Some(happened) = self.take(log, message)? {
                return Ok(happened);
            }
        }
    }

    fn start_job(
        &mut self,
        log: &mut RunLog,
        job: LaneJob,
        story: &StoryId,
        lane: LaneId,
    ) -> Result<()> {
        self.begin_job(log, job, story, lane)
    }

    fn start_attempt(&mut self, log: &mut RunLog, story: &StoryId, lane: LaneId) -> Result<()> {
        self.begin(log, story, lane)
    }

    fn attempt_is_over(&mut self, log: &mut RunLog, ended: &EndedAttempt) -> Result<()> {
        self.marks_are_suspect = true;
        self.has_kept |= !ended.processes.kept.is_empty();
        self.repair_approvals(log)?;
        // With the branch, a backlog in the tree is rolled back.
        let is_rolled_back =
            ended.inspection.branch_loss.is_some() && self.config.backlog_in_tree.is_some();
        if is_rolled_back { Ok(()) } else { self.release_backlog(log) }
    }

    fn gates_are_over(&mut self, log: &mut RunLog) -> Result<()> {
        self.marks_are_suspect = true;
        self.repair_approvals(log)?;
        self.record(log, Event::GatesOver)?;
        self.release_backlog(log)
    }

    fn restore_backlog(&mut self, log: &mut RunLog) -> Result<()> {
        self.restore_broken_backlog(log);
        Ok(())
    }

    fn redact(&self, text: &str) -> String {
        self.env.secrets.redact(text).into_owned()
    }

    fn forget_attempt(&mut self, log: &mut RunLog, attempt: &str) -> Result<()> {
        self.running.remove(attempt);
        self.copy_user_costs(log)
    }

    fn run_gates(&mut self, log: &mut RunLog, of: GatesOf) -> Result<()> {
        self.begin_gates(log, of)
    }

    fn disown(&mut self, log: &mut RunLog, story: &StoryId) {
        self.disown_work(log, story);
    }

    async fn leave(&mut self, log: &RunLog, is_idle: bool, end: Option<&Event>) -> Left {
        if is_idle { self.left_tree(log, end).await } else { Ok(None) }
    }

    fn mark(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        passes: bool,
        skipped: bool,
    ) -> Result<bool> {
        if self.is_writing_marks {
            return Ok(false);
        }
        if self.env.backlog.current().story(story).is_some() {
            let mut wanted = log.state.marks.clone();
            wanted.set(story, passes, skipped);
            self.set_marks(log, &wanted)?;
        }
        Ok(true)
    }

    fn ask(&mut self, about: About, story: &StoryId, question: Escalation, patience: Duration) {
        let Some(story) = self.env.backlog.current().story(story).cloned() else { return };
        let withdrawal = Arc::default();
        let ends_agent = matches!(about, About::Attempt { .. });
        self.questions.ask(about, Ask { story, question, patience, ends_agent, withdrawal });
    }

    fn withdraw(&mut self, about: &About, at_once: bool) {
        self.questions.withdraw(about, at_once);
    }

    fn takes_messages(&self, attempt: &str) -> bool {
        self.running.get(attempt).is_some_and(RunningAttempt::takes_messages)
    }

    fn say(&mut self, attempt: &str, text: &str) {
        if let Some(running) = self.running.get(attempt) {
            running.say(text);
        }
    }

    fn end_attempt(&mut self, attempt: &str, why: EndedBy) {
        if let Some(running) = self.running.get(attempt) {
            running.end(why);
        }
    }

    fn stuck_step(&mut self, attempt: &str, step: Option<StuckStep>) {
        if let Some(running) = self.running.get_mut(attempt) {
            running.stuck_step(step);
        }
    }

    fn busy(&self, attempt: &str) -> Duration {
        self.running.get(attempt).map(RunningAttempt::busy).unwrap_or_default()
    }

    fn order(&mut self, order: Order) {
        let attempts = self.running.values().map(|running| &running.stop);
        for stop in attempts.chain(self.gates.iter().map(|(_, stop, _)| stop)) {
            stop.send_replace(Some(order));
        }
    }

    fn listen_for_skip(&mut self, on: bool) {
        if !on {
            self.skip_wait = None;
        } else if self.skip_wait.is_none() {
            self.skip_wait = Some(SkipWait::listen(Arc::clone(&self.env.human)));
        }
    }

    fn requests(&mut self, log: &mut RunLog) -> Result<Vec<(i64, Option<Request>)>> {
        self.pending_requests(log)
    }

    fn approved(&mut self, log: &mut RunLog, all: Vec<Approval>) -> Result<()> {
        self.approvals.add(all);
        self.note_approvals(log)
    }

    fn settle_request(&mut self, number: i64) -> Result<()> {
        Ok(self.env.requests.settle(number)?)
    }
}

#[cfg(test)]
mod tests;
