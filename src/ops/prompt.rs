//! `ralph prompt`: what the next agent would get to read, made as the engine makes it.

use std::io::IsTerminal;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::decide::prompt::{Briefing, Layer, joined};
use crate::model::{Backlog, Changes, Event, LaneId, Recorded, Story, StoryId, visible};
use crate::runner::{as_next_process, base_on_branch, notes_for};
use crate::settings::{Flags, RunSettings};
use crate::state::RunState;
use crate::store::Store;
use crate::store::prd::PrdFile;
use crate::ui;
use crate::ui::{Printer, TextLine, UiOptions};
use crate::workspace::WorkTree;

use super::error::CommandError;
use super::place::{check_story, fold, instructions, open_tree, place_of, secrets, store_of};
use super::print;
use super::session::markers;

pub struct PromptQuery {
    pub story: StoryId,
    pub prd: PathBuf,
    /// Instructions other than those of the settings.
    pub prompt: Option<PathBuf>,
    pub json: bool,
}

pub fn prompt(args: &PromptQuery, look: &UiOptions) -> Result<u8, CommandError> {
    let loaded = PrdFile::new(&args.prd).load()?;
    check_story(&loaded.backlog, Some(&args.story))?;
    let tree = open_tree(&args.prd)?;
    let plan = RunSettings::load(tree.root(), &Flags::default(), &ui::env_var)?;
    let store = store_of(&tree);
    let state = fold(&store, &place_of(&tree, &args.prd)?)?;
    let state = as_it_would_be(state, &loaded.backlog, &tree, &store)?;
    let Some(story) = loaded.backlog.story(&args.story) else { return Ok(0) };
    // Whose notes lie there depends on whose work is in the tree now.
    let notes = notes_for(tree.root(), &story.id, &state, &secrets());
    let (state, changes) = with_its_work(state, story, &tree)?;
    let named = args.prompt.as_deref().or(plan.prompt.as_deref());
    let text = instructions(named, &args.prd, Some(tree.root()))?;
    let layers = Briefing {
        state: &state,
        backlog: &loaded.backlog,
        story,
        instructions: &text,
        max_iterations: plan.max_iterations,
        signs: &markers(&plan, &loaded.backlog).of_story(&story.id, &story.signs),
        limits: &plan.memory,
        notes: notes.as_ref().ok().and_then(Option::as_deref),
        changes: &changes,
    }
    .layers();
    if args.json {
        print(&format!("{:#}\n", as_json(story, &layers)))?;
        return Ok(0);
    }
    let mut printer = Printer::stderr(look.color, look.terminal);
    if let Err(error) = notes {
        printer.warning(&error.to_string());
    }
    show(&layers)?;
    for row in sizes(&layers) {
        printer.line(&TextLine::new().plain(row).into());
    }
    Ok(0)
}

/// While nobody runs it, the next `ralph run` comes first.
fn as_it_would_be(
    state: RunState,
    backlog: &Backlog,
    tree: &WorkTree,
    store: &Store,
) -> Result<RunState, CommandError> {
    if store.lease_holder().is_some() {
        return Ok(state);
    }
    let cut_off = state.cut_off;
    let mut state = as_next_process(state, backlog);
    // After a crash nobody can tell the agent's commits from the human's.
    let moved = if cut_off { None } else { base_on_branch(&state, tree)? };
    if let Some((story, base)) = moved {
        state.apply(&Recorded { at: 0, event: Event::BaseSet { story, base, lane: LaneId::HOME } });
    }
    Ok(state)
}

/// Work that was set aside would be brought back first.
fn with_its_work(
    mut state: RunState,
    story: &Story,
    tree: &WorkTree,
) -> Result<(RunState, Changes), CommandError> {
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

/// To whoever wants the text, as it is; to a terminal, so that nothing in it acts on that.
fn show(layers: &[Layer]) -> Result<(), CommandError> {
    let text = joined(layers);
    if std::io::stdout().is_terminal() { print(&visible(&text)) } else { print(&text) }
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

fn sizes(layers: &[Layer]) -> Vec<String> {
    let whole = characters(&joined(layers));
    let rows = layers.iter().map(|layer| (layer.name, characters(&layer.text)));
    let rows = rows.chain([("total", whole)]);
    rows.map(|(name, size)| format!("{name:<12} {size:>8} characters")).collect()
}

fn as_json(story: &Story, layers: &[Layer]) -> Value {
    let text = joined(layers);
    let layer = |layer: &Layer| json!({ "name": layer.name, "characters": characters(&layer.text), "text": layer.text });
    json!({
        "story": story.id,
        "characters": characters(&text),
        "layers": layers.iter().map(layer).collect::<Vec<_>>(),
        "text": text,
    })
}
