//! Dependencies must exist and have no cycles.

use std::collections::HashMap;

use super::diagnostic::{Diagnostic, Severity};
use super::fields::Text;
use super::graph::{self, Edges};
use super::render::MAX_SHOWN;
use super::report::{Report, quoted};
use super::spelling::nearest_ids;
use super::story::Draft;

/// A longer cycle is shortened to its two ends.
const MAX_NAMED: usize = 8;

pub fn check<'a>(report: &mut Report<'a>, drafts: &[Draft<'a>]) {
    let numbers = numbers(drafts);
    report_unknown(report, drafts, &numbers);
    let edges = edges(drafts, &numbers);
    for cycle in graph::cycles(edges, MAX_SHOWN) {
        report_cycle(report, drafts, &cycle);
    }
}

/// By id; of duplicates the first.
fn numbers<'d>(drafts: &'d [Draft<'_>]) -> HashMap<&'d str, usize> {
    let mut numbers = HashMap::with_capacity(drafts.len());
    for (number, draft) in drafts.iter().enumerate() {
        if let Some(id) = &draft.id {
            numbers.entry(id.text.as_ref()).or_insert(number);
        }
    }
    numbers
}

fn edges(drafts: &[Draft<'_>], numbers: &HashMap<&str, usize>) -> Edges {
    let number = |on: &Text<'_>| numbers.get(on.text.as_ref()).copied();
    drafts.iter().map(|draft| draft.depends_on.iter().filter_map(number).collect()).collect()
}

fn report_unknown<'a>(
    report: &mut Report<'a>,
    drafts: &[Draft<'a>],
    numbers: &HashMap<&str, usize>,
) {
    let ids: Vec<&str> =
        drafts.iter().filter_map(|one| Some(one.id.as_ref()?.text.as_ref())).collect();
    let waits = drafts.iter().flat_map(|draft| draft.depends_on.iter().map(move |on| (draft, on)));
    let unknown = waits.filter(|(_, on)| !numbers.contains_key(on.text.as_ref()));
    for (nth, (draft, on)) in unknown.enumerate() {
        if report.is_full_of(Severity::Error) {
            break;
        }
        let missing = quoted(&on.text);
        let message = format!("{} depends on {missing}, which does not exist", draft.owner);
        // A suggestion costs a pass over all ids, so only the shown ones get one.
        let near = if nth < MAX_SHOWN { nearest_ids(&on.text, &ids) } else { Vec::new() };
        let help = suggestion(&near)
            .unwrap_or_else(|| format!("add a story {missing}, or remove it from `depends_on`"));
        report.push(Diagnostic::error(message).at(report.span(on.raw)).help(help));
    }
}

fn suggestion(near: &[&str]) -> Option<String> {
    let (last, others) = near.split_last()?;
    let others: Vec<String> = others.iter().map(|id| quoted(id)).collect();
    let or = if others.is_empty() { "" } else { " or " };
    Some(format!("did you mean {}{or}{}?", others.join(", "), quoted(last)))
}

fn report_cycle(report: &mut Report<'_>, drafts: &[Draft<'_>], cycle: &[usize]) {
    let stories: Vec<&Draft<'_>> = cycle.iter().filter_map(|number| drafts.get(*number)).collect();
    let Some(first) = stories.first() else { return };
    let Some(next) = stories.get(1).unwrap_or(first).id.as_ref() else {
        return;
    };
    let circle = names(&stories);
    let error = if stories.len() == 1 {
        Diagnostic::error(format!("{} depends on itself: {circle}", first.owner))
            .help("remove it from its `depends_on`")
    } else {
        Diagnostic::error(format!("these stories wait for each other: {circle}"))
            .help("remove one of these dependencies")
    };
    let edge = first.depends_on.iter().find(|on| on.text == next.text);
    report.push(match edge {
        Some(on) => error.at(report.span(on.raw)),
        None => error,
    });
}

/// `A` → `B` → `A`
fn names(stories: &[&Draft<'_>]) -> String {
    let ids = stories.iter().chain(stories.first()).filter_map(|one| one.id.as_ref());
    let mut named: Vec<String> = ids.map(|id| quoted(&id.text)).collect();
    if named.len() > MAX_NAMED {
        let left_out = named.len() - MAX_NAMED;
        let ends = MAX_NAMED / 2;
        named.splice(ends..named.len() - ends, [format!("… {left_out} more …")]);
    }
    named.join(" → ")
}
