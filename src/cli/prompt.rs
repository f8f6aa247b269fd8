//! `ralph prompt`: what the next agent would get to read, made as the engine makes it.

use std::io::IsTerminal;

use serde_json::{Value, json};

use crate::core::backlog::{Backlog, Story};
use crate::core::briefing::Briefing;
use crate::core::event::{Event, Recorded};
use crate::core::handoff::Changes;
use crate::core::prompt::{Layer, joined};
use crate::core::state::RunState;
use crate::core::text::visible;
use crate::engine::{as_next_process, base_on_branch, notes_for};
use crate::git::WorkTree;
use crate::settings::{Flags, Plan, SettingsFile};
use crate::store::lock;
use crate::store::prd::PrdFile;
use crate::ui::{self, Printer, Text, UiOptions};

use super::error::CliError;
use super::print;
use super::prompt_args::PromptArgs;
use super::run::{check_story, open_tree, place_of};
use super::session::{fold, instructions, secrets, signs};
use super::status::lock_file;

pub fn prompt(args: &PromptArgs, look: &UiOptions) -> Result<u8, CliError> {
    let loaded = PrdFile::new(&args.prd).load()?;
    check_story(&loaded.backlog, Some(&args.story))?;
    let tree = open_tree(&args.prd)?;
    let file = SettingsFile::load(tree.root())?;
    let flags = Flags { prompt: args.prompt.clone(), ..Flags::default() };
    let plan = Plan::new(flags, &ui::env_var, file, tree.root())?;
    let state = fold(&tree, &place_of(&tree, &args.prd)?)?;
    let state = as_it_would_be(state, &loaded.backlog, &tree)?;
    let Some(story) = loaded.backlog.story(&args.story) else { return Ok(0) };
    // Whose notes lie there depends on whose work is in the tree now.
    let notes = notes_for(tree.root(), &story.id, &state, &secrets());
    let (state, changes) = with_its_work(state, story, &tree)?;
    let text = instructions(plan.prompt.as_deref(), &args.prd, Some(tree.root()))?;
    let layers = Briefing {
        state: &state,
        backlog: &loaded.backlog,
        story,
        instructions: &text,
        max_iterations: plan.max_iterations,
        signs: &signs(&plan, &loaded.backlog).of_story(&story.id, &story.signs),
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
        printer.line(&Text::new().plain(row).into());
    }
    Ok(0)
}

/// While nobody runs it, the next `ralph run` comes first.
fn as_it_would_be(
    state: RunState,
    backlog: &Backlog,
    tree: &WorkTree,
) -> Result<RunState, CliError> {
    if lock::holder(&lock_file(tree)).is_some() {
        return Ok(state);
    }
    let cut_off = state.cut_off;
    let mut state = as_next_process(state, backlog);
    // After a crash nobody can tell the agent's commits from the human's.
    let moved = if cut_off { None } else { base_on_branch(&state, tree)? };
    if let Some((story, base)) = moved {
        state.apply(&Recorded { at: 0, event: Event::BaseSet { story, base } });
    }
    Ok(state)
}

/// Work that was set aside would be brought back first.
fn with_its_work(
    mut state: RunState,
    story: &Story,
    tree: &WorkTree,
) -> Result<(RunState, Changes), CliError> {
    let known = state.story(&story.id);
    if let Some(base) = known.and_then(|known| known.base.clone()) {
        let changes = tree.summary(&base, &tree.base()?)?;
        return Ok((state, changes));
    }
    let Some(reference) = known.and_then(|known| known.set_aside.clone()) else {
        return Ok((state, Changes::default()));
    };
    let changes = tree.summary_of(&reference)?;
    let (id, base) = (story.id.clone(), tree.base()?);
    let brought = Event::WorkBroughtBack { story: id.clone(), reference, conflicts: vec![] };
    for event in [Event::BaseSet { story: id, base }, brought] {
        state.apply(&Recorded { at: 0, event });
    }
    Ok((state, changes))
}

/// To whoever wants the text, as it is; to a terminal, so that nothing in it acts on that.
fn show(layers: &[Layer]) -> Result<(), CliError> {
    let text = joined(layers);
    if std::io::stdout().is_terminal() { print(&visible(&text)) } else { print(&text) }
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

fn sizes(layers: &[Layer]) -> Vec<String> {
    let whole = characters(&joined(layers));
    let rows = layers.iter().map(|layer| (layer.name, characters(&layer.text)));
    let rows = rows.chain([("in all", whole)]);
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
