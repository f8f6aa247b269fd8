//! Checks stories against each other: ids are unique, dependencies exist and have no cycles.

use std::collections::HashMap;

use super::cycles::{Edges, cycles};
use super::diagnostic::{Diagnostics, Severity, quoted};
use super::fields::JsonString;
use super::render::MAX_SHOWN;
use super::spelling::nearest_ids;
use super::story::StoryDraft;

/// A longer cycle is shortened to its two ends.
const MAX_NAMED: usize = 8;

pub fn check<'a>(found: &mut Diagnostics<'a>, drafts: &[StoryDraft<'a>]) {
    check_ids(found, drafts);
    let numbers = numbers(drafts);
    report_unknown(found, drafts, &numbers);
    for cycle in cycles(edges(drafts, &numbers), MAX_SHOWN) {
        report_cycle(found, drafts, &cycle);
    }
}

/// Ids become names of refs and folders, and some file systems ignore case.
fn check_ids<'a>(found: &mut Diagnostics<'a>, drafts: &[StoryDraft<'a>]) {
    let mut first_of: HashMap<String, &JsonString<'a>> = HashMap::with_capacity(drafts.len());
    for id in drafts.iter().filter_map(|draft| draft.id.as_ref()) {
        let first = *first_of.entry(id.text.to_lowercase()).or_insert(id);
        if std::ptr::eq(first, id) {
            continue;
        }
        let line = found.line(first.raw);
        let (second, taken) = (quoted(&id.text), quoted(&first.text));
        let message = if id.text == first.text {
            format!("the id {second} is taken by the story on line {line}")
        } else {
            format!("the id {second} differs only by case from {taken} on line {line}")
        };
        found.error(id.raw, message, "give one of the two another id");
    }
}

/// By id; of duplicates the first.
fn numbers<'d>(drafts: &'d [StoryDraft<'_>]) -> HashMap<&'d str, usize> {
    let mut numbers = HashMap::with_capacity(drafts.len());
    for (number, draft) in drafts.iter().enumerate() {
        if let Some(id) = &draft.id {
            numbers.entry(id.text.as_ref()).or_insert(number);
        }
    }
    numbers
}

fn edges(drafts: &[StoryDraft<'_>], numbers: &HashMap<&str, usize>) -> Edges {
    let number = |on: &JsonString<'_>| numbers.get(on.text.as_ref()).copied();
    drafts.iter().map(|draft| draft.depends_on.iter().filter_map(number).collect()).collect()
}

fn report_unknown<'a>(
    found: &mut Diagnostics<'a>,
    drafts: &[StoryDraft<'a>],
    numbers: &HashMap<&str, usize>,
) {
    let ids: Vec<&str> =
        drafts.iter().filter_map(|one| Some(one.id.as_ref()?.text.as_ref())).collect();
    let waits = drafts.iter().flat_map(|draft| draft.depends_on.iter().map(move |on| (draft, on)));
    let unknown = waits.filter(|(_, on)| !numbers.contains_key(on.text.as_ref()));
    for (nth, (draft, on)) in unknown.enumerate() {
        if found.is_full_of(Severity::Error) {
            break;
        }
        let missing = quoted(&on.text);
        let message = format!("{} depends on {missing}, which does not exist", draft.owner);
        // A suggestion costs a pass over all ids, so only the shown ones get one.
        let near = if nth < MAX_SHOWN { nearest_ids(&on.text, &ids) } else { Vec::new() };
        let help = suggestion(&near)
            .unwrap_or_else(|| format!("add a story {missing}, or remove it from `depends_on`"));
        found.error(on.raw, message, help);
    }
}

fn suggestion(near: &[&str]) -> Option<String> {
    let (last, others) = near.split_last()?;
    let others: Vec<String> = others.iter().map(|id| quoted(id)).collect();
    let or = if others.is_empty() { "" } else { " or " };
    Some(format!("did you mean {}{or}{}?", others.join(", "), quoted(last)))
}

fn report_cycle(found: &mut Diagnostics<'_>, drafts: &[StoryDraft<'_>], cycle: &[usize]) {
    let stories: Vec<&StoryDraft<'_>> =
        cycle.iter().filter_map(|number| drafts.get(*number)).collect();
    let Some(first) = stories.first() else { return };
    let Some(next) = stories.get(1).unwrap_or(first).id.as_ref() else { return };
    let edge = first.depends_on.iter().find(|on| on.text == next.text);
    let Some(edge) = edge else { return };
    let names = names(&stories);
    let (message, help) = if stories.len() == 1 {
        (format!("{} depends on itself: {names}", first.owner), "remove it from its `depends_on`")
    } else {
        (format!("these stories wait for each other: {names}"), "remove one of these dependencies")
    };
    found.error(edge.raw, message, help);
}

/// `A` → `B` → `A`
fn names(stories: &[&StoryDraft<'_>]) -> String {
    let ids = stories.iter().chain(stories.first()).filter_map(|one| one.id.as_ref());
    let mut named: Vec<String> = ids.map(|id| quoted(&id.text)).collect();
    if named.len() > MAX_NAMED {
        let left_out = named.len() - MAX_NAMED;
        let ends = MAX_NAMED / 2;
        named.splice(ends..named.len() - ends, [format!("… {left_out} more …")]);
    }
    named.join(" → ")
}
