//! `ralph prompt`: the next prompt of a story, made as the run makes it.

use std::io::IsTerminal;
use std::path::Path;

use serde_json::{Value, json};

use crate::decide::prompt::{Briefing, Layer, joined};
use crate::model::{Backlog, Base, Changes, Event, LaneId, Recorded, Story, StoryId, visible};
use crate::runner::{
    EditsBetweenRuns, as_next_process, base_on_branch, edits_between_runs, notes_for,
};
use crate::settings::{Flags, RunSettings};
use crate::state::RunState;
use crate::store::prd::PrdFile;
use crate::ui::{self, Printer, TextLine, UiOptions};
use crate::workspace::WorkTree;

use super::error::Result;
use super::place::{find_story, instructions, open_tree, place_of, secrets, state_of, store_of};
use super::session::markers;
use super::terminal::{print, print_json};

/// `prompt`: a file of instructions that overrides the settings.
pub fn prompt(
    story: &StoryId,
    prd: &Path,
    prompt: Option<&Path>,
    json: bool,
    look: &UiOptions,
) -> Result<()> {
    let loaded = PrdFile::new(prd).load()?;
    let story = find_story(&loaded.backlog, story)?;
    let tree = open_tree(prd)?;
    let plan = RunSettings::load(tree.root(), &Flags::default(), &ui::env_var)?;
    let state = state_of(&store_of(&tree), &place_of(&tree, prd)?)?;
    let state = as_next_run(state, &loaded.backlog, &tree)?;
    // The notes belong to the story whose work is in the tree now.
    let notes = notes_for(tree.root(), &story.id, &state, &secrets());
    let (state, changes) = with_work(state, story, &tree)?;
    let named = prompt.or(plan.prompt.as_deref());
    let instructions = instructions(named, prd, Some(tree.root()))?;
    let layers = Briefing {
        state: &state,
        backlog: &loaded.backlog,
        story,
        instructions: &instructions.text,
        max_iterations: plan.max_iterations,
        markers: &markers(&plan, &loaded.backlog).of_story(&story.id, &story.markers),
        limits: &plan.memory,
        notes: notes.as_ref().ok().and_then(Option::as_deref),
        changes: &changes,
    }
    .layers();
    if json {
        return print_json(&as_json(story, &layers));
    }
    let mut printer = Printer::stderr(look);
    if let Err(error) = notes {
        printer.warning(&error.to_string());
    }
    // Control characters are made visible on a terminal; a file or pipe gets the exact text.
    let text = joined(&layers);
    print(&if std::io::stdout().is_terminal() { visible(&text) } else { text.as_str().into() })?;
    let sizes = layers.iter().map(|layer| (layer.name, characters(&layer.text)));
    for (name, size) in sizes.chain([("total", characters(&text))]) {
        let row = format!("{name:<12} {size:>8} characters");
        printer.line(&TextLine::new().plain(row).into());
    }
    Ok(())
}

/// Without a run, the state that the next `ralph run` would begin with.
fn as_next_run(state: RunState, backlog: &Backlog, tree: &WorkTree) -> Result<RunState> {
    if store_of(tree).lease_holder().is_some() {
        return Ok(state);
    }
    let is_known = !state.cut_off || state.left.is_some();
    let edits = edits_between_runs(&state, tree, &[])?;
    let mut state = as_next_process(state, backlog);
    // After a crash the agent's commits look like the human's.
    let moved = if is_known { base_on_branch(&state, tree)? } else { None };
    if let Some((story, base)) = moved {
        state.apply(&Recorded { at: 0, event: Event::BaseSet { story, base, lane: LaneId::HOME } });
    }
    if let Some(EditsBetweenRuns { story, base, found, .. }) = edits {
        let base = Base { tree: found.tree, ..base };
        let event = Event::UserEditsFound { story, base, roll_back: None, rest: None };
        state.apply(&Recorded { at: 0, event });
    }
    Ok(state)
}

/// Shelved work would be unshelved first.
fn with_work(mut state: RunState, story: &Story, tree: &WorkTree) -> Result<(RunState, Changes)> {
    let known = state.story(&story.id);
    if let Some(base) = known.and_then(|known| known.base().cloned()) {
        let changes = tree.summary(&base, &tree.base()?)?;
        return Ok((state, changes));
    }
    let Some(reference) = known.and_then(|known| known.work.shelved().cloned()) else {
        return Ok((state, Changes::default()));
    };
    let changes = tree.summary_of(&reference)?;
    let (id, base) = (story.id.clone(), tree.base()?);
    let brought = Event::WorkBroughtBack { story: id.clone(), reference, conflicts: vec![] };
    for event in [Event::BaseSet { story: id, base, lane: LaneId::HOME }, brought] {
        state.apply(&Recorded { at: 0, event });
    }
    Ok((state, changes))
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

fn as_json(story: &Story, layers: &[Layer]) -> Value {
    let text = joined(layers);
    let layer = |layer: &Layer| {
        let characters = characters(&layer.text);
        json!({ "name": layer.name, "characters": characters, "text": layer.text })
    };
    json!({
        "story": story.id,
        "characters": characters(&text),
        "layers": layers.iter().map(layer).collect::<Vec<_>>(),
        "text": text,
    })
}
