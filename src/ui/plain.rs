//! The display for logs: one line per fact, in order, nothing replaced.

use super::line::{Line, Text, Tone};
use super::printer::Printer;
use super::{UiOptions, notices, wording};
use crate::core::event::Recorded;
use crate::engine::ports::{Activity, Notice, Reporter, View};

pub struct Plain {
    printer: Printer,
    quiet: bool,
    verbose: bool,
}

impl Plain {
    pub fn new(printer: Printer, options: &UiOptions) -> Self {
        Self { printer, quiet: options.quiet, verbose: options.verbose }
    }

    pub fn printer(&self) -> &Printer {
        &self.printer
    }

    pub fn print(&mut self, lines: &[Line]) {
        for line in lines {
            self.printer.line(line);
        }
    }

    pub fn event_lines(&self, recorded: &Recorded, view: View<'_>) -> Vec<Line> {
        if self.quiet && !wording::is_essential(&recorded.event) {
            return vec![];
        }
        wording::lines(recorded, view)
    }

    pub fn activity_lines(&self, activity: &Activity) -> Vec<Line> {
        match activity {
            Activity::Said(text) if self.verbose && !self.quiet => said(text),
            _ => vec![],
        }
    }

    pub fn notice_lines(&self, notice: &Notice) -> Vec<Line> {
        if self.quiet && !notices::is_warning(notice) { vec![] } else { notices::lines(notice) }
    }
}

impl Reporter for Plain {
    fn on_event(&mut self, recorded: &Recorded, view: View<'_>) {
        self.print(&self.event_lines(recorded, view));
    }

    fn on_activity(&mut self, activity: &Activity) {
        self.print(&self.activity_lines(activity));
    }

    fn on_notice(&mut self, notice: &Notice) {
        self.print(&self.notice_lines(notice));
    }
}

fn said(text: &str) -> Vec<Line> {
    let indented = |line| format!("  {line}").trim_end().to_owned();
    let lines = text.trim().lines().map(indented);
    lines.map(|line| Text::new().with(Tone::Dim, line).into()).collect()
}
