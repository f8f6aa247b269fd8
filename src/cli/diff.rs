//! `ralph diff`.

use std::io::{self, IsTerminal};

use crate::core::id::StoryId;
use crate::core::text::visible_line;
use crate::git::WorkTree;
use crate::store::prd::PrdFile;
use crate::ui::{self, UiOptions};

use super::error::CliError;
use super::kept_args::DiffArgs;
use super::run::{check_story, place_of};
use super::session::fold;
use super::{print, print_bytes};

pub fn diff(args: &DiffArgs, look: &UiOptions) -> Result<u8, CliError> {
    let tree = WorkTree::look(&std::env::current_dir()?)?;
    let patch = match args.what.parse::<u64>() {
        Ok(number) => tree.diff_of(&tree.kept_as(number)?)?,
        Err(_) => of_story(&tree, args)?,
    };
    let is_terminal = io::stdout().is_terminal();
    let colors = ui::colors(look.color, is_terminal, ui::env_var);
    if is_terminal || colors {
        print(&ui::diff(&patch, colors))?;
    } else {
        print_bytes(&patch)?;
    }
    Ok(0)
}

/// In work: since it began. Closed: its commits. Else what was kept of it last.
fn of_story(tree: &WorkTree, args: &DiffArgs) -> Result<Vec<u8>, CliError> {
    let wanted = || CliError::NeitherNumberNorStory(visible_line(&args.what));
    let story = StoryId::try_from(args.what.as_str()).map_err(|_| wanted())?;
    let loaded = PrdFile::new(&args.prd).load()?;
    let place = place_of(tree, &args.prd)?;
    let state = fold(tree, &place)?;
    if let Some(base) = state.story(&story).and_then(|known| known.base.as_ref()) {
        return Ok(tree.diff_since(base)?);
    }
    let closing = tree.newest_closing(&story, &visible_line(&place.name))?;
    if let Some(closing) = closing.filter(|closing| !closing.is_undone) {
        return Ok(tree.diff_of_closing(&closing)?);
    }
    let kept = tree.kept()?;
    let is_work = |kept: &&crate::git::Kept| {
        kept.story.as_ref() == Some(&story) && kept.kind != crate::git::Kind::Snapshot
    };
    match kept.iter().rev().find(is_work) {
        Some(kept) => Ok(tree.diff_of(kept)?),
        None => {
            check_story(&loaded.backlog, Some(&story))?;
            Err(CliError::NothingOf(story))
        }
    }
}
