//! Errors and warnings in a file, with their places.

use std::cell::OnceCell;
use std::ops::Range;

use crate::model::{shorten, visible_line};

use super::position::LineIndex;
use super::raw::{self, RawValue};

/// Kept per severity; far more than are shown.
const MAX_KEPT: usize = 10_000;

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
        let kept = match severity {
            Severity::Error => &self.errors,
            Severity::Warning => &self.warnings,
        };
        kept.len() >= MAX_KEPT
    }

    pub fn span(&self, piece: &RawValue) -> Range<usize> {
        raw::span(self.text, piece)
    }

    /// The line number of a piece.
    pub fn line(&self, piece: &RawValue) -> usize {
        let lines = self.lines.get_or_init(|| LineIndex::new(self.text));
        lines.line(self.span(piece).start)
    }

    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
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
