//! `ralph run`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::mock;
use crate::model::Backlog;
use crate::ports::{BacklogNotice, ConfigNotice, Notice, Reporter, SetupNotice, TreeNotice};
use crate::runner::{BacklogFile, end_earlier_runs};
use crate::settings::{AgentChoice, Flags, RunSettings};
use crate::store::prd::PrdFile;
use crate::store::{Store, StoreCheck, atomic};
use crate::text::backlog::Severity;
use crate::ui;
use crate::ui::{TerminalHuman, UiOptions};
use crate::workspace::{Head, Place, Switched, WorkTree};

use super::error::CommandError;
use super::place::{
    BacklogPlace, check_story, history, instructions, instructions_file, now, open_tree, place_of,
    secrets, store_of, take_lease,
};
use super::preflight::{Preflight, UserEdits};
use super::session::{Session, exit_code};
use super::{permissions, trust};

#[derive(Clone, Debug)]
pub struct RunOptions {
    pub prd: PathBuf,
    pub flags: Flags,
    /// Accept the repository's commands without asking.
    pub trust: bool,
}

/// With a journal that is damaged: once more, with a new one.
pub fn run(options: &RunOptions, look: &UiOptions) -> Result<u8, CommandError> {
    match run_once(options, look) {
        Err(error) if error.is_damaged_journal() => {
            set_journal_aside(&options.prd, ui::reporter(look).as_mut())?;
            run_once(options, look)
        }
        result => result,
    }
}

/// The next run begins a new one, with what is known without it.
fn set_journal_aside(prd: &Path, reporter: &mut dyn Reporter) -> Result<(), CommandError> {
    let tree = open_tree(prd)?;
    let store = store_of(&tree);
    let _lease = take_lease(&store)?;
    let kept = store.set_aside(now())?;
    reporter.on_notice(&Notice::Config(ConfigNotice::JournalDamaged { kept }));
    Ok(())
}

fn run_once(options: &RunOptions, look: &UiOptions) -> Result<u8, CommandError> {
    let prd = &options.prd;
    let loaded = PrdFile::new(prd).load()?;
    let mut tree = open_tree(prd)?;
    let store = store_of(&tree);
    let lease = take_lease(&store)?;
    let root = tree.root().to_owned();
    let mut plan = RunSettings::load(&root, &options.flags, &ui::env_var)?;
    let agent = plan.agent_table();
    check_script(&plan)?;
    let (mut reporter, human) = ui::terminal(look);
    let secrets = secrets();
    let journal_check = clean_up(&tree, &store, &plan, reporter.as_mut())?;
    let before = Preflight { tree: &tree, plan: &plan, human: &human };
    let found = place_of(&tree, prd)?;
    let known = history(&store, &found)?;
    let allow_dirty = match before.check(&found, &known.state, &secrets, reporter.as_mut())? {
        UserEdits::Nothing => plan.allow_dirty,
        UserEdits::Edits => true,
        UserEdits::Left(left) => return Ok(exit_code(&left)),
    };
    let place_and_store = (&tree, &store);
    if let Some(left) = permissions::settle(&mut plan, place_and_store, &human, &mut *reporter)? {
        return Ok(exit_code(&left));
    }
    let accepted = |backlog: &Backlog| {
        let clauses = trust::clauses(&plan, &agent, backlog, &root)?;
        trust::require(&store, clauses, options.trust, &human, plan.answer_timeout)
    };
    if let Some(left) = accepted(&loaded.backlog)? {
        return Ok(exit_code(&left));
    }
    let branch = take_branch(&mut tree, plan.branch.as_deref(), reporter.as_mut())?;
    // On another branch it may be another backlog.
    let backlog = open_backlog(prd, &plan, reporter.as_mut())?;
    if let Some(left) = accepted(backlog.current())? {
        return Ok(exit_code(&left));
    }
    let place = place(&tree, prd, reporter.as_mut())?;
    let known = if place.key == found.key { known } else { history(&store, &place)? };
    journal_check.finish()?;
    let named = plan.prompt.as_deref();
    let instructions_file = instructions_file(named, prd, Some(&root));
    Session {
        tree,
        backlog,
        place,
        plan: &plan,
        instructions: instructions(named, prd, Some(&root))?,
        instructions_file: instructions_file.and_then(|path| std::path::absolute(path).ok()),
        reporter,
        human,
        human_present: TerminalHuman::is_there(),
        listening: look.verbose,
        branch,
        dry: false,
        secrets,
        allow_dirty,
        store: store.clone(),
        lease,
        history: known,
        clock: Arc::clone(&look.clock),
    }
    .run()
}

fn open_backlog(
    prd: &Path,
    plan: &RunSettings,
    reporter: &mut dyn Reporter,
) -> Result<BacklogFile, CommandError> {
    atomic::remove_leftovers(prd)?;
    let backlog = BacklogFile::open(PrdFile::new(prd))?;
    check_story(backlog.current(), plan.story.as_ref())?;
    warn(&backlog, reporter);
    Ok(backlog)
}

/// What an earlier run left behind. The journal is checked beside the rest of the preparation.
fn clean_up(
    tree: &WorkTree,
    store: &Store,
    plan: &RunSettings,
    reporter: &mut dyn Reporter,
) -> Result<StoreCheck, CommandError> {
    let check = store.start_check()?;
    end_earlier_runs(&store.open_runs()?, &plan.keep_processes, reporter)?;
    for path in tree.remove_own_locks()? {
        reporter.on_notice(&Notice::Tree(TreeNotice::LockRemoved { path }));
    }
    Ok(check)
}

pub fn check_script(plan: &RunSettings) -> Result<(), CommandError> {
    match &plan.agent {
        AgentChoice::Mock { script: Some(script) } => Ok(mock::check_script(script)?),
        _ => Ok(()),
    }
}

pub fn warn(backlog: &BacklogFile, reporter: &mut dyn Reporter) {
    for doubt in backlog.warnings() {
        if doubt.severity == Severity::Warning {
            let message = doubt.message.clone();
            reporter.on_notice(&Notice::Backlog(BacklogNotice::Doubt { message }));
        }
    }
}

fn take_branch(
    tree: &mut WorkTree,
    wanted: Option<&str>,
    reporter: &mut dyn Reporter,
) -> Result<Option<String>, CommandError> {
    if let Some(name) = wanted {
        let branch = name.to_owned();
        reporter.on_notice(&Notice::Setup(match tree.switch_to(name)? {
            Switched::Created => SetupNotice::BranchCreated { branch },
            Switched::Existing => SetupNotice::BranchSwitched { branch },
            Switched::AlreadyThere => SetupNotice::BranchCurrent { branch },
        }));
    }
    let Head::Branch { name, .. } = tree.branch()? else { return Err(CommandError::Detached) };
    if wanted.is_none() && matches!(name.as_str(), "main" | "master") {
        let branch = name.clone();
        reporter.on_notice(&Notice::Setup(SetupNotice::OnMainBranch { branch }));
    }
    Ok(Some(name))
}

/// Says once when the backlog is not committed with the work.
fn place(
    tree: &WorkTree,
    prd: &Path,
    reporter: &mut dyn Reporter,
) -> Result<BacklogPlace, CommandError> {
    let place = place_of(tree, prd)?;
    if place.in_tree.is_none() {
        let inside = tree.place_of(prd)? != Place::Outside;
        let why = if inside { "ignored by git" } else { "outside the repository" };
        let path = PathBuf::from(&place.name);
        reporter.on_notice(&Notice::BacklogNotCommitted { path, why: why.to_owned() });
    }
    Ok(place)
}
