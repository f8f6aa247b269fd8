//! Comma-separated values, as spreadsheets read them.

use serde_json::Value;

use crate::model::visible_line;

use super::sums::CostGroup;

/// With a heading; nothing at all where there is nothing.
pub fn text(groups: &[CostGroup]) -> String {
    let Some(first) = groups.first() else { return String::new() };
    let heading = first.fields().into_iter().map(|(name, _)| name.to_owned());
    let rows = groups.iter().map(|group| line(group.fields().iter().map(|(_, value)| cell(value))));
    std::iter::once(line(heading)).chain(rows).collect()
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("{}\n", cells.collect::<Vec<_>>().join(","))
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(&visible_line(text)),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A spreadsheet would run what begins like a formula: a `'` before it makes it a text.
fn quoted(text: &str) -> String {
    let guard = if text.trim_start().starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    if guard.is_empty() && !text.contains(['"', ',', '\n', '\r', ' ', '\t']) {
        return text.to_owned();
    }
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_never_a_formula() {
        for (text, written) in [
            ("US-001", "US-001"),
            ("Add an item", "\"Add an item\""),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("+1", "\"'+1\""),
            ("-2", "\"'-2\""),
            ("@cmd", "\"'@cmd\""),
            ("  =1", "\"'  =1\""),
            ("a=b", "a=b"),
            ("", ""),
        ] {
            assert_eq!(quoted(text), written, "{text}");
        }
    }

    #[test]
    fn what_would_move_a_cursor_is_made_visible() {
        let written = cell(&Value::String("a\x1b[2Jb\nc".into()));
        assert!(!written.contains(['\x1b', '\n']), "{written}");
    }
}
