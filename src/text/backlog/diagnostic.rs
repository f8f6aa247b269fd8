//! An error or warning in a backlog file, with its place.

use std::ops::Range;

pub use super::render::render;

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
        Self::new(Severity::Error, message.into())
    }

    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message.into())
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

    fn new(severity: Severity, message: String) -> Self {
        Self { severity, span: None, message, help: None }
    }
}
