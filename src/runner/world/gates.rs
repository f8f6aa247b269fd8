//! Gates of a claim, and the baseline: what they run with, and what they may not change.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::agent::GIT_PLACES;
use crate::decide::gate_files::Sight;
use crate::decide::recheck::{DueGate, STORY};
use crate::model::{Base, LaneId, Untrusted};
use crate::process::sweep::RUN_ID;
use crate::runner::effects::{Effects, GatesOf};
use crate::runner::error::Result;
use crate::runner::log::RunLog;
use crate::runner::task;
use crate::runner::task::gate_guard::GateGuard;
use crate::runner::task::gates::GatesTask;
use crate::runner::task::inspect::Ran;
use crate::runner::task::transcript::Transcript;
use crate::state::StoryState;
use crate::store::log::Log;
use crate::workspace::{GATES, REFLOG_ACTION, look_at, reflog_action};

use super::World;
use super::between_runs::TreeLook;
use super::held_backlog::BacklogWriter;

/// The folder for the versions that gates wrote.
pub(super) fn folder_of(gates: &GatesOf) -> &str {
    match gates {
        GatesOf::Baseline | GatesOf::FirstLook { .. } => "baseline",
        GatesOf::Claim { attempt, .. } => attempt,
    }
}

impl World {
    pub(super) fn begin_gates(&mut self, log: &mut RunLog, of: GatesOf) -> Result<()> {
        let story = match &of {
            GatesOf::Baseline | GatesOf::FirstLook { .. } => None,
            GatesOf::Claim { story, .. } => Some(story.clone()),
        };
        let known = story.as_ref().and_then(|story| log.state.story(story));
        let iteration = known.map_or(0, |known| known.iteration);
        let due = self.gates_due(log, &of);
        let is_broken = self.env.backlog.problem().is_some();
        self.backlog_writer = Some(BacklogWriter::gates(&of, is_broken));
        let lane = story.as_ref().and_then(|story| log.state.lanes.of(story));
        let base = known.and_then(|known| known.base().cloned());
        let file = self.env.ralph_dir.gates(&log.run, iteration, story.as_ref())?;
        let mut env: Vec<_> = GIT_PLACES.iter().map(|name| (name.into(), None)).collect();
        env.push((RUN_ID.into(), Some(log.run.clone().into())));
        env.push((REFLOG_ACTION.into(), Some(reflog_action(GATES).into())));
        env.push(("RALPH_ITERATION".into(), Some(iteration.to_string().into())));
        let named = match &of {
            GatesOf::FirstLook { story } => Some(story),
            _ => story.as_ref(),
        };
        env.extend(named.map(|story| (STORY.into(), Some(story.to_string().into()))));
        let (orders, stop) = watch::channel(None);
        self.gates.push((of.clone(), orders, Instant::now()));
        self.look = TreeLook::Due;
        let task = GatesTask {
            red: self.red_gates(log, &due),
            due,
            supervisor: self.env.supervisor.clone(),
            lane: self.lane(lane.unwrap_or(LaneId::HOME))?.clone(),
            accepted: known.map(StoryState::accepted_files).unwrap_or_default(),
            counted: known.and_then(|known| known.counted().cloned()),
            backlog: self.config.backlog_in_tree.clone(),
            began: known.and_then(|known| known.head.clone()),
            guard: self.gate_guard(log, &of, base.clone()),
            base,
            of,
            env,
            stop,
            secrets: Arc::clone(&self.env.secrets),
            log: Transcript::begin(Log::new(file, self.config.settings.log_limit), None),
            mailbox: self.mailbox.clone(),
            clock: self.env.clock.clone(),
            config: Arc::clone(&self.config),
        };
        task::spawn(&self.mailbox, task.run());
        Ok(())
    }

    fn gates_due(&self, log: &RunLog, of: &GatesOf) -> Vec<DueGate> {
        let root = self.env.home.root().to_owned();
        let look = |path: &Path| look_at(&root, path);
        let sight = Sight { root: &root, look: &look };
        let story = match of {
            GatesOf::Baseline => return self.config.baseline_gates(sight),
            GatesOf::FirstLook { story } => return self.config.first_look(story, sight),
            GatesOf::Claim { story, .. } => story,
        };
        let mut due = self.config.gates_due(story, self.env.backlog.current(), sight);
        for one in &mut due {
            let gate = self.redact(&one.gate.to_string());
            one.last_ms = log.state.gate_results.last_ms(&gate, one.guards.as_ref());
        }
        due
    }

    /// The story's gates that failed when they ran last, and on what.
    fn red_gates(&self, log: &RunLog, due: &[DueGate]) -> Vec<(String, Base)> {
        let own = due.iter().filter(|due| due.guards.is_none());
        let red = own.filter_map(|due| {
            let gate = self.redact(&due.gate.to_string());
            let at = log.state.gate_results.red_at(&gate, None)?.clone();
            Some((gate, at))
        });
        red.collect()
    }

    pub(super) fn gate_guard(&self, log: &RunLog, of: &GatesOf, base: Option<Base>) -> GateGuard {
        let ran = match of {
            GatesOf::Baseline | GatesOf::FirstLook { .. } => {
                Ran { what: Untrusted::Baseline, story: None }
            }
            GatesOf::Claim { story, .. } => {
                Ran { what: Untrusted::Gates, story: Some(story.clone()) }
            }
        };
        GateGuard {
            ran,
            folder: folder_of(of).to_owned(),
            is_watched: self.has_kept,
            base,
            told: log.state.written.clone(),
            held: self.config.held.clone(),
            keep: self.config.settings.keep.clone(),
            all: self.config.gates.every().cloned().collect(),
            protect: self.config.settings.protect.clone(),
            backlog: self.config.backlog_in_tree.clone(),
        }
    }
}
