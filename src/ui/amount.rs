//! How much is said: `--quiet`, `--verbose`, or neither.

use super::line::{Line, Text, Tone};
use super::{UiOptions, notices, wording};
use crate::core::event::Recorded;
use crate::engine::ports::{Notice, View};

#[derive(Clone, Copy)]
pub struct Amount {
    quiet: bool,
    verbose: bool,
}

impl Amount {
    pub fn new(options: &UiOptions) -> Self {
        Self { quiet: options.quiet, verbose: options.verbose }
    }

    pub fn event(self, recorded: &Recorded, view: View<'_>) -> Vec<Line> {
        if self.quiet && !wording::is_essential(&recorded.event) {
            return vec![];
        }
        wording::lines(recorded, view)
    }

    pub fn checking(self, running: Line) -> Vec<Line> {
        if self.quiet { vec![] } else { vec![running] }
    }

    pub fn said(self, text: &str) -> Vec<Line> {
        if !self.verbose || self.quiet {
            return vec![];
        }
        let indented = |line| format!("  {line}").trim_end().to_owned();
        let lines = text.trim().lines().map(indented);
        lines.map(|line| Text::new().with(Tone::Dim, line).into()).collect()
    }

    pub fn notice(self, notice: &Notice) -> Vec<Line> {
        if self.quiet && !notices::is_warning(notice) { vec![] } else { notices::lines(notice) }
    }
}
