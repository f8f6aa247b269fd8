//! The file format as its users see it: text in, messages out.

use super::*;

mod any_text;
mod messages;
mod not_json;
mod one_story;
mod rendering;
mod whole_files;

/// A file with one story, of which some fields are replaced or added.
fn file_with(story: &str) -> String {
    format!(r#"{{"project": "p", "description": "d", "userStories": [{story}]}}"#)
}

const GOOD: &str =
    r#"{"id": "A", "title": "t", "description": "d", "criteria": ["c"], "passes": false}"#;

/// All diagnostics, as `severity line:column message (help)`.
fn problems(text: &str) -> Vec<String> {
    let lines = LineIndex::new(text);
    let told = |one: &Diagnostic| {
        let kind = if one.is_error() { "error" } else { "warning" };
        let at = one.span.as_ref().map(|span| lines.position(span.start));
        let at = at.map_or("-".to_owned(), |at| format!("{}:{}", at.line, at.column));
        format!("{kind} {at} {} ({})", one.message, one.help.as_deref().unwrap_or("-"))
    };
    let parsed = parse(text);
    assert_eq!(parsed.backlog.is_none(), parsed.diagnostics.iter().any(Diagnostic::is_error));
    parsed.diagnostics.iter().map(told).collect()
}
