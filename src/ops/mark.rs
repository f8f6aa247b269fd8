//! `ralph mark` and `ralph nudge`: what a human decides about stories.

use std::path::Path;
use std::thread;

use crate::files::atomic::remove_leftovers;
use crate::model::{Request, StoryId};
use crate::ports::Clock;
use crate::process::supervised::requester;
use crate::state::RunState;
use crate::store::prd::{Loaded, Mark, PrdFile, set_mark};
use crate::store::{Journal, Lease, Store};
use crate::workspace::WorkTree;

use super::approvals::{GLANCE, PATIENCE, await_taken};
use super::error::{CommandError, Result};
use super::place::{
    find_story, open_tree, place_of, refuse_agents, state_of, store_of, take_lease,
};
use super::terminal::print;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoryMark {
    Pass,
    Fail,
    Skip,
    Reopen,
}

pub fn mark(story: &StoryId, mark: StoryMark, prd: &Path, clock: &Clock) -> Result<()> {
    let file = PrdFile::new(prd);
    let marks = |loaded: &Loaded| {
        let is_skipped = find_story(&loaded.backlog, story)?.skipped;
        Ok::<_, CommandError>(match mark {
            StoryMark::Pass => (true, false, "passing"),
            StoryMark::Fail => (false, is_skipped, "not passing"),
            StoryMark::Skip => (false, true, "skipped"),
            StoryMark::Reopen => (false, false, "open"),
        })
    };
    let (passes, skipped, is) = marks(&file.load()?)?;
    let tree = open_tree(prd)?;
    refuse_agents("`ralph mark`", Some(&tree))?;
    let store = store_of(&tree);
    let backlog = place_of(&tree, prd)?;
    // Only one process at a time writes marks: with an active run, that is the run.
    let _lease = match take_lease(&store, clock) {
        Err(error) if error.is_held_lease() && state_of(&store, &backlog)?.is_open() => {
            let (key, story) = (backlog.key.clone(), story.clone());
            let request = Request::Mark { backlog: key, story: story.clone(), passes, skipped };
            match hand_over(&store, &request, clock)? {
                HandedOver::Done => {
                    return print(&format!("marked {story} as {is} in the active run\n"));
                }
                HandedOver::Waits => {
                    return print("the active run sets the mark as soon as it can\n");
                }
                HandedOver::RunEnded(lease) => lease,
            }
        }
        taken => taken?,
    };
    tree.remove_noted_locks()?;
    remove_leftovers(prd)?;
    drop_requests(&store, story, &backlog.key)?;
    // A run that ended just now may have changed it.
    let loaded = file.load()?;
    let (passes, skipped, is) = marks(&loaded)?;
    let text = set_mark(&loaded.text, story, Mark::Passes(passes))?;
    let text = set_mark(&text, story, Mark::Skipped(skipped))?;
    let shown = prd.display();
    if text == loaded.text {
        return print(&format!("{story} is already {is}; nothing changed\n"));
    }
    // Otherwise, after a crash, the next run could not tell it from a dead agent's.
    let mut journal = store.journal(&backlog.key)?;
    let state = RunState::of(&journal.read(0)?.0);
    if let Some(run) = &state.run {
        let mut marks = state.marks.clone();
        marks.set(story, passes, skipped);
        journal.append(&run.run, clock.now().wall, &[marks.seen()])?;
        journal.sync_point().wait()?;
    }
    file.write(&text)?;
    print(&format!("marked {story} as {is} in {shown}\n"))
}

/// What became of a request to the active run.
enum HandedOver {
    Done,
    Waits,
    RunEnded(Lease),
}

/// A run that ends does not take requests any more, so this does not trust that it will.
fn hand_over(store: &Store, request: &Request, clock: &Clock) -> Result<HandedOver> {
    let requests = store.requests()?;
    let number = requests.make(clock.now().wall, request, requester())?;
    let end = clock.now().steady + PATIENCE;
    while clock.now().steady < end {
        if !requests.is_pending(number)? {
            return Ok(HandedOver::Done);
        }
        match take_lease(store, clock) {
            Err(error) if error.is_held_lease() => thread::sleep(GLANCE),
            lease => return Ok(HandedOver::RunEnded(lease?)),
        }
    }
    Ok(HandedOver::Waits)
}

/// Earlier marks of the story that no run has taken: this one is newer.
fn drop_requests(store: &Store, story: &StoryId, key: &str) -> Result<()> {
    let requests = store.requests()?;
    for pending in requests.pending()? {
        let is_earlier = matches!(&pending.request, Some(Request::Mark { backlog, story: of, .. })
            if backlog == key && of == story);
        if is_earlier {
            requests.settle(pending.number)?;
        }
    }
    Ok(())
}

pub fn nudge(text: &str, clock: &Clock) -> Result<()> {
    let tree = WorkTree::look(Path::new("."))?;
    refuse_agents("`ralph nudge`", Some(&tree))?;
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Err(CommandError::Refused("the message is empty".to_owned()));
    }
    let store = store_of(&tree);
    if store.lease_holder().is_none() {
        return Err(CommandError::NoRun);
    }
    let requests = store.requests()?;
    let number = requests.make(clock.now().wall, &Request::Nudge { text }, requester())?;
    await_taken(&requests, number, clock)?;
    print("message sent; if no agent can take it now, the next attempt gets it\n")
}
