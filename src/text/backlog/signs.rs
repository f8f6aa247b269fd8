//! A story's completion markers.

use crate::model::CompletionMarkers;
use crate::text::signals::{can_be_a_line, can_be_promised};

use super::fields::{Fields, Text};
use super::schema;
use super::schema::Field;

const A_LINE: &str = "write one line of at most 200 characters that says something, such as \"LOGIN_OK\"; no quote, \
                      comment or code";
const A_WORD: &str = "write what stands in the `<promise>`, such as \"DONE\"";

/// None if one of them is invalid.
pub fn signs(fields: &mut Fields<'_, '_>) -> Option<CompletionMarkers> {
    let promise = match fields.value(&schema::PROMISE) {
        None => Some(None),
        Some(_) => promise(fields).map(Some),
    };
    // All are checked, so that all problems are reported at once.
    let signals = lines(fields, &schema::SIGNALS);
    let stages = lines(fields, &schema::STAGES);
    Some(CompletionMarkers { promise: promise?, signals: signals?, stages: stages? })
}

fn promise(fields: &mut Fields<'_, '_>) -> Option<String> {
    let text = fields.string(&schema::PROMISE)?;
    if can_be_promised(&text.text) {
        return Some(text.text.into_owned());
    }
    refuse(fields, &schema::PROMISE, &text, A_WORD)
}

fn lines(fields: &mut Fields<'_, '_>, field: &Field) -> Option<Vec<String>> {
    if fields.value(field).is_none() {
        return Some(Vec::new());
    }
    let texts = fields.strings(field)?;
    if let Some(bad) = texts.iter().find(|text| !can_be_a_line(&text.text)) {
        return refuse(fields, field, bad, A_LINE);
    }
    let lines: Vec<String> = texts.iter().map(|text| text.text.trim().to_owned()).collect();
    let is_doubled = |(at, line): &(usize, &String)| lines.iter().take(*at).any(|one| one == *line);
    let doubled = lines.iter().enumerate().find(is_doubled);
    if let Some(text) = doubled.and_then(|(at, _)| texts.get(at)) {
        return refuse(fields, field, text, "each of them once is enough");
    }
    Some(lines)
}

fn refuse<T>(fields: &mut Fields<'_, '_>, field: &Field, text: &Text<'_>, help: &str) -> Option<T> {
    let owned = fields.owner.field(field.name);
    fields.report_at(text.raw, format!("{owned} has an entry that cannot be used"), help)
}
