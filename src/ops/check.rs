//! `ralph check`.

use std::path::Path;

use crate::settings::{Flags, RunSettings};
use crate::store::prd::{LoadError, PrdFile};
use crate::text::backlog::{Diagnostic, render};
use crate::ui;

use super::error::Result;
use super::place::open_tree;
use super::terminal::print;

/// Diagnostics are this command's output, so they go to standard output.
pub fn check(prd: &Path, strict: bool) -> Result<u8> {
    let file = PrdFile::new(prd);
    let loaded = match file.load() {
        Err(LoadError::Invalid { rendered, .. }) => {
            print(&rendered)?;
            return Ok(1);
        }
        loaded => loaded?,
    };
    file.check_writable()?;
    let (stories, open) = (loaded.backlog.stories.len(), loaded.backlog.remaining());
    let mut warnings = loaded.warnings;
    warnings.extend(too_many(open, prd)?);
    let shown = prd.to_string_lossy();
    if warnings.is_empty() {
        print(&format!("{shown}: ok, {}, {open} open\n", ui::stories(stories)))?;
        return Ok(0);
    }
    print(&render(&shown, &loaded.text, &warnings))?;
    Ok(u8::from(strict))
}

/// Warns if a run cannot finish the backlog within its iterations.
fn too_many(open: usize, prd: &Path) -> Result<Option<Diagnostic>> {
    let here = std::env::current_dir()?;
    let root = open_tree(prd).map_or(here, |tree| tree.root().to_owned());
    let settings = RunSettings::load(&root, &Flags::default(), &ui::env_var)?;
    let limit = settings.max_iterations.and_then(|limit| usize::try_from(limit).ok());
    Ok(limit.filter(|limit| open > *limit).map(|limit| {
        Diagnostic::warning(format!(
            "{open} stories are open, but a run stops after {} (`max_iterations`)",
            ui::counted(limit, "iteration")
        ))
        .help("raise the limit with `ralph run --max-iterations N`")
    }))
}
