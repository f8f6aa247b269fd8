//! Parses a backlog file into a backlog, or into all of its errors.
//!
//! Any text must lead to a backlog or an error, without a panic or deep recursion.

use crate::model::Backlog;

use super::depth::first_deeper_than;
use super::diagnostic::Diagnostic;
use super::fields::{Fields, Text};
use super::position::BOM;
use super::raw::{Member, RawValue};
use super::report::Report;
use super::schema::{Owner, Vocabulary};
use super::story::{Draft, Reader};
use super::{dependencies, duplicates, ids, raw, schema, syntax};

/// The longest text.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;
/// How deep objects and arrays may nest.
pub const MAX_DEPTH: usize = 64;
pub const MAX_STORIES: usize = 10_000;

/// The result of parsing.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// Some if there is no error among the diagnostics.
    pub backlog: Option<Backlog>,
    /// Errors first, each severity in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

pub fn parse(text: &str) -> Parsed {
    let root = match root(text) {
        Ok(root) => root,
        Err(error) => {
            return Parsed { backlog: None, diagnostics: vec![error] };
        }
    };
    let mut report = Report::new(text);
    let backlog = read_file(&mut report, root);
    let backlog = backlog.filter(|_| !report.has_errors());
    Parsed { backlog, diagnostics: report.into_diagnostics() }
}

/// The file's one value, if the text is JSON within the limits.
fn root(text: &str) -> Result<&RawValue, Diagnostic> {
    if text.len() > MAX_BYTES {
        let message = format!("the file is larger than {} MB", MAX_BYTES / 1024 / 1024);
        return Err(Diagnostic::error(message).help("split it into several backlogs"));
    }
    let json = text.strip_prefix(BOM).unwrap_or(text);
    if json.trim().is_empty() {
        let help = "`ralph init` writes a backlog to start from";
        return Err(Diagnostic::error("the file is empty").help(help));
    }
    if let Some(at) = first_deeper_than(text, MAX_DEPTH) {
        let message = format!("brackets are nested more than {MAX_DEPTH} deep");
        let help = "a backlog needs 4 levels: remove what is nested deeper";
        return Err(Diagnostic::error(message).at(at..at + 1).help(help));
    }
    let begin = text.len() - json.len();
    serde_json::from_str(json).map_err(|error| syntax::explain(json, begin, &error))
}

fn read_file<'a>(report: &mut Report<'a>, root: &'a RawValue) -> Option<Backlog> {
    let span = report.span(root);
    let brace = span.start..span.start + 1;
    let Some(members) = raw::members(root) else {
        let message = format!("the file must hold one object, found {}", raw::kind(root));
        let help = "write `{ \"project\": …, \"description\": …, \"userStories\": [ … ] }`";
        report.push(Diagnostic::error(message).at(brace).help(help));
        return None;
    };
    check_keys(report, &members);
    let mut vocabulary = Vocabulary::new(schema::OF_FILE);
    let mut fields = Fields::new(report, Owner::File, &members, &mut vocabulary, brace);
    let project = fields.string(&schema::PROJECT);
    let description = fields.string(&schema::SUMMARY);
    let stories = stories(&mut fields);
    fields.warn_of_misspelt();
    let drafts = read_stories(report, &stories?);
    let stories = drafts.into_iter().map(|draft| draft.story).collect::<Option<_>>()?;
    Some(Backlog::new(owned(project?), owned(description?), stories))
}

fn check_keys<'a>(report: &mut Report<'a>, members: &[Member<'a>]) {
    duplicates::check_keys(report, members);
    // The stories are checked when each is read.
    for member in members.iter().filter(|member| member.name != schema::STORIES.name) {
        duplicates::check_inside(report, member.value);
    }
}

fn stories<'a>(fields: &mut Fields<'_, 'a>) -> Option<Vec<&'a RawValue>> {
    let raw = fields.value(&schema::STORIES)?;
    let Some(stories) = raw::elements(raw) else {
        let message = format!("`userStories` must be an array, found {}", raw::kind(raw));
        return fields.report_at(raw, message, "write the stories as a list: `[ { … }, { … } ]`");
    };
    if stories.is_empty() {
        let message = "`userStories` is empty: there is nothing to do".to_owned();
        return fields.report_at(raw, message, "add at least one story");
    }
    if let Some(over) = stories.get(MAX_STORIES) {
        let message = format!("there are {} stories; the maximum is {MAX_STORIES}", stories.len());
        return fields.report_at(over, message, "split the file into several backlogs");
    }
    Some(stories)
}

fn read_stories<'a>(report: &mut Report<'a>, stories: &[&'a RawValue]) -> Vec<Draft<'a>> {
    let mut reader = Reader::new(report);
    let drafts: Vec<Draft<'a>> = stories.iter().filter_map(|story| reader.read(story)).collect();
    ids::check(report, &drafts);
    dependencies::check(report, &drafts);
    drafts
}

fn owned(text: Text<'_>) -> String {
    text.text.into_owned()
}
