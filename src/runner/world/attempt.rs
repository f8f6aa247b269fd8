//! Starts attempts, and keeps the loop's handles on them.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::agent::{Launch, LaunchRequest};
use crate::decide::prompt::joined;
use crate::decide::situation::StuckDue;
use crate::decide::stuck::{StuckPolicy, StuckStep, StuckTracker};
use crate::model::{AttemptStarted, Base, EndedBy, Event, LaneId, Role, Story, StoryId};
use crate::process::Order;
use crate::process::Spec;
use crate::process::pump::Pump;
use crate::process::sweep::RUN_ID;
use crate::runner::error::RunnerError;
use crate::runner::log::RunLog;
use crate::runner::task;
use crate::runner::task::attempt::{AttemptClock, AttemptTask, Instruction};
use crate::runner::task::transcript::Transcript;
use crate::store::log::Log;
use crate::store::prd::Mark;
use crate::store::ralph_dir::IterationFiles;
use crate::text::redact::Redactor;
use crate::workspace::Guard;

use super::World;

/// Standard error's share of the log limit.
const ERRORS_SHARE: u64 = 16;
/// Scans of the tree per `stuck_after`.
const SCANS: u32 = 3;

/// The loop's handle on a running attempt.
pub struct RunningAttempt {
    pub stop: watch::Sender<Option<Order>>,
    pub takes_messages: bool,
    instructions: mpsc::UnboundedSender<Instruction>,
    began: Instant,
    tracker: StuckTracker,
    /// The last scan of the tree, and its result.
    looked: Duration,
    tree: Base,
    /// Chunks of output, now and at the last scan.
    heard: Arc<AtomicU64>,
    heard_before: u64,
    /// What there was right before it.
    pub held: Arc<Held>,
}

/// Everything that is compared with after the attempt.
pub struct Held {
    /// Tree and branch.
    pub before: Base,
    /// What it must not change.
    pub guard: Guard,
    /// The stories there were.
    pub stories: Arc<[StoryId]>,
    /// Its own, as it was.
    pub story: Story,
}

/// An attempt that can begin.
struct Ready {
    start: AttemptStarted,
    spec: Spec,
    files: IterationFiles,
    prompt: String,
    held: Held,
}

impl RunningAttempt {
    /// How long its agent has been running, without machine sleep.
    pub fn busy(&self) -> Duration {
        self.began.elapsed()
    }

    /// Ignored if the agent is already ending.
    pub fn say(&self, text: &str) {
        if self.takes_messages {
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

    pub fn due(&self, policy: &StuckPolicy) -> Option<StuckStep> {
        self.tracker.due(self.busy(), policy)
    }

    /// The tree is scanned at intervals, and before each step.
    pub fn wants_a_look(&self, policy: &StuckPolicy) -> bool {
        let Some(stuck_after) = policy.stuck_after else { return false };
        self.due(policy).is_some() || self.busy().saturating_sub(self.looked) >= stuck_after / SCANS
    }

    /// Returns whether it recovered. Silence is left to the time-outs, and a failed scan is no reason
    /// to end an agent.
    pub fn look(&mut self, tree: Option<Base>) -> bool {
        let heard = self.heard.load(Ordering::Relaxed);
        let was_silent = std::mem::replace(&mut self.heard_before, heard) == heard;
        self.looked = self.busy();
        if tree.as_ref() == Some(&self.tree) && !was_silent {
            return false;
        }
        if let Some(tree) = tree {
            self.tree = tree;
        }
        let was_stuck = !self.tracker.is_clear();
        self.tracker.reset(self.looked);
        was_stuck && self.tracker.is_clear()
    }
}

impl World {
    pub(super) fn begin_attempt(
        &mut self,
        log: &mut RunLog,
        id: &StoryId,
        lane: LaneId,
    ) -> Result<(), RunnerError> {
        let backlog = self.env.backlog.current();
        let Some(story) = backlog.story(id).cloned() else { return Ok(()) };
        let due = self.config.gates.due(id, backlog);
        let gates: Vec<_> = due.iter().map(|due| due.gate).collect();
        let allowance = self.allowance(log, id);
        let work_tree = self.tree(lane).root();
        let request = LaunchRequest { work_tree, gates: &gates, allowance };
        let launch = self.env.agent.command(&request)?;
        let before = self.base_for_next_attempt(lane)?;
        let base = self.story_base(log, id, lane, &before)?;
        let before =
            if self.unshelve(log, id, &base, lane)? { self.tree(lane).base()? } else { before };
        let iteration = log.state.attempts.next_iteration();
        self.with_scratchpad(log, |dir| dir.unshelve_scratchpad(id));
        let prompt = joined(&self.layers(log, &story, &base, &before));
        let known = log.state.story(id);
        let snapshot = self.tree(lane).snapshot_name(log.state.attempts.started + 1)?;
        let start = AttemptStarted {
            attempt: (self.env.new_id)(),
            iteration,
            role: Role::Implement,
            story: id.clone(),
            title: story.title.clone(),
            agent: self.env.agent.label(),
            lane,
            base,
            criteria: Some(story.criteria.clone()),
            before: Some(before.clone()),
            snapshot: Some(snapshot.clone()),
            guided: known.is_some_and(|known| !known.guidance.is_empty()),
            why: known.map(|known| known.why).unwrap_or_default(),
            allowance,
            stable: self.stable_hash(),
        };
        let stories = self.env.backlog.ids();
        let guarded = self.guarded(log, &start)?;
        let prompt_file = self.config.instructions_file.as_deref();
        let guard = Guard::arm(self.tree(lane), guarded, prompt_file)?;
        // What follows takes as long as the disk needs for the event.
        self.record(log, Event::AttemptStarted(Box::new(start.clone())))?;
        self.tree(lane).keep_snapshot(&snapshot, id, iteration, &before)?;
        let files = self.env.ralph_dir.iteration(&log.run, iteration, id)?;
        files.write_prompt(&prompt)?;
        log.sync()?;
        let spec = self.spec(log, &start, launch, &files);
        let held = Held { before, guard, stories, story };
        self.spawn(log, Ready { start, spec, files, prompt, held })?;
        self.prepare_close(id);
        Ok(())
    }

    /// While the agent works, so that closing the story has less to do. It may never be needed, so
    /// a failure is ignored.
    fn prepare_close(&mut self, id: &StoryId) {
        let prepared = self.env.backlog.prepare(id, Mark::Passes(true));
        if let (Ok(Some(text)), Some(_)) = (prepared, &self.config.backlog_in_tree) {
            self.stored_ahead = self.env.home.store_ahead(text.as_bytes());
        }
    }

    /// The story's base; it begins now if it has no work in a lane.
    fn story_base(
        &self,
        log: &RunLog,
        id: &StoryId,
        lane: LaneId,
        now: &Base,
    ) -> Result<Base, RunnerError> {
        if let Some(base) = log.state.story(id).and_then(|known| known.base().cloned()) {
            return Ok(base);
        }
        self.tree(lane).hold(now)?;
        Ok(now.clone())
    }

    /// Known right after a close, else from a scan.
    fn base_for_next_attempt(&mut self, lane: LaneId) -> Result<Base, RunnerError> {
        match self.known_bases.remove(&lane) {
            Some(base) => Ok(base),
            None => Ok(self.tree(lane).base()?),
        }
    }

    fn spawn(&mut self, log: &RunLog, ready: Ready) -> Result<(), RunnerError> {
        let Ready { start, spec, files, prompt, held } = ready;
        let takes_messages = self.env.agent.capabilities().messages;
        let (instruct, instructions) = mpsc::unbounded_channel();
        if takes_messages {
            let _ = instruct.send(Instruction::Say(prompt.clone()));
        }
        let heard = Arc::new(AtomicU64::new(0));
        let (stop, orders) = watch::channel(None);
        let secrets = &self.env.secrets;
        let task = AttemptTask {
            attempt: start.attempt.clone(),
            pump: Pump::new(self.env.supervisor.spawn(&spec)?, orders),
            instructions,
            takes_messages,
            heard: Arc::clone(&heard),
            // Redacted like the output, to recognise a prompt that the agent prints.
            reader: self.reader(log, &start.story, &secrets.redact(&prompt)),
            transcript: self.transcript(&files),
            clean_output: Redactor::new(Arc::clone(secrets)),
            clean_errors: Redactor::new(Arc::clone(secrets)),
            timeouts: self.config.timeouts,
            verbose: self.config.verbose,
            mailbox: self.mailbox.clone(),
            clock: AttemptClock::start(),
        };
        task::spawn(&self.mailbox, task.run());
        let running = RunningAttempt {
            stop,
            takes_messages,
            instructions: instruct,
            began: Instant::now(),
            tracker: StuckTracker::default(),
            looked: Duration::ZERO,
            tree: held.before.clone(),
            heard,
            heard_before: 0,
            held: Arc::new(held),
        };
        self.running.insert(start.attempt, running);
        self.env.supervisor.prepare();
        Ok(())
    }

    fn spec(
        &self,
        log: &RunLog,
        start: &AttemptStarted,
        launch: Launch,
        files: &IterationFiles,
    ) -> Spec {
        let attempt = log.state.story(&start.story).map_or(1, |known| known.totals.attempts);
        let mut env = launch.env;
        for (key, value) in [
            (RUN_ID, log.run.clone()),
            ("RALPH_STORY", start.story.to_string()),
            ("RALPH_ITERATION", start.iteration.to_string()),
            ("RALPH_ATTEMPT", attempt.to_string()),
        ] {
            env.push((OsString::from(key), Some(OsString::from(value))));
        }
        env.push((OsString::from("RALPH_STAGES"), self.stages_left(log, &start.story)));
        Spec {
            program: launch.program.into_os_string(),
            args: launch.args,
            dir: self.tree(start.lane).root().to_owned(),
            env,
            input: (!self.env.agent.capabilities().messages).then(|| files.prompt.clone()),
        }
    }

    fn transcript(&self, files: &IterationFiles) -> Transcript {
        let for_errors = self.config.log_limit / ERRORS_SHARE;
        let output = Log::create(&files.output, self.config.log_limit - for_errors);
        Transcript::begin(output, Log::create(&files.errors, for_errors))
    }

    /// Steps that are due for stuck agents.
    pub(super) fn stuck_dues(&self) -> Vec<StuckDue> {
        let due = self.running.iter().filter_map(|(attempt, running)| {
            let step = running.due(&self.config.stuck)?;
            Some(StuckDue { attempt: attempt.clone(), step })
        });
        due.collect()
    }
}
