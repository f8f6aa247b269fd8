//! `ralph mark` and `ralph nudge`: what a human wants of a run.

use std::path::Path;

use crate::model::{Request, StoryId};
use crate::runner::RunnerError;
use crate::store::prd::{Mark, PrdFile, set_mark};
use crate::workspace::WorkTree;

use super::error::{CommandError, Result};
use super::place::{
    find_story, now, open_tree, place_of, refuse_agents, state_of, store_of, take_lease,
};
use super::terminal::print;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoryMark {
    Pass,
    Fail,
    Skip,
    Reopen,
}

pub fn mark(story: &StoryId, mark: StoryMark, prd: &Path) -> Result<()> {
    refuse_agents("`ralph mark`")?;
    let file = PrdFile::new(prd);
    let loaded = file.load()?;
    let is_skipped = find_story(&loaded.backlog, story)?.skipped;
    let (passes, skipped, is) = match mark {
        StoryMark::Pass => (true, false, "passes"),
        StoryMark::Fail => (false, is_skipped, "does not pass"),
        StoryMark::Skip => (false, true, "is skipped"),
        StoryMark::Reopen => (false, false, "is open"),
    };
    let tree = open_tree(prd)?;
    let store = store_of(&tree);
    // Only one process at a time writes marks. A run of this backlog is asked to.
    let _lease = match take_lease(&store) {
        Err(CommandError::Runner(RunnerError::Store(error)))
            if error.is_held() && state_of(&store, &place_of(&tree, prd)?)?.is_open() =>
        {
            let request = Request::Mark { story: story.clone(), passes, skipped };
            store.requests()?.make(now(), &request)?;
            return print("A run is active; it sets the mark as soon as no agent is running\n");
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
    print(&format!("{story} {is} now (in {shown})\n"))
}

pub fn nudge(text: &str) -> Result<()> {
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
