//! Errors and warnings in a file: with their places, and as plain text.
//!
//! A file may be one line of 8 MB with thousands of problems, so finding the line and column of a
//! byte may not scan the text.

use std::cell::OnceCell;
use std::fmt::Write;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::model::{shorten, visible, visible_line};

/// The byte order mark; not part of the first line.
pub const BOM: char = '\u{feff}';

/// Characters are counted by blocks of this many bytes.
const BLOCK: usize = 4096;

/// Kept per severity; far more than are shown.
const MAX_KEPT: usize = 10_000;

/// The most problems shown.
pub const MAX_SHOWN: usize = 50;

/// Characters shown of a line, so that the excerpt fits into 80 columns, indented too; and how many of
/// them are before the problem.
const WINDOW: usize = 68;
const WINDOW_BEFORE: usize = 30;

const MAX_NAME: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// It can be used, but is probably not what was meant.
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Byte range in the file's text; None: the whole file.
    pub span: Option<Range<usize>>,
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    pub fn error(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, span: None, message: message.into(), help: None }
    }

    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    pub fn at(self, span: Range<usize>) -> Self {
        Self { span: Some(span), ..self }
    }

    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Errors first, then in the order of the file.
    pub fn rank(&self) -> (Severity, usize) {
        (self.severity, self.span.as_ref().map_or(0, |span| span.start))
    }
}

/// Collects diagnostics while a file is read. The list stays small however wrong the file is, but
/// never loses that there was an error.
pub struct Diagnostics<'a> {
    text: &'a str,
    lines: OnceCell<LineIndex<'a>>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl<'a> Diagnostics<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, lines: OnceCell::new(), errors: Vec::new(), warnings: Vec::new() }
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        let kept = if diagnostic.is_error() { &mut self.errors } else { &mut self.warnings };
        if kept.len() < MAX_KEPT {
            kept.push(diagnostic);
        }
    }

    pub fn error(&mut self, at: &RawValue, message: String, help: impl Into<String>) {
        let span = self.span(at);
        self.push(Diagnostic::error(message).at(span).help(help));
    }

    pub fn warn(&mut self, at: &RawValue, message: String, help: impl Into<String>) {
        let span = self.span(at);
        self.push(Diagnostic::warning(message).at(span).help(help));
    }

    /// More of these would be dropped.
    pub fn is_full_of(&self, severity: Severity) -> bool {
        let kept = if severity == Severity::Error { &self.errors } else { &self.warnings };
        kept.len() >= MAX_KEPT
    }

    pub fn span(&self, piece: &RawValue) -> Range<usize> {
        span(self.text, piece)
    }

    /// The line number of a piece.
    pub fn line(&self, piece: &RawValue) -> usize {
        let lines = self.lines.get_or_init(|| LineIndex::new(self.text));
        lines.line(self.span(piece).start)
    }

    pub fn into_sorted(self) -> Vec<Diagnostic> {
        let mut all = self.errors;
        all.extend(self.warnings);
        all.sort_by_key(Diagnostic::rank);
        all
    }
}

/// A name from the file, in ticks, on one line, shortened.
pub fn quoted(name: &str) -> String {
    // Cut first, because a name may be as long as the file.
    let start: String = name.chars().take(4 * MAX_NAME).collect();
    format!("`{}`", shorten(&visible_line(&start), MAX_NAME))
}

/// All problems, errors first, each with its line; empty if there are none. Text from the file is made
/// visible, because it may contain terminal escapes.
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
    let kind = if diagnostic.is_error() { "error" } else { "warning" };
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

/// 1-based; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// The position of one byte. For many of the same text, keep a [`LineIndex`].
pub fn position(text: &str, offset: usize) -> Position {
    LineIndex::new(text).position(offset)
}

/// The place of a piece of JSON in its text.
pub fn span(text: &str, piece: &RawValue) -> Range<usize> {
    let piece = piece.get();
    let start = piece.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start + piece.len()
}

/// Built with one pass over the text.
pub struct LineIndex<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    /// Characters before each block of `BLOCK` bytes.
    chars_before_block: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    pub fn new(text: &'t str) -> Self {
        let first_line = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
        let after_breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        Self {
            text,
            line_starts: std::iter::once(first_line).chain(after_breaks).collect(),
            chars_before_block: chars_before_blocks(text),
        }
    }

    pub fn position(&self, offset: usize) -> Position {
        let line = self.line(offset);
        let start = self.line_start(line);
        let column = 1 + self.chars_before(offset).saturating_sub(self.chars_before(start));
        Position { line, column }
    }

    /// The 1-based number of the byte's line.
    pub fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset).max(1)
    }

    /// The bytes of a line, without its line ending.
    pub fn line_range(&self, line: usize) -> Range<usize> {
        let start = self.line_start(line);
        let next = self.line_starts.get(line).map_or(self.text.len(), |next| next - 1);
        let ends_with_cr = self.text.get(start..next).is_some_and(|line| line.ends_with('\r'));
        start..if ends_with_cr { next - 1 } else { next }
    }

    fn line_start(&self, line: usize) -> usize {
        self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len())
    }

    fn chars_before(&self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        let block = offset / BLOCK;
        let counted = self.chars_before_block.get(block).copied().unwrap_or(0);
        let rest = self.text.as_bytes().get(block * BLOCK..offset).unwrap_or_default();
        counted + count_chars(rest)
    }
}

fn chars_before_blocks(text: &str) -> Vec<usize> {
    let counts = text.as_bytes().chunks(BLOCK).scan(0, |seen, block| {
        *seen += count_chars(block);
        Some(*seen)
    });
    std::iter::once(0).chain(counts).collect()
}

/// Every byte except UTF-8 continuation bytes begins a character.
fn count_chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_count_characters_without_the_bom() {
        for (text, offset, line, column) in [
            ("", 0, 1, 1),
            ("abc", 2, 1, 3),
            ("abc", 3, 1, 4),
            ("abc", 99, 1, 4),
            ("a\nb", 1, 1, 2),
            ("a\nb", 2, 2, 1),
            ("a\r\nb", 3, 2, 1),
            ("漢字x", 6, 1, 3),
            ("\u{feff}ab", 0, 1, 1),
            ("\u{feff}ab", 4, 1, 2),
            ("\u{feff}a\nb", 5, 2, 1),
        ] {
            let found = position(text, offset);
            assert_eq!(found, Position { line, column }, "{text:?} at {offset}");
        }
    }

    #[test]
    fn a_line_range_excludes_its_ending() {
        let index = LineIndex::new("\u{feff}a\r\nbc\n");
        assert_eq!(index.line_range(1), 3..4);
        assert_eq!(index.line_range(2), 6..8);
        assert_eq!(index.line_range(3), 9..9);
    }

    #[test]
    fn positions_in_a_long_line_are_cheap() {
        let text = "é".repeat(4 * 1024 * 1024);
        let index = LineIndex::new(&text);
        let start = std::time::Instant::now();
        for n in 0..10_000 {
            assert_eq!(index.position(text.len() - 2 * n).column, 4 * 1024 * 1024 - n + 1);
        }
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }

    proptest! {
        #[test]
        fn positions_equal_a_count_from_the_start(text in "[a\u{e9}\u{6f22}\n]{0,40}", pad in 0..9000_usize) {
            let text = format!("{}{text}", "ü".repeat(pad));
            let index = LineIndex::new(&text);
            for (offset, _) in text.char_indices().rev().take(50) {
                let before = text.get(..offset).unwrap();
                let line = 1 + before.matches('\n').count();
                let column = 1 + before.rsplit('\n').next().unwrap().chars().count();
                prop_assert_eq!(index.position(offset), Position { line, column });
            }
        }
    }
}
