//! After a crash: git's setup and index, before anything else reads them. For `ralph run` and for
//! every command that writes.

use std::path::Path;

use crate::model::{Event, Untrusted, Violation, visible_line};
use crate::runner::Ran;
use crate::state::RunState;
use crate::store::ralph_dir::RalphDir;
use crate::store::{Journal, Store};
use crate::workspace::{Guard, Guarded, WorkTree, mend_heads};

use super::error::{CommandError, Result};
use super::place::find_tree;
use super::terminal::print;

/// Something that ran when its driver died.
pub struct Interrupted {
    pub ran: Ran,
    pub guarded: Guarded,
    pub held: Option<String>,
}

pub fn interrupted(state: &RunState) -> Vec<Interrupted> {
    let flights = state.attempts.iter().filter(|one| one.start.lane.is_home());
    let attempts = flights.map(|flight| &flight.start).map(|start| Interrupted {
        ran: Ran::attempt(start),
        guarded: Guarded {
            ran: start.attempt.clone(),
            base: start.base.clone(),
            before: start.before().clone(),
            snapshot: start.snapshot.clone(),
        },
        held: start.held.clone(),
    });
    let gates = state.gates.iter().map(|start| Interrupted {
        ran: Ran { what: start.after, story: start.story.clone() },
        guarded: Guarded {
            ran: start.folder.clone(),
            base: start.before.clone(),
            before: start.before.clone(),
            snapshot: None,
        },
        held: start.held.clone(),
    });
    attempts.chain(gates).collect()
}

/// The hashes of what was held when drivers died, whatever their backlog.
fn held_then(store: &Store) -> Result<Vec<String>> {
    let mut held = Vec::new();
    for open in store.open_runs()? {
        let state = RunState::of(&store.journal(&open.backlog)?.read(0)?.0);
        held.extend(interrupted(&state).into_iter().filter_map(|one| one.held));
    }
    Ok(held)
}

/// Something untrusted was under way when its driver died: by its note, which it could delete, or by
/// the journal.
pub fn was_interrupted(tree: &WorkTree, store: &Store) -> Result<bool> {
    Ok(Guard::was_interrupted(tree) || held_then(store)?.iter().any(|hash| tree.knows_held(hash)))
}

/// Git's setup says where the work tree is: finds it again if that was put back. Then it must be
/// ready to work in.
pub fn restore_setup(
    mut tree: WorkTree,
    prd: &Path,
    store: &Store,
) -> Result<(WorkTree, Vec<Event>)> {
    if !was_interrupted(&tree, store)? {
        tree.require_ready()?;
        return Ok((tree, Vec::new()));
    }
    let setup = Guard::restore_setup(&tree)?;
    let heads = mend_heads(tree.root())?;
    if setup.is_some() || heads.is_some() {
        tree = find_tree(prd)?.after(tree);
    }
    let index = Guard::restore_index(&tree)?;
    // In the middle of a merge: the journal says whose it is.
    tree.require_identity()?;
    RalphDir::put_back(tree.root())?;
    let repaired = setup.into_iter().chain(heads).chain(index).map(repaired_setup);
    Ok((tree, repaired.collect()))
}

/// What an attempt or a gate did; which one is not known yet.
pub fn repaired_setup(violation: Violation) -> Event {
    Event::Repaired { after: Untrusted::Attempt, story: None, violation }
}

/// For a command that writes between runs: what a killed attempt left in git's setup names no
/// program that runs now.
pub fn with_own_setup(tree: WorkTree, prd: &Path, store: &Store) -> Result<WorkTree> {
    if !was_interrupted(&tree, store)? {
        return require_known(tree, store);
    }
    let setup = Guard::restore_setup(&tree)?;
    if let Some(Violation::Held { paths, kept, .. }) = &setup {
        let (paths, kept) = (visible_line(&paths.join(", ")), visible_line(kept));
        print(&format!(
            "restored git configuration or hooks that an interrupted attempt changed: {paths} \
             (the other version: {kept})\n"
        ))?;
    }
    require_known(if setup.is_some() { find_tree(prd)? } else { tree }, store)
}

fn require_known(tree: WorkTree, store: &Store) -> Result<WorkTree> {
    match held_then(store)?.iter().all(|hash| tree.knows_held(hash)) {
        true => Ok(tree),
        false => Err(CommandError::UnknownSetup(tree.setup_text()?)),
    }
}
