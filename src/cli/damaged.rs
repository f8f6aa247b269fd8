//! A journal that is damaged.

use std::path::Path;

use crate::engine::ports::{Notice, Reporter};
use crate::store::journal;

use super::error::CliError;
use super::run::open_tree;
use super::session::{journal_path, now, take_lock};

/// The next run begins a new one, with what is known without it.
pub fn set_journal_aside(prd: &Path, reporter: &mut dyn Reporter) -> Result<(), CliError> {
    let tree = open_tree(prd)?;
    let _lock = take_lock(&tree)?;
    let kept = journal::set_aside(&journal_path(&tree)?, now())?;
    reporter.on_notice(&Notice::Warning(format!(
        "the journal was damaged and is kept as `{}`; a new one is rebuilt from the backlog, the \
         refs and the commits' trailers",
        kept.display()
    )));
    Ok(())
}
