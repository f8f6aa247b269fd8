//! What shows the lines: one after the other, and one that moves while an agent works or the run
//! waits.

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, Sender};

use super::line::Line;
use super::live::{Spinner, Subject};
use super::printer::Printer;
use crate::core::text::visible_line;
use crate::engine::ports::Wait;

pub struct Screen {
    printer: Printer,
    /// A line can be replaced in place. In a log it cannot.
    animated: bool,
    spinner: Option<Spinner>,
    /// Somebody reads keys during a wait.
    keys: bool,
}

/// Somebody else wants to write to the terminal.
pub struct Hold {
    /// Told when all that came before is on the terminal.
    pub held: Sender<()>,
    /// Closed when the terminal is free again.
    pub released: Receiver<Infallible>,
}

impl Screen {
    pub fn new(printer: Printer, animated: bool) -> Self {
        Self { printer, animated, spinner: None, keys: false }
    }

    /// The moving line lives from an attempt's start, or a wait's, to the next fact.
    pub fn fact(&mut self, mut lines: Vec<Line>) {
        self.spinner = None;
        let running = if self.animated { take_running(&mut lines) } else { None };
        self.print(&lines);
        if let Some(Line::Running { agent, to_go, health, .. }) = running {
            let (name, doing) = (visible_line(&agent), String::new());
            self.show(Subject::Agent { name, to_go, health, doing });
        }
    }

    pub fn wait(&mut self, wait: Wait) {
        if self.animated {
            self.show(Subject::Wait { wait, keys: self.keys });
        }
    }

    fn show(&mut self, subject: Subject) {
        self.spinner = Some(Spinner::start(subject, self.printer.look()));
    }

    pub fn print(&mut self, lines: &[Line]) {
        let printer = &mut self.printer;
        let mut print = || lines.iter().for_each(|line| printer.line(line));
        match &self.spinner {
            Some(spinner) if !lines.is_empty() => spinner.stand_back(print),
            _ => print(),
        }
    }

    pub fn doing(&self, what: &str) {
        self.change(|subject| {
            if let Subject::Agent { doing, .. } = subject {
                *doing = visible_line(what);
            }
        });
    }

    pub fn health(&self, now: Option<&'static str>) {
        self.change(|subject| {
            if let Subject::Agent { health, .. } = subject {
                *health = now;
            }
        });
    }

    pub fn keys_are_read(&mut self, are_read: bool) {
        self.keys = are_read;
        self.change(|subject| {
            if let Subject::Wait { keys, .. } = subject {
                *keys = are_read;
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Subject)) {
        if let Some(spinner) = &self.spinner {
            spinner.change(change);
        }
    }

    /// Nothing moves until the terminal is given back.
    pub fn hold(&self, hold: &Hold) {
        let wait = || {
            let _ = hold.held.send(());
            let _ = hold.released.recv();
        };
        match &self.spinner {
            Some(spinner) => spinner.stand_back(wait),
            None => wait(),
        }
    }
}

fn take_running(lines: &mut Vec<Line>) -> Option<Line> {
    let place = lines.iter().position(|line| matches!(line, Line::Running { .. }))?;
    Some(lines.remove(place))
}
