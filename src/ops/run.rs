//! `ralph run`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::mock;
use crate::ports::{ConfigNotice, Notice, Reporter};
use crate::settings::{AgentChoice, Flags, RunSettings};
use crate::store::prd::PrdFile;
use crate::ui;
use crate::ui::{TerminalHuman, UiOptions};

use super::error::Result;
use super::place::{
    history, instructions, now, open_tree, place_of, secrets, store_of, take_lease,
};
use super::preflight::Preflight;
use super::session::Session;

#[derive(Clone, Debug)]
pub struct RunOptions {
    pub prd: PathBuf,
    pub flags: Flags,
    /// Approve the repository's commands without asking.
    pub trust: bool,
}

/// With a damaged journal: once more, with a new one.
pub fn run(options: &RunOptions, look: &UiOptions) -> Result<u8> {
    match run_once(options, look) {
        Err(error) if error.is_damaged_journal() => {
            set_journal_aside(&options.prd, ui::reporter(look).as_mut())?;
            run_once(options, look)
        }
        result => result,
    }
}

/// The next run begins a new journal from what is known without this one.
fn set_journal_aside(prd: &Path, reporter: &mut dyn Reporter) -> Result<()> {
    let tree = open_tree(prd)?;
    let store = store_of(&tree);
    let _lease = take_lease(&store)?;
    let kept = store.set_aside(now())?;
    reporter.on_notice(&Notice::Config(ConfigNotice::JournalDamaged { kept }));
    Ok(())
}

fn run_once(options: &RunOptions, look: &UiOptions) -> Result<u8> {
    let prd = &options.prd;
    let loaded = PrdFile::new(prd).load()?;
    let tree = open_tree(prd)?;
    let store = store_of(&tree);
    let lease = take_lease(&store)?;
    let plan = RunSettings::load(tree.root(), &options.flags, &ui::env_var)?;
    check_script(&plan)?;
    let (reporter, human) = ui::terminal(look);
    let mut preflight = Preflight { tree, store, plan, reporter, human, secrets: secrets() };
    let journal_check = preflight.clean_up()?;
    let found = place_of(&preflight.tree, prd)?;
    let known = history(&preflight.store, &found)?;
    let allow_dirty = preflight.check_edits(&found, &known.state)?;
    preflight.report_setup()?;
    preflight.settle_permissions()?;
    preflight.require_trust(&loaded.backlog, options.trust)?;
    let branch = preflight.take_branch()?;
    // On another branch it may be another backlog.
    let backlog = preflight.open_backlog(prd)?;
    preflight.require_trust(backlog.current(), options.trust)?;
    let place = preflight.place_of(prd)?;
    let history = if place.key == found.key { known } else { history(&preflight.store, &place)? };
    journal_check.finish()?;
    let Preflight { tree, store, plan, reporter, human, secrets } = preflight;
    Session {
        instructions: instructions(plan.prompt.as_deref(), prd, Some(tree.root()))?,
        tree,
        backlog,
        place,
        plan,
        reporter,
        human,
        human_present: TerminalHuman::is_there(),
        verbose: look.verbose,
        branch: Some(branch),
        dry: false,
        secrets,
        allow_dirty,
        store,
        lease,
        history,
        clock: Arc::clone(&look.clock),
    }
    .run()
}

pub fn check_script(plan: &RunSettings) -> Result<()> {
    match &plan.agent {
        AgentChoice::Mock { script: Some(script) } => Ok(mock::check_script(script)?),
        _ => Ok(()),
    }
}
