//! What people see and how they answer, all of it on standard error.
//!
//! Owns the wording, the look and the menu. Must never decide anything about a
//! run, never fail one (what cannot be shown is dropped), and never let a text
//! from outside reach the terminal as it came.

mod conversation;
mod display;
mod ending;
mod figures;
mod guidance;
mod human;
mod keyboard;
mod layout;
mod live;
mod look;
mod menu;
mod notices;
mod printer;
mod screen;
#[cfg(test)]
mod tests;
mod wording;

use std::sync::Arc;
use std::time::Duration;

use crate::ports::{Clock, Reporter};

use display::Display;
use screen::Screen;

pub use figures::{cost, count, day_and_time, duration, short_commit, short_run, stories, to_go};
pub use human::{Confirmation, EDITS, GATES, TRUST, TerminalHuman};
pub use keyboard::terminal_name;
pub use layout::width;
pub use look::{Line, TextLine, Tone};

pub use printer::{ColorChoice, Printer, colors, diff, env_var, error, render_error};

/// How soon a withdrawn question, another window size or the end of a wait is noticed.
const GLANCE: Duration = Duration::from_millis(100);

/// How to show things, as the command line and the environment have it.
#[derive(Clone, Debug)]
pub struct UiOptions {
    pub color: ColorChoice,
    pub quiet: bool,
    pub verbose: bool,
    /// Standard error is a terminal.
    pub terminal: bool,
}

impl UiOptions {
    /// A line can be replaced in place.
    fn can_animate(&self) -> bool {
        self.terminal && !self.quiet && env_var("TERM").is_none_or(|term| term != "dumb")
    }
}

/// The display that fits the options. It is shown on a thread of its own until it is dropped.
pub fn reporter(options: &UiOptions, clock: &Clock) -> Box<dyn Reporter> {
    Box::new(start(options, clock))
}

/// A display, and the person in front of it. The display has to outlive the questions.
pub fn terminal(options: &UiOptions, clock: &Clock) -> (Box<dyn Reporter>, Arc<TerminalHuman>) {
    let display = start(options, clock);
    let human = Arc::new(TerminalHuman::new(display.queue()));
    (Box::new(display), human)
}

fn start(options: &UiOptions, clock: &Clock) -> Display {
    let printer = Printer::stderr(options.color, options.terminal);
    let screen = Screen::new(printer, options.can_animate(), Arc::clone(clock));
    Display::start(screen, options, Arc::clone(clock))
}
