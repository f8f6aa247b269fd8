//! `ralph nudge`: a word to the agent that works right now.

use std::path::Path;

use crate::core::wish::Wish;
use crate::store::lock::holder;
use crate::store::wishes::Wishes;

use super::args::NudgeArgs;
use super::error::CliError;
use super::mark::refuse_agents;
use super::print;
use super::session::{journal_path, lock_path, now, work_tree_name};
use crate::git::WorkTree;

pub fn nudge(args: &NudgeArgs) -> Result<u8, CliError> {
    refuse_agents("`ralph nudge`")?;
    let text = args.text.join(" ").trim().to_owned();
    if text.is_empty() {
        return Err(CliError::Refused("there is nothing to say".to_owned()));
    }
    let tree = WorkTree::look(Path::new("."))?;
    if holder(&lock_path(&tree)?).is_none() {
        return Err(CliError::NoRun);
    }
    let wishes = Wishes::open(&journal_path(&tree)?, &work_tree_name(&tree))?;
    wishes.make(now(), &Wish::Nudge { text })?;
    print("Said. An agent that takes messages gets it now, any other one with its next prompt.\n")?;
    Ok(0)
}
