//! Starts attempts, and keeps the loop's handles on them.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::agent::{Launch, LaunchRequest, StreamReader};
use crate::decide::prompt::{CONTRACT, joined};
use crate::decide::situation::StuckDue;
use crate::decide::stuck::{StuckPolicy, StuckStep, StuckTracker};
use crate::model::{AttemptStarted, EndedBy, Event, LaneId, Role, Story, StoryId, Usd};
use crate::process::sweep::RUN_ID;
use crate::process::{Order, Spec};
use crate::runner::error::Result;
use crate::runner::lane::Lane;
use crate::runner::log::RunLog;
use crate::runner::task::attempt::{AttemptTask, Begin, Instruction};
use crate::runner::task::inspect::Inspect;
use crate::runner::task::prepare::Prepared;
use crate::runner::task::{self, Message};
use crate::runner::trust;
use crate::store::prd::Mark;
use crate::store::ralph_dir::IterationFiles;
use crate::workspace::{REFLOG_ACTION, hash, reflog_action};

use super::World;
use super::between_runs::TreeLook;
use super::held_backlog::BacklogWriter;

/// Scans of the tree per `stuck_after`.
const SCANS: u32 = 3;

/// The loop's handle on a running attempt.
pub struct RunningAttempt {
    pub stop: watch::Sender<Option<Order>>,
    takes_messages: Arc<AtomicBool>,
    instructions: mpsc::UnboundedSender<Instruction>,
    began: Instant,
    tracker: StuckTracker,
    /// The last scan of the tree.
    scanned: Duration,
    /// A scan is under way since then.
    scanning: Option<Duration>,
    /// Chunks of output, now and at the last scan.
    heard: Arc<AtomicU64>,
    heard_before: u64,
}

/// What an attempt is started with.
struct StartOf {
    lane: Lane,
    begin: Begin,
    files: IterationFiles,
    spec: Spec,
    reader: StreamReader,
    inspect: Inspect,
    at_start: Story,
}

impl RunningAttempt {
    /// How long its agent has been running, without machine sleep.
    pub fn busy(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn takes_messages(&self) -> bool {
        self.takes_messages.load(Ordering::Relaxed)
    }

    /// Ignored if the agent is already ending.
    pub fn say(&self, text: &str) {
        if self.takes_messages() {
            let _ = self.instructions.send(Instruction::Say(text.to_owned()));
        }
    }

    pub fn end(&self, why: EndedBy) {
        let _ = self.instructions.send(Instruction::End(why));
    }

    /// None: it makes progress, or gets more time.
    pub fn stuck_step(&mut self, step: Option<StuckStep>) {
        let busy = self.busy();
        match step {
            Some(step) => self.tracker.take(step, busy),
            None => self.tracker.reset(busy),
        }
    }

    /// A step is due only if a scan since then found no progress.
    pub fn due(&self, policy: &StuckPolicy) -> Option<StuckStep> {
        self.tracker.due(self.scanned, policy)
    }

    /// Orders a scan at intervals, and before each step.
    pub fn scan_if_due(&mut self, policy: &StuckPolicy) {
        let (Some(stuck_after), busy) = (policy.stuck_after, self.busy()) else { return };
        let is_old = busy.saturating_sub(self.scanned) >= stuck_after / SCANS;
        let is_due = self.tracker.due(busy, policy).is_some() && self.due(policy).is_none();
        if self.scanning.is_none() && (is_old || is_due) {
            self.scanning = Some(busy);
            let _ = self.instructions.send(Instruction::Scan);
        }
    }

    /// Returns whether it recovered. Timeouts handle silent agents.
    pub fn scanned(&mut self, changed: bool) -> bool {
        let heard = self.heard.load(Ordering::Relaxed);
        let was_silent = std::mem::replace(&mut self.heard_before, heard) == heard;
        self.scanned = self.scanning.take().unwrap_or_default();
        if !changed && !was_silent {
            return false;
        }
        let was_stuck = !self.tracker.is_clear();
        self.tracker.reset(self.scanned);
        was_stuck && self.tracker.is_clear()
    }
}

impl World {
    /// In a lane that is ready.
    pub(super) fn begin(&mut self, log: &mut RunLog, id: &StoryId, lane: LaneId) -> Result<()> {
        let Some(ready) = self.prepared.remove(&lane).filter(|ready| ready.story == *id) else {
            return Ok(());
        };
        let backlog = self.env.backlog.current();
        let Some(story) = backlog.story(id).cloned() else { return Ok(()) };
        let due = self.config.gates.due(id, backlog, |_| false);
        let gates: Vec<_> = due.iter().map(|due| due.gate).collect();
        let allowance = self.allowance(log, id);
        let work_tree = self.lane(lane)?.root();
        let table = self.config.settings.agent_table();
        trust::require(&self.approvals, self.env.agent.trust_clauses(&table, work_tree)?)?;
        let prompt = joined(&self.layers(log, &story, &ready.changes, work_tree));
        let files = self.env.ralph_dir.iteration(&log.run, ready.iteration, id)?;
        let request = LaunchRequest {
            work_tree,
            gates: &gates,
            allowance,
            prompt: &prompt,
            prompt_file: &files.prompt.path,
        };
        let launch = self.env.agent.command(&request)?;
        let start = self.started(log, &ready, &story, (lane, allowance));
        self.record(log, Event::AttemptStarted(Box::new(start.clone())))?;
        let spec = self.spec(log, &start, launch, work_tree);
        let reader = self.reader(log, id, &request);
        let begin = Begin {
            story: id.clone(),
            iteration: start.iteration,
            before: ready.before.clone(),
            snapshot: ready.snapshot.clone(),
            prompt,
            started: log.sync_point(),
        };
        let lane = self.lane(lane)?.clone();
        let inspect = Inspect {
            guard: ready.guard,
            is_plain: self.config.is_plain_claim(id, self.env.backlog.current(), &log.state),
            rest: log.state.story(id).and_then(|known| known.work.in_lane()?.rest.clone()),
            wanted: log.state.story(id).map(|known| known.wanted.clone()).unwrap_or_default(),
            config: Arc::clone(&self.config),
            secrets: Arc::clone(&self.env.secrets),
            doubtful: Vec::new(),
            start,
        };
        let is_broken = self.env.backlog.problem().is_some();
        self.look = TreeLook::Due;
        self.backlog_writer = Some(BacklogWriter::attempt(&inspect.start, is_broken));
        self.spawn(StartOf { lane, begin, files, spec, reader, inspect, at_start: story });
        Ok(())
    }

    fn started(
        &self,
        log: &RunLog,
        ready: &Prepared,
        story: &Story,
        (lane, allowance): (LaneId, Option<Usd>),
    ) -> AttemptStarted {
        let known = log.state.story(&story.id);
        AttemptStarted {
            attempt: ready.attempt.clone(),
            iteration: ready.iteration,
            role: Role::Implement,
            story: story.id.clone(),
            title: story.title.clone(),
            agent: self.env.agent.label(),
            lane,
            base: ready.base.clone(),
            criteria: Some(story.criteria.clone()),
            before: Some(ready.before.clone()),
            snapshot: Some(ready.snapshot.clone()),
            guided: known.is_some_and(|known| !known.guidance.is_empty()),
            why: known.map(|known| known.why).unwrap_or_default(),
            allowance,
            stable: hash(format!("{}\n{CONTRACT}", self.config.instructions).as_bytes()),
            held: ready.guard.stored().map(ToOwned::to_owned),
        }
    }

    /// Prepares the close while the agent works. A failure is ignored, because this may never be
    /// needed.
    pub(super) fn prepare_close(&mut self, id: &StoryId) {
        let Ok(Some(ahead)) = self.env.backlog.prepare(id, Mark::Passes(true)) else { return };
        let (home, mailbox) = (self.env.home.clone(), self.mailbox.clone());
        let is_committed = self.config.backlog_in_tree.is_some();
        tokio::task::spawn_blocking(move || {
            let store = || home.tree().store_ahead(ahead.text.as_bytes());
            let blob = is_committed.then(store).flatten();
            let blob = blob.map(|blob| (Arc::clone(&ahead.text), blob));
            let text = ahead.prepare();
            let _ = mailbox.blocking_send(Message::StoredAhead { text, blob });
        });
    }

    fn spawn(&mut self, start: StartOf) {
        let StartOf { lane, begin, files, spec, reader, inspect, at_start } = start;
        let (instruct, instructions) = mpsc::unbounded_channel();
        if spec.input.is_none() {
            let _ = instruct.send(Instruction::Say(begin.prompt.clone()));
        }
        let takes_messages = self.env.agent.capabilities().takes_messages;
        let takes_messages = Arc::new(AtomicBool::new(takes_messages));
        let heard = Arc::new(AtomicU64::new(0));
        let (stop, orders) = watch::channel(None);
        let running = RunningAttempt {
            stop,
            takes_messages: Arc::clone(&takes_messages),
            instructions: instruct,
            began: Instant::now(),
            tracker: StuckTracker::default(),
            scanned: Duration::ZERO,
            scanning: None,
            heard: Arc::clone(&heard),
            heard_before: 0,
        };
        let attempt = inspect.start.attempt.clone();
        self.running.insert(attempt.clone(), running);
        let task = AttemptTask {
            attempt,
            lane,
            reader,
            begin,
            files,
            inspect,
            supervisor: self.env.supervisor.clone(),
            spec,
            stop: orders,
            instructions,
            takes_messages,
            heard,
            secrets: Arc::clone(&self.env.secrets),
            at_start,
            config: Arc::clone(&self.config),
            mailbox: self.mailbox.clone(),
            clock: self.env.clock.clone(),
        };
        task::spawn(&self.mailbox, task.run());
    }

    fn spec(&self, log: &RunLog, start: &AttemptStarted, launch: Launch, root: &Path) -> Spec {
        let attempt = log.state.story(&start.story).map_or(1, |known| known.totals.attempts);
        let mut env = launch.env;
        for (key, value) in [
            (RUN_ID, log.run.clone()),
            ("RALPH_STORY", start.story.to_string()),
            ("RALPH_ITERATION", start.iteration.to_string()),
            ("RALPH_ATTEMPT", attempt.to_string()),
            (REFLOG_ACTION, reflog_action(&start.attempt)),
        ] {
            env.push((OsString::from(key), Some(OsString::from(value))));
        }
        env.push((OsString::from("RALPH_STAGES"), self.stages_left(log, &start.story)));
        Spec {
            program: launch.program.into_os_string(),
            args: launch.args,
            dir: root.to_owned(),
            env,
            input: launch.input,
        }
    }

    /// Steps that are due for stuck agents.
    pub(super) fn stuck_dues(&self) -> Vec<StuckDue> {
        let due = self.running.iter().filter_map(|(attempt, running)| {
            let step = running.due(&self.config.settings.stuck)?;
            Some(StuckDue { attempt: attempt.clone(), step })
        });
        due.collect()
    }
}
