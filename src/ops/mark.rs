//! `ralph mark` and `ralph nudge`: what a human tells a run.

use std::path::Path;

use crate::model::{Request, StoryId};
use crate::store::Store;
use crate::store::prd::{Mark, PrdFile, set_mark};
use crate::workspace::WorkTree;

use super::error::CommandError;
use super::output::print;
use super::place::{
    check_story, fold, now, open_tree, place_of, refuse_agents, store_of, take_lease,
};

/// What a human says of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoryMark {
    Pass,
    Fail,
    Skip,
    Reopen,
}

pub fn mark(story: &StoryId, mark: StoryMark, prd: &Path) -> Result<(), CommandError> {
    refuse_agents("`ralph mark`")?;
    let file = PrdFile::new(prd);
    let loaded = file.load()?;
    check_story(&loaded.backlog, Some(story))?;
    let (passes, skipped) = match mark {
        StoryMark::Pass => (true, false),
        StoryMark::Fail => (false, loaded.backlog.story(story).is_some_and(|s| s.skipped)),
        StoryMark::Skip => (false, true),
        StoryMark::Reopen => (false, false),
    };
    let tree = open_tree(prd)?;
    // Nobody else writes the marks meanwhile: a run that does is asked to.
    let store = store_of(&tree);
    let _lease = match take_lease(&store) {
        Err(CommandError::Store(error)) if error.is_held() && is_at_work(&tree, &store, prd)? => {
            return request(&store, &Request::Mark { story: story.clone(), passes, skipped });
        }
        taken => taken?,
    };
    let text = set_mark(&loaded.text, story, Mark::Passes(passes))?;
    let text = set_mark(&text, story, Mark::Skipped(skipped))?;
    let shown = prd.display();
    if text == loaded.text {
        return print(&format!("{story} already has this mark; {shown} was not changed\n"));
    }
    file.write(&text)?;
    let is = match mark {
        StoryMark::Pass => "passes",
        StoryMark::Fail => "does not pass",
        StoryMark::Skip => "is skipped",
        StoryMark::Reopen => "is open",
    };
    print(&format!("{story} {is} now (in {shown})\n"))
}

/// The run that holds the lock is one of this backlog.
fn is_at_work(tree: &WorkTree, store: &Store, prd: &Path) -> Result<bool, CommandError> {
    Ok(fold(store, &place_of(tree, prd)?)?.is_open())
}

fn request(store: &Store, request: &Request) -> Result<(), CommandError> {
    store.requests()?.make(now(), request)?;
    print("A run is active; it sets the mark as soon as no agent is running\n")
}

pub fn nudge(text: &str) -> Result<(), CommandError> {
    refuse_agents("`ralph nudge`")?;
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Err(CommandError::Refused("the message is empty".to_owned()));
    }
    let store = store_of(&WorkTree::look(Path::new("."))?);
    if store.lease_holder().is_none() {
        return Err(CommandError::NoRun);
    }
    store.requests()?.make(now(), &Request::Nudge { text })?;
    print("Message sent; an agent that takes no messages gets it with the next prompt\n")
}
