//! Collects diagnostics while a file is read.
//!
//! The list stays small however wrong the file is, but never loses that there was an error.

use std::cell::OnceCell;
use std::ops::Range;

use crate::model::{shorten, visible_line};

use super::diagnostic::{Diagnostic, Severity};
use super::position::LineIndex;
use super::raw;
use super::raw::RawValue;

/// Kept per severity; far more than are shown.
const MAX_KEPT: usize = 10_000;

const MAX_NAME: usize = 64;

pub struct Report<'a> {
    text: &'a str,
    lines: OnceCell<LineIndex<'a>>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl<'a> Report<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, lines: OnceCell::new(), errors: Vec::new(), warnings: Vec::new() }
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        let kept = if diagnostic.is_error() { &mut self.errors } else { &mut self.warnings };
        if kept.len() < MAX_KEPT {
            kept.push(diagnostic);
        }
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

    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
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
