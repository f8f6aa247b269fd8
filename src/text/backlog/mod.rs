//! The grammar of PRD.json, with diagnostics.
//!
//! Any text must lead to a backlog or an error, without a panic or deep recursion.

mod diagnostic;
mod fields;
pub(crate) mod json;
mod relations;
mod spelling;
mod story;
#[cfg(test)]
mod tests;

use crate::model::Backlog;

pub use diagnostic::{
    BOM, Diagnostic, LineIndex, Position, Severity, position, render, span, summary,
};
pub use json::{MAX_BYTES, MAX_DEPTH};

use diagnostic::Diagnostics;
use fields::{KnownFields, ObjectReader, Owner, check_inside, check_keys};
use json::RawValue;

pub const MAX_STORIES: usize = 10_000;

/// The result of parsing.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// Some if there is no error among the diagnostics.
    pub backlog: Option<Backlog>,
    /// Errors first, each severity in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a backlog file into a backlog, or into all of its errors.
pub fn parse(text: &str) -> Parsed {
    let mut found = Diagnostics::new(text);
    let root = json::root(text).map_err(|error| found.push(error)).ok();
    let backlog = root.and_then(|root| read_file(&mut found, root));
    let diagnostics = found.into_sorted();
    let backlog = backlog.filter(|_| !diagnostics.iter().any(Diagnostic::is_error));
    Parsed { backlog, diagnostics }
}

fn read_file<'a>(found: &mut Diagnostics<'a>, root: &'a RawValue) -> Option<Backlog> {
    let start = found.span(root).start;
    let anchor = start..start + 1;
    let Some(members) = json::members(root) else {
        let message = format!("the file must contain one object, found {}", json::kind(root));
        let help = "write `{ \"project\": …, \"description\": …, \"userStories\": [ … ] }`";
        found.push(Diagnostic::error(message).at(anchor).help(help));
        return None;
    };
    check_keys(found, &members);
    // The stories are checked when each is read.
    for member in members.iter().filter(|member| member.name != fields::STORIES.name) {
        check_inside(found, member.value);
    }
    let known = &mut KnownFields::new(fields::OF_FILE);
    let (owner, members, explained) = (Owner::File, members.as_slice(), Vec::new());
    let mut fields = ObjectReader { found, owner, members, known, anchor, explained };
    let project = fields.string(&fields::PROJECT);
    let description = fields.string(&fields::SUMMARY);
    let stories = stories(&mut fields);
    fields.warn_of_misspelled();
    let mut known = KnownFields::new(fields::OF_STORY);
    let numbered = stories?.into_iter().zip(1..);
    let drafts = numbered.filter_map(|(raw, number)| story::read(found, &mut known, number, raw));
    let drafts: Vec<_> = drafts.collect();
    relations::check(found, &drafts);
    let stories = drafts.into_iter().map(|draft| draft.story).collect::<Option<_>>()?;
    Some(Backlog::new(project?.text.into_owned(), description?.text.into_owned(), stories))
}

fn stories<'a>(fields: &mut ObjectReader<'_, 'a>) -> Option<Vec<&'a RawValue>> {
    let raw = fields.value(&fields::STORIES)?;
    let Some(stories) = json::elements(raw) else {
        let message = format!("`userStories` must be an array, found {}", json::kind(raw));
        return fields.refuse(raw, message, "write the stories as a list: `[ { … }, { … } ]`");
    };
    if stories.is_empty() {
        let message = "`userStories` is empty".to_owned();
        return fields.refuse(raw, message, "add at least one story");
    }
    if let Some(over) = stories.get(MAX_STORIES) {
        let message = format!("too many stories: {} (maximum {MAX_STORIES})", stories.len());
        return fields.refuse(over, message, "split the file into several backlogs");
    }
    Some(stories)
}
