//! `ralph run`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::core::backlog::{Backlog, Severity};
use crate::core::id::StoryId;
use crate::core::permission::PermissionMode;
use crate::core::policy::{OnEscalation, OnLimit};
use crate::core::secrets::Rules;
use crate::core::text::visible_line;
use crate::engine::ports::{Notice, Reporter};
use crate::engine::{BacklogFile, end_earlier_runs};
use crate::git::{GitError, Head, Place as GitPlace, Switched, WorkTree};
use crate::mock;
use crate::settings::{AgentChoice, AgentKind, Flags, Plan, SettingsFile};
use crate::store::atomic;
use crate::store::journal::{self, SqliteJournal};
use crate::store::prd::PrdFile;
use crate::ui::{self, TerminalHuman, UiOptions};

use super::args::{AgentArg, OnEscalationArg, OnLimitArg, PermissionModeArg, RunArgs};
use super::damaged;
use super::error::CliError;
use super::permissions;
use super::preflight::{Beside, Preflight};
use super::session::{
    Place, Session, exit_code, instructions, instructions_file, journal_path, secrets, take_lock,
    work_tree_name,
};
use super::trust;

/// With a journal that is damaged: once more, with a new one.
pub fn run(args: RunArgs, look: &UiOptions) -> Result<u8, CliError> {
    match run_once(args.clone(), look) {
        Err(error) if error.is_damaged_journal() => {
            damaged::set_journal_aside(&args.prd, ui::reporter(look).as_mut())?;
            run_once(args, look)
        }
        result => result,
    }
}

fn run_once(args: RunArgs, look: &UiOptions) -> Result<u8, CliError> {
    let prd = args.prd.clone();
    let loaded = PrdFile::new(&prd).load()?;
    let mut tree = open_tree(&prd)?;
    let lock = take_lock(&tree)?;
    let file = SettingsFile::load(tree.root())?;
    let root = tree.root().to_owned();
    let (trusted, agent) = (args.trust, file.agent.clone());
    let mut plan = Plan::new(flags(args), &ui::env_var, file, &root)?;
    check_script(&plan)?;
    let mut reporter = ui::reporter(look);
    journal::require_whole(&journal_path(&tree)?)?;
    end_what_is_left(&tree, &plan, reporter.as_mut())?;
    let human = Arc::new(TerminalHuman::new(look.color));
    let secrets = secrets();
    remove_left_locks(&tree, reporter.as_mut())?;
    let before = Preflight { tree: &tree, plan: &plan, human: &human };
    let allow_dirty = match before.uncommitted(&place_of(&tree, &prd)?, reporter.as_mut())? {
        Beside::Nothing => plan.allow_dirty,
        Beside::Edits => true,
        Beside::Left(left) => return Ok(exit_code(&left)),
    };
    before.tell_surroundings(reporter.as_mut())?;
    name_the_command(&plan, &secrets, reporter.as_mut());
    if let Some(left) = permissions::settle(&mut plan, &tree, &human, reporter.as_mut())? {
        return Ok(exit_code(&left));
    }
    let accepted = |tree: &WorkTree, backlog: &Backlog| {
        let clauses = trust::clauses(&plan, &agent, backlog, &root);
        trust::require(tree, clauses, trusted, &human, plan.answer_timeout)
    };
    if let Some(left) = accepted(&tree, &loaded.backlog)? {
        return Ok(exit_code(&left));
    }
    let branch = take_branch(&mut tree, plan.branch.as_deref(), reporter.as_mut())?;
    // On another branch it may be another backlog.
    atomic::remove_leftovers(&prd)?;
    let backlog = BacklogFile::open(PrdFile::new(&prd))?;
    check_story(backlog.current(), plan.story.as_ref())?;
    warn(&backlog, reporter.as_mut());
    if let Some(left) = accepted(&tree, backlog.current())? {
        return Ok(exit_code(&left));
    }
    let place = place(&tree, &prd, reporter.as_mut())?;
    let instructions_file = instructions_file(plan.prompt.as_deref(), &prd, Some(&root));
    let instructions = instructions(plan.prompt.as_deref(), &prd, Some(&root))?;
    Session {
        tree,
        backlog,
        place,
        plan: &plan,
        instructions,
        instructions_file: instructions_file.and_then(|path| std::path::absolute(path).ok()),
        reporter,
        human,
        human_present: TerminalHuman::is_there(),
        listening: look.verbose,
        branch,
        dry: false,
        secrets,
        allow_dirty,
        lock,
    }
    .run()
}

/// From this folder upward; else from the PRD's, so that it can be named from anywhere.
pub fn open_tree(prd: &Path) -> Result<WorkTree, CliError> {
    let here = std::env::current_dir()?;
    match WorkTree::open(&here) {
        Err(GitError::NotARepository { .. }) => {
            let folder = std::path::absolute(prd)?;
            Ok(WorkTree::open(folder.parent().unwrap_or(&here))?)
        }
        opened => Ok(opened?),
    }
}

pub fn flags(args: RunArgs) -> Flags {
    Flags {
        max_iterations: args.max_iterations,
        max_consecutive_errors: args.max_consecutive_errors,
        max_failing: args.max_failing,
        max_run_time: args.max_run_time,
        max_average_iteration: args.max_average_iteration,
        on_escalation: args.on_escalation.map(|what| match what {
            OnEscalationArg::Ask => OnEscalation::Ask,
            OnEscalationArg::Park => OnEscalation::Park,
            OnEscalationArg::Skip => OnEscalation::Skip,
            OnEscalationArg::Abort => OnEscalation::Abort,
        }),
        on_limit: args.on_limit.map(|what| match what {
            OnLimitArg::Wait => OnLimit::Wait,
            OnLimitArg::Stop => OnLimit::Stop,
        }),
        answer_timeout: args.answer_timeout,
        prompt: args.prompt,
        branch: args.branch,
        allow_dirty: args.allow_dirty,
        agent: args.agent.map(|agent| match agent {
            AgentArg::Claude => AgentKind::Claude,
            AgentArg::Mock => AgentKind::Mock,
        }),
        agent_command: args.agent_command,
        permission_mode: args.permission_mode.map(|mode| match mode {
            PermissionModeArg::AcceptEdits => PermissionMode::AcceptEdits,
            PermissionModeArg::Auto => PermissionMode::Auto,
            PermissionModeArg::DontAsk => PermissionMode::DontAsk,
            PermissionModeArg::BypassPermissions => PermissionMode::BypassPermissions,
        }),
        mock_script: args.mock_script.map(|path| std::path::absolute(&path).unwrap_or(path)),
        once: args.once,
        story: args.story,
        budget: args.budget.into(),
    }
}

/// Nothing of an earlier run may work in the tree while this one does.
fn end_what_is_left(
    tree: &WorkTree,
    plan: &Plan,
    reporter: &mut dyn Reporter,
) -> Result<(), CliError> {
    let runs = SqliteJournal::open_runs(&journal_path(tree)?, &work_tree_name(tree))?;
    Ok(end_earlier_runs(&runs, &plan.keep_processes, reporter)?)
}

fn remove_left_locks(tree: &WorkTree, reporter: &mut dyn Reporter) -> Result<(), CliError> {
    for lock in tree.remove_own_locks()? {
        let text = format!("removed `{}`, which a killed process left behind", lock.display());
        reporter.on_notice(&Notice::Info(text));
    }
    Ok(())
}

/// It may come from a file that somebody else wrote.
fn name_the_command(plan: &Plan, secrets: &Arc<Rules>, reporter: &mut dyn Reporter) {
    if let AgentChoice::Command { words } = &plan.agent {
        let words = words.join(" ");
        let text = format!("the agent is `{}`", visible_line(&secrets.redact(&words)));
        reporter.on_notice(&Notice::Info(text));
    }
}

pub fn check_script(plan: &Plan) -> Result<(), CliError> {
    match &plan.agent {
        AgentChoice::Mock { script: Some(script) } => Ok(mock::check_script(script)?),
        _ => Ok(()),
    }
}

pub fn check_story(backlog: &Backlog, wanted: Option<&StoryId>) -> Result<(), CliError> {
    let Some(story) = wanted.filter(|id| backlog.story(id).is_none()) else { return Ok(()) };
    let alike = |id: &StoryId| strsim::jaro_winkler(id.as_str(), story.as_str());
    let nearest = backlog.stories.iter().map(|story| &story.id).filter(|id| alike(id) > 0.8);
    let nearest = nearest.max_by(|a, b| alike(a).total_cmp(&alike(b))).cloned();
    Err(CliError::NoSuchStory { story: story.clone(), nearest })
}

pub fn warn(backlog: &BacklogFile, reporter: &mut dyn Reporter) {
    for doubt in &backlog.loaded().warnings {
        if doubt.severity == Severity::Warning {
            reporter.on_notice(&Notice::Warning(doubt.message.clone()));
        }
    }
}

fn take_branch(
    tree: &mut WorkTree,
    wanted: Option<&str>,
    reporter: &mut dyn Reporter,
) -> Result<Option<String>, CliError> {
    if let Some(name) = wanted {
        let how = match tree.switch_to(name)? {
            Switched::Created => "made from HEAD",
            Switched::Existing => "switched to",
            Switched::AlreadyThere => "already there",
        };
        reporter.on_notice(&Notice::Info(format!("branch `{name}`: {how}")));
    }
    let Head::Branch { name, .. } = tree.branch()? else { return Err(CliError::Detached) };
    if wanted.is_none() && matches!(name.as_str(), "main" | "master") {
        let note = format!("commits go to `{name}`; `--branch NAME` works on a branch of its own");
        reporter.on_notice(&Notice::Info(note));
    }
    Ok(Some(name))
}

/// Says once when the backlog is not committed with the work.
fn place(tree: &WorkTree, prd: &Path, reporter: &mut dyn Reporter) -> Result<Place, CliError> {
    let place = place_of(tree, prd)?;
    if place.in_tree.is_none() {
        let inside = tree.place_of(prd)? != GitPlace::Outside;
        let why = if inside { "ignored by git" } else { "outside the repository" };
        let path = PathBuf::from(&place.name);
        reporter.on_notice(&Notice::BacklogNotCommitted { path, why: why.to_owned() });
    }
    Ok(place)
}

pub fn place_of(tree: &WorkTree, prd: &Path) -> Result<Place, CliError> {
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    Ok(match tree.place_of(prd)? {
        GitPlace::Inside(path) => {
            Place { name: shown(&path), key: shown(&path), in_tree: Some(path) }
        }
        GitPlace::Ignored(path) => Place { name: shown(&path), key: shown(&path), in_tree: None },
        GitPlace::Outside => {
            let name = prd.file_name().map(Path::new).map(shown).unwrap_or_default();
            Place { name, key: shown(&prd.canonicalize()?), in_tree: None }
        }
    })
}
