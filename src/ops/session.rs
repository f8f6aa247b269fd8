//! What `run` and `dry-run` have in common: the parts of a loop, and its end.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::agent::{Backend, Claude, LaunchRequest, Mock, Plain};
use crate::decide::gates::Gates;
use crate::model::{Backlog, Policy, RunMarkers};
use crate::ports::{Both, ConfigNotice, Human, Notice, Reporter};
use crate::process::Supervisor;
use crate::report::Publisher;
use crate::runner::log::{JournalHistory, RunLog};
use crate::runner::{BacklogFile, Ending, Env, RunConfig, begin};
use crate::settings;
use crate::settings::{AgentChoice, RunSettings};
use crate::store::ralph_dir::RalphDir;
use crate::store::{Lease, Store};
use crate::text::redact::Rules;
use crate::workspace::{Keeping, WorkTree};

use super::accounts::cost_books;
use super::applied;
use super::error::CommandError;
use super::place::{BacklogPlace, human_files, now};

pub struct Session<'a> {
    pub tree: WorkTree,
    pub backlog: BacklogFile,
    pub place: BacklogPlace,
    pub plan: &'a RunSettings,
    pub instructions: String,
    /// Where they come from, if from a file that agents could change.
    pub instructions_file: Option<PathBuf>,
    pub reporter: Box<dyn Reporter>,
    pub human: Arc<dyn Human>,
    pub human_present: bool,
    pub listening: bool,
    pub branch: Option<String>,
    pub dry: bool,
    pub secrets: Arc<Rules>,
    /// Beside uncommitted edits.
    pub allow_dirty: bool,
    pub store: Store,
    /// Taken before anything is changed.
    pub lease: Lease,
    /// What the journal had when the run began.
    pub history: JournalHistory,
}

impl Session<'_> {
    pub fn run(mut self) -> Result<u8, CommandError> {
        let journal = self.store.journal(&self.place.key)?;
        let requests = self.store.requests()?;
        let ralph_dir = RalphDir::open(self.tree.root())?;
        let agent = backend(self.plan)?;
        require_program(agent.as_ref(), self.tree.root())?;
        let gates = gates(self.plan, self.backlog.current(), self.dry);
        if let Some(notice) = banner(&gates) {
            self.reporter.on_notice(&Notice::Config(notice));
        }
        let branch = self.branch.as_deref();
        let applied = applied::settings(self.plan, agent.as_ref(), &gates, branch, &self.secrets);
        let secrets = Arc::clone(&self.secrets);
        let config = self.config(agent.as_ref(), gates);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let supervisor =
            Supervisor::new(std::env::current_exe()?, self.plan.keep_processes.clone());
        let (plan, reporter) = (self.plan, &mut *self.reporter);
        let costs = cost_books(plan, &self.store, &self.tree, agent.as_ref(), reporter)?;
        let files = Publisher::start(ralph_dir.clone(), applied, now);
        let clock = Arc::new(now);
        let reporter = Box::new(Both(self.reporter, files.teller()));
        let log = RunLog::new(Box::new(journal), reporter, clock.clone());
        let env = Env {
            backlog: self.backlog,
            tree: self.tree,
            ralph_dir,
            requests,
            agent,
            supervisor,
            secrets: self.secrets,
            human: self.human,
            costs,
            clock,
            new_id: || Uuid::now_v7().to_string(),
        };
        let ending = runtime.block_on(async { begin(log, self.history, env, config)?.run().await });
        // A menu that nobody answers must not keep the process.
        runtime.shutdown_background();
        let error = ending.as_ref().err().map(ToString::to_string);
        files.finish(error.as_deref().map(|error| secrets.redact(error)).as_deref());
        drop(self.lease);
        Ok(exit_code(&ending?))
    }

    fn config(&self, agent: &dyn Backend, gates: Gates) -> RunConfig {
        RunConfig {
            policy: policy(self.plan, self.human_present, agent, &gates),
            instructions: self.instructions.clone(),
            instructions_file: self.instructions_file.clone(),
            markers: markers(self.plan, self.backlog.current()),
            require_two_claims: self.plan.require_two_claims,
            memory: self.plan.memory,
            timeouts: self.plan.timeouts,
            stuck: self.plan.stuck,
            gates,
            protect: self.plan.protect.clone(),
            staging: self.plan.staging.clone(),
            allow_dirty: self.allow_dirty,
            settings_file: PathBuf::from(settings::FILE_NAME),
            log_limit: self.plan.log_limit,
            answer_patience: self.plan.answer_timeout,
            human_files: human_files(&self.place),
            verbose: self.listening,
            backlog_name: self.place.name.clone(),
            backlog_in_tree: self.place.in_tree.clone(),
            backlog_key: self.place.key.clone(),
            keeping: Keeping { count: self.plan.keep_snapshots, days: self.plan.keep_days },
            branch: self.branch.clone(),
            branch_is_chosen: self.plan.branch.is_some(),
            journal_was_damaged: self.store.was_set_aside(),
            agent_keeps_allowance: agent.capabilities().own_budget,
        }
    }
}

/// A missing agent is said before anything is begun.
pub fn require_program(agent: &dyn Backend, root: &Path) -> Result<(), CommandError> {
    let request = LaunchRequest { work_tree: root, gates: &[], allowance: None };
    agent.command(&request)?;
    Ok(())
}

pub fn backend(plan: &RunSettings) -> Result<Arc<dyn Backend>, CommandError> {
    Ok(match &plan.agent {
        AgentChoice::Claude => Arc::new(Claude { settings: plan.agent_settings.clone() }),
        AgentChoice::Mock { script } => {
            Arc::new(Mock { own_program: std::env::current_exe()?, script: script.clone() })
        }
        AgentChoice::Command { words } => Arc::new(Plain { words: words.clone() }),
    })
}

fn policy(plan: &RunSettings, human_present: bool, agent: &dyn Backend, gates: &Gates) -> Policy {
    Policy {
        max_iterations: plan.max_iterations,
        once: plan.once,
        attempts_before: 0,
        only: plan.story.clone(),
        stuck_threshold: plan.stuck_threshold,
        max_attempts: plan.max_attempts,
        fresh_start_after: plan.fresh_start_after,
        limits: plan.limits,
        on_escalation: plan.on_escalation,
        on_limit: plan.on_limit,
        min_free_disk: plan.min_free_disk,
        human_present,
        budgets: plan.budgets.clone(),
        lanes: NonZeroU32::MIN,
        agent: agent.label(),
        baseline: !gates.all.is_empty() && !gates.dry,
    }
}

/// As they are now: what an agent writes into the backlog later changes nothing.
fn gates(plan: &RunSettings, backlog: &Backlog, dry: bool) -> Gates {
    let with_gates = backlog.stories.iter().filter(|story| !story.verify.is_empty());
    let of = with_gates.map(|story| (story.id.clone(), story.verify.clone())).collect();
    Gates { all: plan.verify.clone(), of, recheck: plan.recheck, dry }
}

/// As they are now, like the gates.
pub fn markers(plan: &RunSettings, backlog: &Backlog) -> RunMarkers {
    let of = backlog.stories.iter().map(|story| (story.id.clone(), story.signs.clone()));
    RunMarkers { run: plan.markers.clone(), of: of.collect() }
}

fn banner(gates: &Gates) -> Option<ConfigNotice> {
    match (gates.is_empty(), gates.dry) {
        (false, true) => Some(ConfigNotice::GatesNotRun),
        (true, false) => Some(ConfigNotice::NoGates),
        _ => None,
    }
}

pub fn exit_code(ending: &Ending) -> u8 {
    match ending {
        Ending::Stopped(reason) => reason.exit_code(),
        Ending::Interrupted { signal } => u8::try_from(128 + signal).unwrap_or(1),
    }
}
