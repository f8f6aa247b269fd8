//! Reads and checks one story; `dependencies` and `ids` check stories against each other.

use std::num::NonZeroU32;

use crate::model::{BadStoryId, Gate, Story, StoryId, visible_line};

use super::diagnostic::Diagnostic;
use super::fields::{Fields, Text};
use super::raw::RawValue;
use super::report::{Report, quoted};
use super::schema::{Owner, Vocabulary};
use super::signs::signs;
use super::{duplicates, raw, schema};

/// The readable part of a story, enough to check it against the others.
pub struct Draft<'a> {
    pub owner: Owner<'a>,
    pub id: Option<Text<'a>>,
    pub depends_on: Vec<Text<'a>>,
    /// None if it is invalid, which is reported.
    pub story: Option<Story>,
}

/// Reads stories one after the other.
pub struct Reader<'r, 'a> {
    report: &'r mut Report<'a>,
    vocabulary: Vocabulary,
    number: usize,
}

impl<'r, 'a> Reader<'r, 'a> {
    pub fn new(report: &'r mut Report<'a>) -> Self {
        Self { report, vocabulary: Vocabulary::new(schema::OF_STORY), number: 0 }
    }

    /// None if it is not an object.
    pub fn read(&mut self, value: &'a RawValue) -> Option<Draft<'a>> {
        self.number += 1;
        let Some(members) = raw::members(value) else {
            self.report_no_object(value);
            return None;
        };
        duplicates::check_keys(self.report, &members);
        members.iter().for_each(|member| duplicates::check_inside(self.report, member.value));
        let id = members.iter().find(|member| member.name == schema::ID.name);
        let id = id.map(|member| member.value);
        let owner = Owner::Story { number: self.number, id: id.and_then(raw::string) };
        let brace = self.report.span(value).start;
        let anchor = id.map_or(brace..brace + 1, |id| self.report.span(id));
        let vocabulary = &mut self.vocabulary;
        let mut fields = Fields::new(self.report, owner, &members, vocabulary, anchor);
        let draft = read_fields(&mut fields);
        fields.warn_of_misspelt();
        Some(draft)
    }

    fn report_no_object(&mut self, value: &RawValue) {
        let (number, found) = (self.number, raw::kind(value));
        let message = format!("story number {number} must be an object, found {found}");
        let help = "write it as `{ \"id\": …, \"title\": …, … }`";
        let span = self.report.span(value);
        self.report.push(Diagnostic::error(message).at(span).help(help));
    }
}

fn read_fields<'a>(fields: &mut Fields<'_, 'a>) -> Draft<'a> {
    // All fields are read, so that all problems are reported at once.
    let id = fields.string(&schema::ID);
    let story_id = id.as_ref().and_then(|id| valid_id(fields, id));
    let title = title(fields);
    let description = fields.string(&schema::DESCRIPTION);
    let criteria = criteria(fields);
    let passes = fields.flag(&schema::PASSES);
    let depends_on = fields.strings(&schema::DEPENDS_ON).unwrap_or_default();
    let skipped = skipped(fields, passes);
    let priority = fields.number(&schema::PRIORITY);
    let verify = gates(fields);
    let max_attempts = max_attempts(fields);
    let markers = signs(fields);
    let story = || {
        Some(Story {
            id: story_id?,
            title: title?,
            description: description?.text.into_owned(),
            criteria: criteria?,
            passes: passes?,
            skipped,
            depends_on: depends_on.iter().filter_map(|on| on.text.parse().ok()).collect(),
            priority,
            verify: verify?,
            max_attempts: max_attempts?,
            markers: markers?,
        })
    };
    Draft { owner: fields.owner.clone(), story: story(), id, depends_on }
}

fn valid_id(fields: &mut Fields<'_, '_>, id: &Text<'_>) -> Option<StoryId> {
    match StoryId::try_from(id.text.as_ref()) {
        Ok(valid) => Some(valid),
        Err(BadStoryId) => {
            let message = format!("{} cannot be a story's id", quoted(&id.text));
            fields.report_at(id.raw, message, &BadStoryId.to_string())
        }
    }
}

fn title(fields: &mut Fields<'_, '_>) -> Option<String> {
    let title = fields.string(&schema::TITLE)?;
    if title.text.trim().is_empty() {
        let message = format!("the title of {} is empty", fields.owner);
        return fields.report_at(title.raw, message, "say in one line what the story does");
    }
    Some(title.text.into_owned())
}

fn criteria(fields: &mut Fields<'_, '_>) -> Option<Vec<String>> {
    let field = &schema::CRITERIA;
    let criteria = fields.strings(field)?;
    if criteria.is_empty() {
        let message = format!("{} has no criteria", fields.owner);
        if let Some(list) = fields.value(field) {
            warn(fields, list, message, "say how to tell that it is done");
        }
    }
    if let Some(empty) = criteria.iter().find(|criterion| criterion.text.trim().is_empty()) {
        let message = format!("a criterion of {} is empty", fields.owner);
        warn(fields, empty.raw, message, "fill it in, or remove it");
    }
    Some(criteria.into_iter().map(|criterion| criterion.text.into_owned()).collect())
}

/// None if one of them is invalid.
fn gates(fields: &mut Fields<'_, '_>) -> Option<Vec<Gate>> {
    let field = &schema::VERIFY;
    let Some(raw) = fields.value(field) else { return Some(Vec::new()) };
    let owned = fields.owner.field(field.name);
    let Some(elements) = raw::elements(raw) else {
        let message = format!("{owned} must be an array of commands, found {}", raw::kind(raw));
        return fields.report_at(
            raw,
            message,
            "write it as a list: `\"verify\": [\"cargo test\"]`",
        );
    };
    let gates = elements.into_iter().map(|one| match serde_json::from_str(one.get()) {
        Ok(gate) => Some(gate),
        Err(error) => {
            let message =
                format!("{owned} has a gate that cannot be used: {}", without_place(&error));
            fields.report_at(
                one,
                message,
                "write a shell command, or `{ \"run\": …, \"timeout\": \"10m\" }`",
            )
        }
    });
    // All are checked, so that all problems are reported at once.
    gates.collect::<Vec<_>>().into_iter().collect()
}

/// The outer None: it is invalid, and reported.
#[expect(clippy::option_option, reason = "a field that is not there is right too")]
fn max_attempts(fields: &mut Fields<'_, '_>) -> Option<Option<NonZeroU32>> {
    let field = &schema::MAX_ATTEMPTS;
    let Some(raw) = fields.value(field) else { return Some(None) };
    if let Ok(count) = raw.get().parse() {
        return Some(Some(count));
    }
    let message = format!("{} must be a number from 1 on", fields.owner.field(field.name));
    fields.report_at(raw, message, "write a number such as `5`, or remove the field")
}

/// Without the place inside the value, which means nothing in the whole file.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    visible_line(text)
}

fn skipped(fields: &mut Fields<'_, '_>, passes: Option<bool>) -> bool {
    let field = &schema::SKIPPED;
    let skipped = fields.flag(field) == Some(true);
    if skipped && passes == Some(true) {
        let message = format!("{} both passes and is skipped", fields.owner);
        if let Some(value) = fields.value(field) {
            warn(fields, value, message, "it counts as passed: remove `skipped`");
        }
    }
    skipped
}

fn warn(fields: &mut Fields<'_, '_>, at: &RawValue, message: String, help: &str) {
    let span = fields.report.span(at);
    fields.report.push(Diagnostic::warning(message).at(span).help(help));
}
