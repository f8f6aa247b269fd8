//! What `run` and `dry-run` have in common: the parts of a loop, and its end.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::agent::Agent;
use crate::core::backlog::Backlog;
use crate::core::gate::Gates;
use crate::core::policy::{Policy, StopReason};
use crate::core::secrets::Rules;
use crate::core::signal::AllSigns;
use crate::core::state::RunState;
use crate::engine::ports::{Both, Human, Notice, Reporter};
use crate::engine::{BacklogFile, Ending, Engine, EngineError, Orders, Parts};
use crate::git::{Keeping, WorkTree};
use crate::process::Supervisor;
use crate::report::Publisher;
use crate::settings::{self, Plan};
use crate::store::journal::{Journal, Scope, SqliteJournal, was_set_aside};
use crate::store::lock::RunLock;
use crate::store::room::{Room, private_folder};
use crate::store::wishes::Wishes;
use crate::ui;

use super::accounts::accounts;
use super::applied;
use super::error::CliError;

const BUILT_IN_PROMPT: &str = include_str!("../../PROMPT.md.example");
const PROMPT_FILE: &str = "PROMPT.md";

/// Where the backlog stands and what it is called.
pub struct Place {
    /// In commits.
    pub name: String,
    /// In the journal: outside the repository the whole path, because names repeat.
    pub key: String,
    /// In the work tree, when it is committed with the work.
    pub in_tree: Option<PathBuf>,
}

pub struct Session<'a> {
    pub tree: WorkTree,
    pub backlog: BacklogFile,
    pub place: Place,
    pub plan: &'a Plan,
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
    /// Taken before anything is changed.
    pub lock: RunLock,
}

impl Session<'_> {
    pub fn run(mut self) -> Result<u8, CliError> {
        let _lock = self.lock;
        let path = journal_path(&self.tree)?;
        let journal = SqliteJournal::open(&path, scope(&self.tree, &self.place))?;
        let wishes = Wishes::open(&path, &work_tree_name(&self.tree))?;
        let room = Room::open(self.tree.root())?;
        let agent = agent(self.plan, self.tree.root())?;
        let gates = gates(self.plan, self.backlog.current(), self.dry);
        if let Some(text) = banner(&gates) {
            self.reporter.on_notice(&Notice::Info(text.to_owned()));
        }
        let branch = self.branch.as_deref();
        let applied = applied::settings(self.plan, &agent, &gates, branch, &self.secrets);
        let secrets = Arc::clone(&self.secrets);
        let orders = Orders {
            policy: policy(self.plan, self.human_present),
            instructions: self.instructions,
            instructions_file: self.instructions_file,
            signs: signs(self.plan, self.backlog.current()),
            require_two_claims: self.plan.require_two_claims,
            memory: self.plan.memory,
            timeouts: self.plan.timeouts,
            patience: self.plan.patience,
            gates,
            protect: self.plan.protect.clone(),
            staging: self.plan.staging.clone(),
            allow_dirty: self.allow_dirty,
            settings_file: PathBuf::from(settings::FILE_NAME),
            log_limit: self.plan.log_limit,
            answer_patience: self.plan.answer_timeout,
            human_files: human_files(&self.place),
            listening: self.listening,
            backlog_name: self.place.name,
            backlog_in_tree: self.place.in_tree,
            backlog_key: self.place.key,
            keeping: Keeping { count: self.plan.keep_snapshots, days: self.plan.keep_days },
            branch: self.branch,
            branch_is_chosen: self.plan.branch.is_some(),
            journal_was_damaged: was_set_aside(&path),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let supervisor = Supervisor {
            program: std::env::current_exe()?,
            keep: self.plan.keep_processes.clone(),
        };
        let accounts = accounts(self.plan, &self.tree, &agent, self.dry, &mut *self.reporter)?;
        let files = Publisher::start(room.clone(), applied, now);
        let parts = Parts {
            journal: Box::new(journal),
            backlog: self.backlog,
            tree: self.tree,
            room,
            wishes,
            agent,
            supervisor,
            secrets: self.secrets,
            reporter: Box::new(Both(self.reporter, files.teller())),
            human: self.human,
            accounts,
            clock: now,
        };
        let ending = runtime.block_on(async { Engine::begin(parts, orders)?.run().await });
        // A menu that nobody answers must not keep the process.
        runtime.shutdown_background();
        let error = ending.as_ref().err().map(ToString::to_string);
        files.finish(error.as_deref().map(|error| secrets.redact(error)).as_deref());
        Ok(exit_code(&ending?))
    }
}

/// A missing agent is said before anything is begun.
pub fn agent(plan: &Plan, root: &Path) -> Result<Agent, CliError> {
    let own_program = std::env::current_exe()?;
    let agent = Agent::new(plan.agent.clone(), plan.agent_settings.clone(), own_program);
    agent.launch(root, &[], None).map_err(EngineError::from)?;
    Ok(agent)
}

fn policy(plan: &Plan, human_present: bool) -> Policy {
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
    }
}

/// As they are now: what an agent writes into the backlog later changes nothing.
fn gates(plan: &Plan, backlog: &Backlog, dry: bool) -> Gates {
    let with_gates = backlog.stories.iter().filter(|story| !story.verify.is_empty());
    let of = with_gates.map(|story| (story.id.clone(), story.verify.clone())).collect();
    Gates { all: plan.verify.clone(), of, recheck: plan.recheck, dry }
}

/// As they are now, like the gates.
pub fn signs(plan: &Plan, backlog: &Backlog) -> AllSigns {
    let of = backlog.stories.iter().map(|story| (story.id.clone(), story.signs.clone()));
    AllSigns { run: plan.signs.clone(), of: of.collect() }
}

fn banner(gates: &Gates) -> Option<&'static str> {
    match (gates.is_empty(), gates.dry) {
        (false, true) => Some("gates are not run in a dry run"),
        (true, false) => Some("no gates: a claim rests on the agent's word and a diff"),
        _ => None,
    }
}

pub fn exit_code(ending: &Ending) -> u8 {
    match ending {
        Ending::Stopped(reason) => match reason {
            StopReason::AllDone | StopReason::StoryDone { .. } => 0,
            StopReason::AgentUnusable { .. } => 1,
            StopReason::Once
            | StopReason::BreakerOpen { .. }
            | StopReason::FailsAtOnce { .. }
            | StopReason::Failing { .. }
            | StopReason::ConsecutiveErrors { .. }
            | StopReason::BudgetUsedUp { .. }
            | StopReason::MaxIterations { .. }
            | StopReason::MaxRunTime { .. }
            | StopReason::SlowIterations { .. }
            | StopReason::UsageLimit { .. } => 3,
            StopReason::NothingToSelect { .. }
            | StopReason::ServiceDown { .. }
            | StopReason::AccountTrouble { .. }
            | StopReason::DiskLow { .. } => 4,
            StopReason::Aborted => 5,
        },
        Ending::Interrupted { signal } => u8::try_from(128 + signal).unwrap_or(1),
    }
}

/// In `<git common dir>/ralph`: out of the reach of `git clean`.
pub fn journal_path(tree: &WorkTree) -> Result<PathBuf, CliError> {
    let folder = tree.common_dir().join("ralph");
    private_folder(&folder)?;
    Ok(folder.join("journal.db"))
}

/// What the journal knows of a backlog, changing nothing.
pub fn fold(tree: &WorkTree, place: &Place) -> Result<RunState, CliError> {
    let path = tree.common_dir().join("ralph/journal.db");
    let mut state = RunState::default();
    if !path.exists() {
        return Ok(state);
    }
    let (events, _) = SqliteJournal::open(&path, scope(tree, place))?.read(0)?;
    for recorded in &events {
        state.apply(recorded);
    }
    Ok(state)
}

/// Held until the process ends; said to whoever comes second.
pub fn take_lock(tree: &WorkTree) -> Result<RunLock, CliError> {
    Ok(RunLock::take(&lock_path(tree)?, &whoami())?)
}

/// One run per work tree, so the lock is in that work tree's own git folder.
pub fn lock_path(tree: &WorkTree) -> Result<PathBuf, CliError> {
    let folder = tree.git_dir().join("ralph");
    private_folder(&folder)?;
    Ok(folder.join("lock"))
}

pub fn scope(tree: &WorkTree, place: &Place) -> Scope {
    Scope { backlog: place.key.clone(), work_tree: work_tree_name(tree) }
}

/// Empty for the main one.
pub fn work_tree_name(tree: &WorkTree) -> String {
    let linked = tree.git_dir() != tree.common_dir();
    let name = tree.git_dir().file_name().filter(|_| linked).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// PRD.json, PROMPT.md and ralph.toml, wherever they may be.
pub fn human_files(place: &Place) -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from(PROMPT_FILE), PathBuf::from(settings::FILE_NAME)];
    if let Some(prd) = &place.in_tree {
        files.push(prd.with_file_name(PROMPT_FILE));
        files.push(prd.clone());
    }
    files
}

/// The named file, else PROMPT.md beside the PRD or at the root, else the built-in text.
pub fn instructions(
    named: Option<&Path>,
    prd: &Path,
    root: Option<&Path>,
) -> Result<String, CliError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|source| CliError::Prompt { path: path.display().to_string(), source })
    };
    match instructions_file(named, prd, root) {
        Some(path) => read(&path),
        None => Ok(BUILT_IN_PROMPT.to_owned()),
    }
}

/// None: they are built in.
pub fn instructions_file(named: Option<&Path>, prd: &Path, root: Option<&Path>) -> Option<PathBuf> {
    if named.is_some() {
        return named.map(Path::to_owned);
    }
    let beside = prd.with_file_name(PROMPT_FILE);
    let at_root = root.map(|root| root.join(PROMPT_FILE));
    [Some(beside), at_root].into_iter().flatten().find(|path| path.exists())
}

/// What the agent inherits too, and could print.
pub fn secrets() -> Arc<Rules> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Arc::new(Rules::new(std::env::vars_os().filter_map(text)))
}

fn whoami() -> String {
    let since = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
    let terminal = ui::terminal_name().map(|name| format!(", in {name}")).unwrap_or_default();
    format!("pid {}, since {since}{terminal}", std::process::id())
}

/// Milliseconds since the Unix epoch.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
