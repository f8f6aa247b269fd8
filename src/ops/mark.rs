//! `ralph mark`, `ralph undo` and `ralph nudge`: what a human decides about stories.

use std::path::Path;
use std::thread;

use crate::model::{Backlog, Event, LaneId, Request, StoryId, visible_line};
use crate::ports::Clock;
use crate::process::supervised::requester;
use crate::state::RunState;
use crate::store::prd::{Loaded, Mark, PrdFile, set_mark};
use crate::store::{Journal, Lease, Store};
use crate::ui;
use crate::workspace::{ClosedStory, Replacement, UNDONE_TRAILER, UndoRequest, Undone, WorkTree};

use super::approvals::{GLANCE, PATIENCE, await_taken};
use super::error::{CommandError, Result};
use super::place::{
    find_story, find_tree, open_tree, place_of, refuse_agents, state_of, store_of, take_lease,
};
use super::setup::with_own_setup;
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

pub fn undo(story: &StoryId, prd: &Path, clock: &Clock) -> Result<()> {
    let file = PrdFile::new(prd);
    file.load()?;
    let tree = find_tree(prd)?;
    refuse_agents("`ralph undo`", Some(&tree))?;
    let store = store_of(&tree);
    let _lease = take_lease(&store, clock)?;
    let tree = with_own_setup(tree, prd, &store)?;
    tree.require_ready()?;
    tree.remove_own_locks()?;
    let loaded = file.load()?;
    file.check_writable()?;
    let known = find_story(&loaded.backlog, story)?;
    if !known.passes {
        return Err(CommandError::NotClosed(story.clone()));
    }
    let place = place_of(&tree, prd)?;
    let backlog_name = visible_line(&place.name);
    let closing = tree.newest_closing(story, &backlog_name)?;
    let closing = closing.ok_or_else(|| CommandError::NoCommitOf(story.clone()))?;
    let text = set_mark(&loaded.text, story, Mark::Passes(false))?;
    let before = tree.head_commit()?;
    // A process that was killed may have made the commit already.
    let undone = if closing.is_undone {
        None
    } else {
        let replacement = |path| Replacement::new(path, text.as_bytes());
        let replaced: Vec<_> = place.in_tree.as_deref().map(replacement).into_iter().collect();
        let message = undo_message(story, &known.title, &backlog_name, &closing);
        let request = UndoRequest { closing: &closing, replaced: &replaced, message: &message };
        Some(tree.undo(&request)?)
    };
    file.write(&text)?;
    let commit = undone.as_ref().map(|undone| undone.commit.clone());
    let mut journal = store.journal(&place.key)?;
    let state = RunState::of(&journal.read(0)?.0);
    let mut events = vec![Event::StoryReopened { story: story.clone(), commit }];
    events.extend(moved_base(&tree, &state, story, before.as_deref())?);
    let run = state.run.as_ref().map_or("", |run| run.run.as_str());
    journal.append(run, clock.now().wall, &events)?;
    journal.sync_point().wait()?;
    print(&undone_text(story, undone.as_ref(), &loaded.backlog))
}

fn undo_message(story: &StoryId, title: &str, backlog: &str, closing: &ClosedStory) -> String {
    let title = visible_line(title);
    format!(
        "Revert {story}: {title}\n\n{UNDONE_TRAILER}: {}\nRalph-Reopened: {story}\n\
         Ralph-Backlog: {backlog}\n",
        closing.commit
    )
}

/// If another story's unfinished work is in the tree, its base moves onto the new commit.
fn moved_base(
    tree: &WorkTree,
    state: &RunState,
    story: &StoryId,
    before: Option<&str>,
) -> Result<Option<Event>> {
    let other = state.lanes.occupant(LaneId::HOME).filter(|other| *other != story);
    let base = other.and_then(|other| Some((other.clone(), state.story(other)?.base()?)));
    let Some((story, base)) = base else { return Ok(None) };
    let base = tree.move_base(base, before)?;
    tree.hold(&base)?;
    Ok(Some(Event::BaseSet { story, base, lane: LaneId::HOME }))
}

fn undone_text(story: &StoryId, undone: Option<&Undone>, backlog: &Backlog) -> String {
    let how = undone.map(|Undone { commit, files }| {
        format!(" in {} ({})", ui::short_commit(commit), ui::counted(*files, "file"))
    });
    let mut text = format!("reverted {story}{} and reopened it\n", how.unwrap_or_default());
    let depend = backlog.stories.iter().filter(|s| s.passes && s.depends_on.contains(story));
    let depend: Vec<String> = depend.map(|story| story.id.to_string()).collect();
    if !depend.is_empty() {
        text.push_str(&format!("stories that depend on it still pass: {}\n", depend.join(", ")));
    }
    text
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
