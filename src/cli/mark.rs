//! `ralph mark`: the human's way to set a story's marks.

use crate::process::sweep::RUN_ID;
use crate::store::prd::{Mark, PrdFile, set_mark};

use super::args::{MarkArg, MarkArgs};
use super::error::CliError;
use super::print;
use super::run::{check_story, open_tree};
use super::session::take_lock;

pub fn mark(args: &MarkArgs) -> Result<u8, CliError> {
    refuse_agents("`ralph mark`")?;
    let file = PrdFile::new(&args.prd);
    let loaded = file.load()?;
    check_story(&loaded.backlog, Some(&args.story))?;
    // Nobody else writes the marks meanwhile.
    let _lock = take_lock(&open_tree(&args.prd)?)?;
    let (passes, skipped) = match args.mark {
        MarkArg::Pass => (true, false),
        MarkArg::Fail => (false, loaded.backlog.story(&args.story).is_some_and(|s| s.skipped)),
        MarkArg::Skip => (false, true),
        MarkArg::Reopen => (false, false),
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

/// What an agent decides about itself does not count.
pub fn refuse_agents(command: &str) -> Result<(), CliError> {
    match std::env::var_os(RUN_ID) {
        Some(_) => Err(CliError::NotForAgents(command.to_owned())),
        None => Ok(()),
    }
}
