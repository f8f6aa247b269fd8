//! One process's part of a run: builds the loop from settings, store and agent, and runs it. For
//! `ralph run` and `ralph run --dry-run`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::{
    Backend, Claude, LaunchRequest, Mock, Plain, WITH_INVENTED_COSTS, files_with_commands,
    named_commands, named_files,
};
use crate::decide::first_looks::first_look;
use crate::decide::gate_files::Sight;
use crate::decide::weigh::Gates;
use crate::files::{follow, read_text};
use crate::model::{
    Backlog, ConfigNotice, Gate, HeldKind, Notice, Policy, RunMarkers, SettingsText, StoryId,
    millis,
};
use crate::ports::{Human, Reporter, new_id};
use crate::process::Supervisor;
use crate::process::supervised::repository_flag;
use crate::report::{AppliedGate, AppliedSettings, Publisher, Waits};
use crate::runner::log::{JournalHistory, RunLog};
use crate::runner::{BacklogFile, CostStores, Ending, Env, Lane, RunConfig, RunnerError, begin};
use crate::settings::{AgentChoice, RunSettings};
use crate::store::ralph_dir::RalphDir;
use crate::store::{Lease, Store, UserCosts, state_folder};
use crate::text::redact::SecretRules;
use crate::ui::{self, TerminalHuman, UiOptions};
use crate::workspace::{HeldPlace, WorkTree, look_at};

use super::error::{Result, exit_code_of};
use super::place::{BacklogPlace, RunInstructions, human_files};
use super::watch::Watch;

/// Of an agent, in bytes.
const LARGEST_SETTINGS: u64 = 1 << 20;

pub struct Session<'a> {
    pub tree: WorkTree,
    pub backlog: BacklogFile,
    pub place: BacklogPlace,
    pub plan: RunSettings,
    pub settings_text: SettingsText,
    pub instructions: RunInstructions,
    pub reporter: Box<dyn Reporter>,
    pub human: Arc<dyn Human>,
    pub look: &'a UiOptions,
    pub branch: Option<String>,
    /// In a scratch repository, without gates and without a human.
    pub dry: bool,
    pub secrets: Arc<SecretRules>,
    /// Run with uncommitted edits.
    pub allow_dirty: bool,
    pub store: Store,
    /// Taken before anything is changed.
    pub lease: Lease,
    /// The journal when the run began.
    pub history: JournalHistory,
    /// Until the loop begins.
    pub watch: Option<Watch>,
}

impl Session<'_> {
    /// Returns the exit code.
    pub fn run(mut self) -> Result<u8> {
        let journal = self.store.journal(&self.place.key)?;
        let (requests, answers) = (self.store.requests()?, self.store.answers()?);
        let ralph_dir = RalphDir::open(self.tree.root())?;
        let agent = backend(&self.plan)?;
        require_program(agent.as_ref(), self.tree.root())?;
        let gates = gates(&self.plan, self.backlog.current(), self.dry);
        if let Some(notice) = gates_notice(&gates) {
            self.reporter.on_notice(&Notice::Config(notice));
        }
        self.tree.note_gate_scripts(gates.every());
        let applied = self.applied(agent.as_ref(), &gates);
        let config = self.config(agent.as_ref(), gates);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let costs = self.cost_stores(agent.as_ref())?;
        let keep_processes = self.plan.keep_processes;
        let repository = repository_flag(self.tree.common_dir())?;
        let supervisor = Supervisor::new(std::env::current_exe()?, keep_processes, repository);
        let files = Publisher::start(ralph_dir.clone(), applied, self.look.clock.clone());
        let reporters = vec![self.reporter, files.reporter()];
        let log = RunLog::new(Box::new(journal), Box::new(reporters), self.look.clock.clone());
        let env = Env {
            backlog: self.backlog,
            home: Lane::new(self.tree),
            ralph_dir,
            requests,
            answers,
            agent,
            supervisor,
            secrets: Arc::clone(&self.secrets),
            human: self.human,
            costs,
            clock: self.look.clock.clone(),
            new_id,
        };
        let ending = runtime.block_on(async {
            let mut run = begin(log, self.history, env, config)?;
            drop(self.watch);
            run.run().await
        });
        // An open menu must not delay the exit.
        runtime.shutdown_background();
        let error = ending.as_ref().err().map(ToString::to_string);
        files.finish(error.as_deref().map(|error| self.secrets.redact(error)).as_deref());
        drop(self.lease);
        Ok(match ending? {
            Ending::Stopped(reason) => reason.stop().exit_code,
            Ending::Interrupted { signal } => exit_code_of(signal),
        })
    }

    fn config(&self, agent: &dyn Backend, gates: Gates) -> RunConfig {
        let (plan, place) = (&self.plan, &self.place);
        let mut held = self.instructions.held(self.tree.root());
        held.extend(self.named_settings());
        held.extend(self.scripts_of_settings());
        RunConfig {
            settings: plan.clone(),
            settings_text: self.settings_text.clone(),
            policy: self.policy(agent, &gates),
            instructions: self.instructions.text.clone(),
            instructions_file: self.instructions.file.clone(),
            markers: markers(plan, self.backlog.current()),
            gates,
            allow_dirty: self.allow_dirty,
            held,
            human_files: human_files(place),
            verbose: self.look.verbose,
            backlog_name: place.name.clone(),
            backlog_in_tree: place.in_tree.clone(),
            backlog_key: place.key.clone(),
            branch: self.branch.clone(),
            journal_was_damaged: self.store.was_damaged(),
            agent_keeps_allowance: agent.capabilities().own_budget,
        }
    }

    /// Files of the work tree that the agent's settings name, if they are there.
    fn named_settings(&self) -> impl Iterator<Item = HeldPlace> {
        let root = self.tree.root();
        let named = named_files(&self.plan.agent_settings).into_iter().map(|path| root.join(path));
        let is_inside = move |path: &PathBuf| {
            let is_up = path.components().any(|part| part == std::path::Component::ParentDir);
            // A link may be the human's: what it leads to is held, too.
            path.starts_with(root) && !is_up && follow::is_file(path)
        };
        let kind = HeldKind::AgentSettings;
        named.filter(is_inside).map(move |path| HeldPlace { kind, path })
    }

    /// Files of the work tree that commands in the agents' settings run.
    fn scripts_of_settings(&self) -> Vec<HeldPlace> {
        let root = self.tree.root();
        let named = named_files(&self.plan.agent_settings);
        let settings = files_with_commands().map(PathBuf::from).chain(named);
        let texts = settings.filter_map(|path| read_text(&root.join(path), LARGEST_SETTINGS).ok());
        let commands: Vec<String> = texts.flat_map(|text| named_commands(&text)).collect();
        let scripts = self.tree.scripts_of(&commands).into_iter();
        let kind = HeldKind::AgentSettings;
        scripts.map(|path| HeldPlace { kind, path: root.join(path) }).collect()
    }

    fn policy(&self, agent: &dyn Backend, gates: &Gates) -> Policy {
        Policy {
            human_present: !self.dry && TerminalHuman::is_there(),
            agent: agent.label(),
            baseline: !gates.all.is_empty() && !gates.dry,
            first_looks: self.first_looks(gates),
            ..self.plan.policy()
        }
    }

    fn first_looks(&self, gates: &Gates) -> BTreeSet<StoryId> {
        let root = self.tree.root();
        let look = |path: &Path| look_at(root, path);
        let sight = Sight { root, look: &look };
        let ids = self.backlog.current().stories.iter().map(|story| &story.id);
        let has_one = |id: &&StoryId| first_look(gates, id, sight).next().is_some();
        ids.filter(|_| !gates.dry).filter(has_one).cloned().collect()
    }

    /// The settings, for the report.
    fn applied(&self, agent: &dyn Backend, gates: &Gates) -> AppliedSettings {
        let plan = &self.plan;
        let permission_mode = agent.permission_modes().and(plan.agent_settings.permission_mode);
        AppliedSettings {
            agent: agent.label(),
            permission_mode: permission_mode.map(|mode| mode.name.to_owned()),
            branch: self.branch.clone(),
            max_iterations: plan.max_iterations,
            max_attempts: plan.max_attempts.get(),
            limits: plan.limits,
            stuck_threshold: plan.stuck_threshold.get(),
            once: plan.once,
            story: plan.story.clone(),
            on_escalation: Some(plan.on_escalation),
            on_limit: Some(plan.on_limit),
            waits: Waits {
                answer_ms: millis(plan.answer_timeout),
                first_event_ms: millis(plan.timeouts.first_event),
                idle_ms: millis(plan.timeouts.idle),
                iteration_ms: millis(plan.timeouts.iteration),
                result_ms: millis(plan.timeouts.after_result),
            },
            min_free_disk: plan.min_free_disk,
            budget: plan.budgets.clone(),
            log_limit: plan.log_limit,
            gates: applied_gates(gates, &self.secrets),
            protect: plan.protect.clone(),
        }
    }

    /// User costs are optional, unless a budget depends on them.
    fn cost_stores(&mut self, agent: &dyn Backend) -> Result<CostStores> {
        let repository = self.store.costs()?;
        if agent.capabilities().invented_costs {
            return Ok(CostStores { repository, user: None });
        }
        let name = self.tree.common_dir().display().to_string();
        let folder = state_folder(&ui::env_var).ok_or_else(UserCosts::no_folder);
        let store = |at: PathBuf| self.store.user_costs(&at, name, WITH_INVENTED_COSTS);
        let user = match folder.and_then(store) {
            Ok(user) => Some(user),
            Err(error) if self.plan.budgets.per_user_day.is_some() => {
                return Err(RunnerError::UserCosts(error).into());
            }
            Err(error) => {
                let notice = ConfigNotice::UserCostsNotKept { problem: error.to_string() };
                self.reporter.on_notice(&Notice::Config(notice));
                None
            }
        };
        Ok(CostStores { repository, user })
    }
}

/// Fails early if the agent's program is missing.
pub fn require_program(agent: &dyn Backend, root: &Path) -> Result<()> {
    let (work_tree, prompt, prompt_file) = (root, "", Path::new(""));
    let request = LaunchRequest { work_tree, gates: &[], allowance: None, prompt, prompt_file };
    Ok(agent.command(&request).map(drop)?)
}

pub fn backend(plan: &RunSettings) -> Result<Arc<dyn Backend>> {
    Ok(match &plan.agent {
        AgentChoice::Claude => Arc::new(Claude { settings: plan.agent_settings.clone() }),
        AgentChoice::Mock { script } => {
            Arc::new(Mock { own_program: std::env::current_exe()?, script: script.clone() })
        }
        AgentChoice::Command { words } => Arc::new(Plain { words: words.clone() }),
    })
}

/// The gates as of the start: later edits of the backlog do not change them.
pub fn gates(plan: &RunSettings, backlog: &Backlog, dry: bool) -> Gates {
    let with_gates = backlog.stories.iter().filter(|story| !story.verify.is_empty());
    let of = with_gates.map(|story| (story.id.clone(), story.verify.clone())).collect();
    Gates { all: plan.verify.clone(), of, recheck: plan.recheck, dry }
}

/// As they are at the start, like the gates.
pub fn markers(plan: &RunSettings, backlog: &Backlog) -> RunMarkers {
    let of = backlog.stories.iter().map(|story| (story.id.clone(), story.markers.clone()));
    RunMarkers { run: plan.markers.clone(), of: of.collect() }
}

fn gates_notice(gates: &Gates) -> Option<ConfigNotice> {
    match (gates.is_empty(), gates.dry) {
        (false, true) => Some(ConfigNotice::GatesNotRun),
        (true, false) => Some(ConfigNotice::NoGates),
        _ => None,
    }
}

/// Only the commands: the environment of a gate may contain secrets. A dry run runs none.
fn applied_gates<'a>(gates: &'a Gates, secrets: &Arc<SecretRules>) -> Vec<AppliedGate> {
    if gates.dry {
        return Vec::new();
    }
    let applied = |(story, gate): (Option<&StoryId>, &Gate)| {
        let run = secrets.redact(&gate.to_string()).into_owned();
        AppliedGate { story: story.cloned(), run }
    };
    let of = |(id, gates): (_, &'a Vec<Gate>)| gates.iter().map(move |gate| (Some(id), gate));
    let all = gates.all.iter().map(|gate| (None, gate));
    all.chain(gates.of.iter().flat_map(of)).map(applied).collect()
}
