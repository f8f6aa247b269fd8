//! What people see and how they answer, all of it on standard error.
//!
//! Owns the wording, the look and the menu. Must never decide anything about a
//! run, never fail one (what cannot be shown is dropped), and never let a text
//! from outside reach the terminal as it came.

mod amount;
mod anchor;
mod boxed;
mod choices;
mod confirm;
mod conversation;
mod countdown;
mod diff;
mod dirty;
mod display;
mod editor;
mod ending;
mod error;
mod figures;
mod flow;
mod guidance;
mod hurry;
mod keyboard;
mod keys;
mod line;
mod live;
mod look;
mod menu;
mod money;
mod notices;
mod permissions;
mod printer;
mod progress;
mod question;
mod region;
mod screen;
mod table;
#[cfg(test)]
mod tests;
mod trust;
mod tty;
mod wording;
mod wrap;

pub use diff::diff;
pub use error::{error, render_error};
pub use figures::{cost, count, day_and_time, duration, short_commit, short_run, stories, to_go};
pub use line::{Line, Text, Tone};
pub use menu::TerminalHuman;
pub use printer::{ColorChoice, Printer, colors, env_var};
pub use tty::name as terminal_name;
pub use wrap::width;

use crate::engine::ports::Reporter;

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
pub fn reporter(options: &UiOptions) -> Box<dyn Reporter> {
    let printer = Printer::stderr(options.color, options.terminal);
    let screen = screen::Screen::new(printer, options.can_animate());
    Box::new(display::Display::start(screen, options).share())
}
