//! Wording, menus and the terminal: everything that people see on standard error, and how they
//! answer.
//!
//! Decides nothing about a run and never fails one: text that cannot be shown is dropped. Control
//! characters are made visible before any text reaches the terminal.

mod conversation;
mod display;
mod ending;
mod events;
mod figures;
mod gates;
mod human;
mod keyboard;
mod layout;
mod look;
mod menu;
mod notices;
mod printer;
mod repairs;
mod replaced;
mod screen;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::ports::{Clock, Reporter};

use display::Display;
use screen::Screen;

pub use figures::{
    count, counted, date_and_time, day_and_time, duration, short_commit, short_run, stories, to_go,
};
pub use human::{
    CHANGED_MEANWHILE, Confirmation, EDITS, GATES, GATES_MEANWHILE, RUNS_MEANWHILE, SETTINGS,
    TRUST, TerminalHuman, UNKNOWN_SETUP,
};
pub use keyboard::terminal_name;
pub use layout::{shown, table};
pub use look::{Line, TextLine, Tone};

pub use printer::{ColorChoice, Printer, colors, diff, env_var};

/// How soon a withdrawn question, another window size or the end of a wait is noticed.
const GLANCE: Duration = Duration::from_millis(100);

/// How to show things, from the command line and the environment.
#[derive(Clone)]
pub struct UiOptions {
    pub color: ColorChoice,
    pub quiet: bool,
    pub verbose: bool,
    /// Standard error is a terminal.
    pub terminal: bool,
    pub clock: Clock,
}

/// The display for these options. A thread draws it until it is dropped.
pub fn reporter(options: &UiOptions) -> Box<dyn Reporter> {
    Box::new(start(options))
}

/// A display and the human in front of it. The display must outlive the questions.
pub fn terminal(options: &UiOptions) -> (Box<dyn Reporter>, Arc<TerminalHuman>) {
    let display = start(options);
    let human = Arc::new(TerminalHuman::new(display.queue.clone()));
    (Box::new(display), human)
}

fn start(options: &UiOptions) -> Display {
    let printer = Printer::stderr(options);
    let is_dumb = env_var("TERM").is_some_and(|term| term == "dumb");
    let animated = options.terminal && !options.quiet && !is_dumb;
    let screen = Screen::new(printer, animated, options.clock.clone());
    Display::start(screen, options)
}
