//! What shows the lines: one after the other, and one that moves while an agent works.

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, Sender};

use super::line::Line;
use super::live::Spinner;
use super::printer::Printer;

pub struct Screen {
    printer: Printer,
    /// A line can be replaced in place. In a log it cannot.
    animated: bool,
    spinner: Option<Spinner>,
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
        Self { printer, animated, spinner: None }
    }

    /// The moving line lives from an attempt's start to the next fact.
    pub fn fact(&mut self, mut lines: Vec<Line>) {
        self.spinner = None;
        let agent = if self.animated { take_running(&mut lines) } else { None };
        self.print(&lines);
        self.spinner = agent.map(|agent| Spinner::start(&agent, self.printer.look()));
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
        if let Some(spinner) = &self.spinner {
            spinner.doing(what);
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

fn take_running(lines: &mut Vec<Line>) -> Option<String> {
    let place = lines.iter().position(|line| matches!(line, Line::Running { .. }))?;
    match lines.remove(place) {
        Line::Running { agent, .. } => Some(agent),
        _ => None,
    }
}
