//! The one way to standard error: knows the colours and the width.
//!
//! Takes lines, never strings with escapes in them. A terminal or pipe that is
//! gone is no error: nobody is there to be told.

use std::io::Write;
use std::sync::mpsc::channel;
use std::thread;

use console::Term;
use jiff::tz::TimeZone;

use super::display::LAST_WORDS;
use super::line::{Line, Text, Tone};
use super::look::Look;

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

/// Whether to use colours. See <https://no-color.org> and <https://bixense.com/clicolors>.
pub fn colors(
    choice: ColorChoice,
    is_terminal: bool,
    env: impl Fn(&str) -> Option<String>,
) -> bool {
    let is = |name: &str, value: &str| env(name).is_some_and(|found| found == value);
    let is_set = |name: &str| env(name).is_some_and(|found| !found.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if is_set("NO_COLOR") || is("CLICOLOR", "0") => false,
        ColorChoice::Auto if is_set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") => true,
        ColorChoice::Auto => is_terminal && !is("TERM", "dumb"),
    }
}

/// The environment as `colors` wants it.
pub fn env_var(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

pub struct Printer {
    out: Box<dyn Write + Send>,
    look: Look,
    /// Asked for its width anew for each line, because windows change.
    terminal: Option<Term>,
}

impl Printer {
    pub fn stderr(color: ColorChoice, is_terminal: bool) -> Self {
        let look = Look {
            colors: colors(color, is_terminal, env_var),
            columns: None,
            zone: TimeZone::system(),
        };
        let terminal = is_terminal.then(Term::stderr);
        Self { out: Box::new(std::io::stderr()), look, terminal }
    }

    #[cfg(test)]
    pub fn to(out: Box<dyn Write + Send>, look: Look) -> Self {
        Self { out, look, terminal: None }
    }

    pub fn colors(&self) -> bool {
        self.look.colors
    }

    pub fn line(&mut self, line: &Line) {
        if let Some(terminal) = &self.terminal {
            self.look.columns = Some(usize::from(terminal.size().1));
        }
        let rendered = self.look.render(line).join("\n");
        self.rendered(&rendered);
    }

    pub fn rule(&mut self, title: &str) {
        self.line(&Line::Rule(title.to_owned()));
    }

    /// For a display that places its lines itself.
    pub(super) fn look(&self) -> &Look {
        &self.look
    }

    pub fn warning(&mut self, text: &str) {
        let label = Text::new().with(Tone::Warning, "warning: ");
        self.line(&label.plain(text).into());
    }

    /// As `rendered`, but a terminal that takes nothing does not keep the process.
    pub(super) fn last_words(&mut self, text: String) {
        let mut out = std::mem::replace(&mut self.out, Box::new(std::io::sink()));
        let (done, is_done) = channel();
        let write = move || {
            let _ = out.write_all(format!("{text}\n").as_bytes());
            let _ = out.flush();
            let _ = done.send(out);
        };
        let _ = thread::Builder::new().spawn(write);
        if let Ok(out) = is_done.recv_timeout(LAST_WORDS) {
            self.out = out;
        }
    }

    /// One write per fact, so that lines of other programs do not come in between.
    pub(super) fn rendered(&mut self, text: &str) {
        let _ = self.out.write_all(format!("{text}\n").as_bytes());
        let _ = self.out.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(is_terminal: bool, vars: &[(&str, &str)]) -> bool {
        decide(ColorChoice::Auto, is_terminal, vars)
    }

    fn decide(choice: ColorChoice, is_terminal: bool, vars: &[(&str, &str)]) -> bool {
        colors(choice, is_terminal, |name| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn colours_follow_the_conventions() {
        for (is_terminal, vars, on) in [
            (true, vec![], true),
            (false, vec![], false),
            (true, vec![("NO_COLOR", "1")], false),
            (true, vec![("NO_COLOR", "")], true),
            (true, vec![("CLICOLOR", "0")], false),
            (true, vec![("CLICOLOR", "1")], true),
            (false, vec![("CLICOLOR_FORCE", "1")], true),
            (false, vec![("CLICOLOR_FORCE", "0")], false),
            (false, vec![("CLICOLOR_FORCE", "")], false),
            (true, vec![("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
            (true, vec![("TERM", "dumb")], false),
            (true, vec![("TERM", "dumb"), ("CLICOLOR_FORCE", "1")], true),
            (true, vec![("TERM", "xterm-256color")], true),
        ] {
            assert_eq!(auto(is_terminal, &vars), on, "{is_terminal} {vars:?}");
        }
    }

    #[test]
    fn the_command_line_decides_over_the_environment() {
        assert!(decide(ColorChoice::Always, false, &[("NO_COLOR", "1"), ("TERM", "dumb")]));
        assert!(!decide(ColorChoice::Never, true, &[("CLICOLOR_FORCE", "1")]));
    }

    #[test]
    fn a_broken_pipe_is_ignored() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
        }
        let look = Look { colors: false, columns: None, zone: TimeZone::UTC };
        Printer::to(Box::new(Broken), look).line(&Line::Blank);
    }
}
