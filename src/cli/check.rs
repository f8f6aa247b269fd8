//! `ralph check`.

use crate::core::backlog::{Diagnostic, Severity, render};
use crate::settings::{Flags, Plan, SettingsFile};
use crate::store::prd::{LoadError, PrdFile};
use crate::ui;

use super::args::CheckArgs;
use super::error::CliError;
use super::print;

/// Problems are this command's output, so they go to standard output.
pub fn check(args: &CheckArgs) -> Result<u8, CliError> {
    let file = PrdFile::new(&args.prd);
    let loaded = match file.load() {
        Err(LoadError::Invalid { rendered, .. }) => {
            print(&rendered)?;
            return Ok(1);
        }
        loaded => loaded?,
    };
    file.check_writable()?;
    let mut doubts = loaded.warnings;
    doubts.extend(too_many(loaded.backlog.remaining())?);
    let shown = args.prd.to_string_lossy();
    if doubts.is_empty() {
        let (stories, open) = (loaded.backlog.stories.len(), loaded.backlog.remaining());
        print(&format!("{shown}: ok, {}, {open} open\n", ui::stories(stories)))?;
        return Ok(0);
    }
    print(&render(&shown, &loaded.text, &doubts))?;
    Ok(u8::from(args.strict))
}

/// A backlog that the limit cannot hold ends in the middle of the night.
fn too_many(open: usize) -> Result<Option<Diagnostic>, CliError> {
    let here = std::env::current_dir()?;
    let root = super::run::open_tree(&here.join("PRD.json")).map(|tree| tree.root().to_owned());
    let root = root.unwrap_or(here);
    let file = SettingsFile::load(&root)?;
    let plan = Plan::new(Flags::default(), &ui::env_var, file, &root)?;
    let limit = plan.max_iterations.and_then(|limit| usize::try_from(limit).ok());
    Ok(limit.filter(|limit| open > *limit).map(|limit| Diagnostic {
        severity: Severity::Warning,
        span: None,
        message: format!("{open} stories are open and a run stops after {limit} iterations"),
        help: Some("`ralph run --max-iterations N` allows more".to_owned()),
    }))
}
