//! `ralph diff`.

use std::io;
use std::io::IsTerminal;
use std::path::Path;

use crate::model::{StoryId, visible_line};
use crate::store::prd::PrdFile;
use crate::ui;
use crate::ui::UiOptions;
use crate::workspace::WorkTree;

use super::error::CommandError;
use super::output::{print, print_bytes};
use super::place::{check_story, fold, place_of, store_of};

/// `what`: a number of `ralph log`, or a story of the backlog.
pub fn diff(what: &str, prd: &Path, look: &UiOptions) -> Result<(), CommandError> {
    let tree = WorkTree::look(&std::env::current_dir()?)?;
    let patch = match what.parse::<u64>() {
        Ok(number) => tree.diff_of(&tree.kept_as(number)?)?,
        Err(_) => of_story(&tree, what, prd)?,
    };
    let is_terminal = io::stdout().is_terminal();
    let colors = ui::colors(look.color, is_terminal, ui::env_var);
    if is_terminal || colors { print(&ui::diff(&patch, colors)) } else { print_bytes(&patch) }
}

/// In work: since it began. Closed: its commits. Else what was kept of it last.
fn of_story(tree: &WorkTree, what: &str, prd: &Path) -> Result<Vec<u8>, CommandError> {
    let wanted = || CommandError::NeitherNumberNorStory(visible_line(what));
    let story = StoryId::try_from(what).map_err(|_| wanted())?;
    let loaded = PrdFile::new(prd).load()?;
    let place = place_of(tree, prd)?;
    let state = fold(&store_of(tree), &place)?;
    if let Some(base) = state.story(&story).and_then(|known| known.base()) {
        return Ok(tree.diff_since(base)?);
    }
    let closing = tree.newest_closing(&story, &visible_line(&place.name))?;
    if let Some(closing) = closing.filter(|closing| !closing.is_undone) {
        return Ok(tree.diff_of_closing(&closing)?);
    }
    let kept = tree.kept()?;
    let is_work = |kept: &&crate::workspace::Kept| {
        kept.story.as_ref() == Some(&story) && kept.kind != crate::workspace::Kind::Snapshot
    };
    match kept.iter().rev().find(is_work) {
        Some(kept) => Ok(tree.diff_of(kept)?),
        None => {
            check_story(&loaded.backlog, Some(&story))?;
            Err(CommandError::NothingOf(story))
        }
    }
}
