//! `ralph run`, and `ralph run --dry-run`: the whole loop in a scratch repository.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::atomic::{remove_leftovers, replace};
use crate::mock;
use crate::model::{
    Budgets, ConfigNotice, Event, Limits, Notice, OnEscalation, Recorded, SettingsText,
    visible_line,
};
use crate::ports::{Ask, Asked, Human};
use crate::runner::BacklogFile;
use crate::runner::log::JournalHistory;
use crate::settings::{AgentChoice, Flags, RunSettings};
use crate::store::prd::PrdFile;
use crate::store::{Journal, Store};
use crate::ui::{self, UiOptions};
use crate::workspace::{WorkTree, init_scratch, mend_heads};

use super::error::{CommandError, Result};
use super::head::return_to_branch;
use super::held_backlog::restore_path;
use super::in_force::InForce;
use super::lost_journal::{LostJournal, snapshot_without_journal};
use super::place::{
    BacklogPlace, RunInstructions, find_story, find_tree_for_run, history, instructions, open_tree,
    place_of, refuse_supervised, secrets, store_of, take_lease,
};
use super::preflight::{Preflight, report_warnings};
use super::session::Session;
use super::setup::{repaired_setup, restore_setup, was_interrupted};
use super::terminal::print;
use super::undo::UndoScene;
use super::watch::Watch;

/// The backlog of a dry run.
const SCRATCH_PRD: &str = "PRD.json";

/// If the journal is damaged, renames it and runs again with a new one. `trust`: approve the repository's commands
/// without asking.
pub fn run(prd: &Path, flags: &Flags, trust: bool, look: &UiOptions) -> Result<u8> {
    let here = std::env::current_dir()?;
    let watch = || Watch::start(&here, look);
    match run_once(prd, flags, trust, look, watch()?) {
        Err(error) if error.is_damaged_journal() => {
            rename_damaged_journal(prd, look)?;
            run_once(prd, flags, trust, look, watch()?)
        }
        result => result,
    }
}

/// Renames the damaged journal; the next run rebuilds a new one.
fn rename_damaged_journal(prd: &Path, look: &UiOptions) -> Result<()> {
    let tree = open_tree(prd)?;
    let store = store_of(&tree);
    let _lease = take_lease(&store, &look.clock)?;
    let kept = store.rename_damaged(look.clock.now().wall)?;
    ui::reporter(look).on_notice(&Notice::Config(ConfigNotice::JournalDamaged { kept }));
    Ok(())
}

fn run_once(prd: &Path, flags: &Flags, trust: bool, look: &UiOptions, watch: Watch) -> Result<u8> {
    let (tree, mended) = tree_of_run(prd)?;
    refuse_supervised("`ralph run`", &tree)?;
    let store = store_of(&tree);
    let lease = take_lease(&store, &look.clock)?;
    let (mut tree, repaired) = restore_setup(tree, prd, &store)?;
    let moved = restore_path(prd, &tree, &store)?;
    let found = place_of(&tree, prd)?;
    let mut known = history(&store, &found)?;
    known.repaired.extend(mended.into_iter().chain(repaired).chain(moved));
    known.repaired.extend(return_to_branch(&mut tree, &found, &known.state)?);
    finish_commands(&tree, &store, prd, &mut known, look)?;
    let (reporter, human) = ui::terminal(look);
    let (secrets, clock) = (secrets(), look.clock.clone());
    let mut lost = LostJournal { tree: &mut tree, prd, flags, human: &human, secrets: &secrets };
    known.repaired.extend(lost.restore(&store, &found, &known)?);
    let in_force = InForce::of(&known.state, tree.root(), flags)?;
    check_script(&in_force.plan)?;
    let mut preflight = Preflight { tree, store, in_force, reporter, human, secrets, clock };
    preflight.take_approved_settings(&mut known, flags)?;
    let journal_check = preflight.clean_up()?;
    preflight.settle_settings(&mut known, flags)?;
    preflight.restore(prd, &found, &mut known)?;
    let loaded = PrdFile::new(prd).load()?;
    let allow_dirty = preflight.check_edits(&found, &known.state)?;
    preflight.report_setup()?;
    preflight.settle_permissions()?;
    preflight.require_trust(&loaded.backlog, trust)?;
    let branch = preflight.take_branch()?;
    preflight.restore_backlog(prd, &found, &mut known)?;
    // The branch may have another version of the backlog.
    let backlog = preflight.open_backlog(prd)?;
    preflight.require_trust(backlog.current(), trust)?;
    let place = preflight.place_of(prd)?;
    let history = if place.key == found.key {
        known
    } else {
        JournalHistory { repaired: known.repaired, ..history(&preflight.store, &place)? }
    };
    journal_check.finish()?;
    let Preflight { tree, store, in_force, reporter, human, secrets, .. } = preflight;
    let InForce { plan, text: settings_text } = in_force;
    Session {
        instructions: instructions(plan.prompt.as_deref(), prd, Some(tree.root()))?,
        tree,
        backlog,
        place,
        plan,
        settings_text,
        reporter,
        human,
        look,
        branch: Some(branch),
        dry: false,
        secrets,
        allow_dirty,
        store,
        lease,
        history,
        watch: Some(watch),
    }
    .run()
}

/// Carries out a `ralph restore` or `ralph undo` that was killed.
fn finish_commands(
    tree: &WorkTree,
    store: &Store,
    prd: &Path,
    known: &mut JournalHistory,
    look: &UiOptions,
) -> Result<()> {
    if let Some(number) = tree.finish_restore(&tree.backlogs_of_runs()?)? {
        tell_finished(format!("ralph restore {number}"), look);
    }
    if known.state.undo.is_none() {
        return Ok(());
    }
    tree.remove_noted_locks()?;
    remove_leftovers(prd)?;
    let place = place_of(tree, prd)?;
    let clock = &look.clock;
    let scene = UndoScene { tree, store, file: PrdFile::new(prd), place: &place, clock };
    if let Some((story, _)) = scene.finish()? {
        let repaired = std::mem::take(&mut known.repaired);
        *known = JournalHistory { repaired, ..history(store, &place)? };
        tell_finished(format!("ralph undo {story}"), look);
    }
    Ok(())
}

fn tell_finished(command: String, look: &UiOptions) {
    ui::reporter(look).on_notice(&Notice::Config(ConfigNotice::CommandFinished { command }));
}

/// Refuses a broken backlog, unless something was killed that may have left it so, or left another
/// branch.
fn tree_of_run(prd: &Path) -> Result<(WorkTree, Option<Event>)> {
    let (found, mended) = match find_tree_for_run(prd) {
        Err(error) => match mend_heads(&std::env::current_dir()?)? {
            Some(violation) => (find_tree_for_run(prd), Some(repaired_setup(violation))),
            None => (Err(error), None),
        },
        found => (found, None),
    };
    if let Err(error) = PrdFile::new(prd).load() {
        let Ok(tree) = found else { return Err(error.into()) };
        let store = store_of(&tree);
        let may_mend = was_interrupted(&tree, &store)?
            || snapshot_without_journal(&tree, &store, prd, None)?.is_some();
        return if may_mend { Ok((tree, mended)) } else { Err(error.into()) };
    }
    Ok((found?, mended))
}

fn check_script(plan: &RunSettings) -> Result<()> {
    match &plan.agent {
        AgentChoice::Mock { script: Some(script) } => Ok(mock::check_script(script)?),
        _ => Ok(()),
    }
}

pub fn dry_run(prd: &Path, flags: &Flags, look: &UiOptions) -> Result<u8> {
    let original = PrdFile::new(prd).load()?;
    let plan = dry_plan(flags.clone())?;
    let instructions = instructions(plan.prompt.as_deref(), prd, None)?;
    if let Some(story) = &plan.story {
        find_story(&original.backlog, story)?;
    }
    // Removed when it goes out of scope, after an error too.
    let folder = tempfile::Builder::new().prefix("ralph-dry-run-").tempdir()?;
    let prd = folder.path().join(SCRATCH_PRD);
    replace(&prd, original.text.as_bytes())?;
    let tree = init_scratch(folder.path())?;
    let place = BacklogPlace {
        name: SCRATCH_PRD.to_owned(),
        key: SCRATCH_PRD.to_owned(),
        in_tree: Some(PathBuf::from(SCRATCH_PRD)),
    };
    let store = store_of(&tree);
    let lease = take_lease(&store, &look.clock)?;
    let backlog = BacklogFile::open(PrdFile::new(prd))?;
    let mut reporter = ui::reporter(look);
    report_warnings(&backlog, reporter.as_mut());
    let session = Session {
        tree,
        backlog,
        place,
        plan,
        settings_text: SettingsText::default(),
        // The run is in another repository, so there is no file to guard.
        instructions: RunInstructions { file: None, places: Vec::new(), ..instructions },
        reporter,
        human: Arc::new(NoHuman),
        look,
        branch: None,
        dry: true,
        secrets: secrets(),
        allow_dirty: false,
        store: store.clone(),
        lease,
        history: JournalHistory::default(),
        watch: None,
    };
    let code = session.run()?;
    let (events, _) = store.journal(SCRATCH_PRD)?.read(0)?;
    // The exit code counts even if the reader of the summary has gone.
    match print(&dry_summary(&events)) {
        Ok(()) | Err(CommandError::Pipe) => Ok(code),
        Err(error) => Err(error),
    }
}

/// The mock agent, no limits, no ralph.toml.
fn dry_plan(mut flags: Flags) -> Result<RunSettings> {
    let agent = flags.values.remove("agent.name");
    if agent.is_some_and(|name| name != "mock") || flags.values.contains_key("agent.command") {
        let why = "a dry run uses the mock agent; remove `--agent` and `--agent-command`";
        return Err(CommandError::Refused(why.to_owned()));
    }
    let script = flags.mock_script.take();
    let mut plan = RunSettings::new("", &flags, &ui::env_var)?;
    plan.agent = AgentChoice::Mock { script };
    plan.max_iterations = None;
    plan.limits = Limits::default();
    plan.min_free_disk = None;
    plan.budgets = Budgets::default();
    plan.on_escalation = OnEscalation::Park;
    check_script(&plan)?;
    Ok(plan)
}

/// The order of the stories, and the questions.
fn dry_summary(events: &[Recorded]) -> String {
    let mut text = String::from("Dry run: no files were changed.\n");
    let closed = events.iter().filter_map(|recorded| match &recorded.event {
        Event::StoryClosed(closed) => Some(&closed.story),
        _ => None,
    });
    let order: Vec<String> = closed.map(ToString::to_string).collect();
    if !order.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "Order: {}", order.join(" → "));
    }
    for recorded in events {
        if let Event::QuestionRaised { story, question } = &recorded.event {
            let _ = writeln!(text, "Would ask about {story}: {}", visible_line(&question.summary));
        }
    }
    text
}

/// A dry run asks no questions.
struct NoHuman;

impl Human for NoHuman {
    fn ask(&self, _: &Ask) -> Asked {
        Asked::NoAnswer
    }
}
