//! `ralph mark`: the human's way to set a story's marks.

use crate::core::wish::Wish;
use crate::git::WorkTree;
use crate::process::sweep::RUN_ID;
use crate::store::lock::LockError;
use crate::store::prd::{Mark, PrdFile, set_mark};
use crate::store::wishes::Wishes;

use super::args::{MarkArg, MarkArgs};
use super::error::CliError;
use super::print;
use super::run::{check_story, open_tree, place_of};
use super::session::{fold, journal_path, now, take_lock, work_tree_name};

pub fn mark(args: &MarkArgs) -> Result<u8, CliError> {
    refuse_agents("`ralph mark`")?;
    let file = PrdFile::new(&args.prd);
    let loaded = file.load()?;
    check_story(&loaded.backlog, Some(&args.story))?;
    let (passes, skipped) = match args.mark {
        MarkArg::Pass => (true, false),
        MarkArg::Fail => (false, loaded.backlog.story(&args.story).is_some_and(|s| s.skipped)),
        MarkArg::Skip => (false, true),
        MarkArg::Reopen => (false, false),
    };
    let tree = open_tree(&args.prd)?;
    // Nobody else writes the marks meanwhile: a run that does is asked to.
    let _lock = match take_lock(&tree) {
        Err(CliError::Lock(LockError::Held { .. })) if is_at_work(&tree, args)? => {
            return wish(&tree, Wish::Mark { story: args.story.clone(), passes, skipped });
        }
        taken => taken?,
    };
    let text = set_mark(&loaded.text, &args.story, Mark::Passes(passes))?;
    let text = set_mark(&text, &args.story, Mark::Skipped(skipped))?;
    let (story, prd) = (&args.story, args.prd.display());
    if text == loaded.text {
        print(&format!("{story} is marked so already; {prd} was not changed.\n"))?;
        return Ok(0);
    }
    file.write(&text)?;
    let is = match args.mark {
        MarkArg::Pass => "passes",
        MarkArg::Fail => "does not pass",
        MarkArg::Skip => "is skipped",
        MarkArg::Reopen => "is open",
    };
    print(&format!("{story} {is} now, in {prd}.\n"))?;
    Ok(0)
}

/// The run that holds the lock is one of this backlog.
fn is_at_work(tree: &WorkTree, args: &MarkArgs) -> Result<bool, CliError> {
    Ok(fold(tree, &place_of(tree, &args.prd)?)?.is_open())
}

fn wish(tree: &WorkTree, wish: Wish) -> Result<u8, CliError> {
    Wishes::open(&journal_path(tree)?, &work_tree_name(tree))?.make(now(), &wish)?;
    print("A run works on this backlog: it sets the mark as soon as no agent works.\n")?;
    Ok(0)
}

/// What an agent decides about itself does not count.
pub fn refuse_agents(command: &str) -> Result<(), CliError> {
    match std::env::var_os(RUN_ID) {
        Some(_) => Err(CliError::NotForAgents(command.to_owned())),
        None => Ok(()),
    }
}
