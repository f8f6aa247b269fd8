//! Diagnostics as plain text: place, line, help.
//!
//! Text from the file is made visible first, because it may contain terminal escapes.

use std::fmt::Write;
use std::ops::Range;

use crate::model::visible;

use super::diagnostic::{Diagnostic, Severity};
use super::position::LineIndex;

/// The most problems shown.
pub const MAX_SHOWN: usize = 50;

/// Characters shown of a line, and how many of them are before the problem.
const WINDOW: usize = 100;
const WINDOW_BEFORE: usize = 40;

/// All problems, errors first, each with its line; empty if there are none.
pub fn render(path: &str, text: &str, diagnostics: &[Diagnostic]) -> String {
    if diagnostics.is_empty() {
        return String::new();
    }
    let mut in_order: Vec<&Diagnostic> = diagnostics.iter().collect();
    in_order.sort_by_key(|diagnostic| diagnostic.rank());
    let lines = LineIndex::new(text);
    let path = visible(path);
    let shown = in_order.iter().take(MAX_SHOWN).map(|one| render_one(&path, text, &lines, one));
    let mut blocks: Vec<String> = shown.collect();
    let left_out = diagnostics.len().saturating_sub(MAX_SHOWN);
    if left_out > 0 {
        blocks.push(format!("… and {}\n", count(left_out, "more problem")));
    }
    blocks.push(format!("{}\n", summary(diagnostics)));
    blocks.join("\n")
}

/// `2 errors, 1 warning`
pub fn summary(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|one| one.is_error()).count();
    let parts = [(errors, "error"), (diagnostics.len() - errors, "warning")];
    let told = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(*n, what));
    told.collect::<Vec<_>>().join(", ")
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn render_one(path: &str, text: &str, lines: &LineIndex<'_>, diagnostic: &Diagnostic) -> String {
    let kind = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let message = &diagnostic.message;
    let mut gutter = 1;
    let mut out = match &diagnostic.span {
        None => format!("{kind}: {path}: {message}\n"),
        Some(span) => {
            let at = lines.position(span.start);
            gutter = at.line.to_string().len();
            let excerpt = excerpt(text, lines, at.line, span);
            format!("{kind}: {path}:{}:{}: {message}\n{excerpt}", at.line, at.column)
        }
    };
    if let Some(help) = &diagnostic.help {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{:gutter$} = help: {help}", "");
    }
    out
}

/// The line of the problem, with carets below it.
fn excerpt(text: &str, lines: &LineIndex<'_>, line: usize, span: &Range<usize>) -> String {
    let range = lines.line_range(line);
    let start = span.start.clamp(range.start, range.end);
    let window = window(text, &range, start);
    let end = span.end.clamp(start, window.end);
    let before = plain(text.get(window.start..start).unwrap_or_default());
    let meant = plain(text.get(start..end).unwrap_or_default());
    let after = plain(text.get(end..window.end).unwrap_or_default());
    let cut_before = if window.start > range.start { "…" } else { "" };
    let cut_after = if window.end < range.end { "…" } else { "" };
    let shown = format!("{line} | {cut_before}{before}{meant}{after}{cut_after}");
    let gutter = " ".repeat(line.to_string().len());
    let indent = " ".repeat(cut_before.chars().count() + before.chars().count());
    let carets = "^".repeat(meant.chars().count().max(1));
    format!("{gutter} |\n{}\n{gutter} | {indent}{carets}\n", shown.trim_end())
}

/// The whole line, or the part around the problem if it is long (minified JSON).
fn window(text: &str, line: &Range<usize>, at: usize) -> Range<usize> {
    let near = start_of_last(text, line.start..at, WINDOW_BEFORE);
    // Near the end of the line more of the beginning fits.
    let start = near.min(start_of_last(text, line.clone(), WINDOW));
    let rest = text.get(start..line.end).unwrap_or_default();
    let end = rest.char_indices().nth(WINDOW).map_or(line.end, |(offset, _)| start + offset);
    start..end
}

/// Where the last `count` characters of a range begin.
fn start_of_last(text: &str, range: Range<usize>, count: usize) -> usize {
    let piece = text.get(range.clone()).unwrap_or_default();
    let first = piece.char_indices().rev().nth(count - 1);
    range.start + first.map_or(0, |(offset, _)| offset)
}

/// One column per character, so that the carets line up.
fn plain(text: &str) -> String {
    visible(text).replace('\t', "  ").replace('\n', " ")
}
