//! Writes to standard error, with colors and the width of the terminal.
//!
//! Takes lines, never strings with escapes. A closed terminal or pipe is not an error.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use console::{Style, Term};

use crate::model::visible;

use super::UiOptions;
use super::keyboard::typed_lines;
use super::look::{Line, Look, TextLine};

/// How long the end of the process waits for a terminal that accepts nothing.
pub const LAST_WORDS: Duration = Duration::from_secs(2);

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

/// Whether to use colors. See <https://no-color.org> and <https://bixense.com/clicolors>.
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

/// An environment variable, as `colors` takes it.
pub fn env_var(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Rows and columns of the window; None in a log. Called each time, because windows change.
pub type WindowSize = Box<dyn Fn() -> Option<(usize, usize)> + Send>;
pub type TypedLines = Box<dyn Fn() -> Option<u64> + Send>;

pub struct Printer {
    out: Box<dyn Write + Send>,
    /// For a display that places its lines itself.
    pub(super) look: Look,
    window: WindowSize,
    /// Grows when a line was typed that nobody has read. None if the terminal does not echo it.
    pub(super) typed: TypedLines,
}

impl Printer {
    pub fn stderr(options: &UiOptions) -> Self {
        let is_terminal = options.terminal;
        let colors = colors(options.color, is_terminal, env_var);
        let look = Look { colors, columns: None, zone: options.clock.zone.clone() };
        let window = move || {
            let (rows, columns) = is_terminal.then(|| Term::stderr().size())?;
            Some((usize::from(rows), usize::from(columns)))
        };
        let out = Box::new(std::io::stderr());
        Self { out, look, window: Box::new(window), typed: Box::new(typed_lines) }
    }

    #[cfg(test)]
    pub fn to(out: Box<dyn Write + Send>, look: Look, window: WindowSize) -> Self {
        Self { out, look, window, typed: Box::new(|| None) }
    }

    #[cfg(test)]
    pub fn with_typed(self, typed: TypedLines) -> Self {
        Self { typed, ..self }
    }

    pub fn line(&mut self, line: &Line) {
        let rendered = self.render(line).join("\n");
        self.write(&format!("{rendered}\n"));
    }

    pub(super) fn render(&mut self, line: &Line) -> Vec<String> {
        self.size();
        self.look.render(line)
    }

    /// Rows and columns; 24 × 80 in a log.
    pub(super) fn size(&mut self) -> (usize, usize) {
        let size = (self.window)();
        self.look.columns = size.map(|(_, columns)| columns);
        size.unwrap_or((24, 80))
    }

    pub fn warning(&mut self, text: &str) {
        self.line(&TextLine::warning(text).into());
    }

    /// Shows an error with its hint. A blocked terminal delays the exit by at most `LAST_WORDS`.
    pub fn error(&mut self, message: &str) {
        let text = render_error(message, self.look.colors);
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

    /// At once, so that lines of other programs do not come in between.
    pub(super) fn write(&mut self, text: &str) {
        if !text.is_empty() {
            let _ = self.out.write_all(text.as_bytes());
            let _ = self.out.flush();
        }
    }
}

/// `error: …`, further lines indented, control characters visible.
fn render_error(message: &str, colors: bool) -> String {
    let label = console::style("error:").red().bold().force_styling(colors);
    let shown = visible(message.trim_end());
    let indented: Vec<&str> = shown.split('\n').collect();
    format!("{label} {}", indented.join("\n  "))
}

/// Colors a patch after making its control characters visible.
pub fn diff(patch: &[u8], colors: bool) -> String {
    let text = String::from_utf8_lossy(patch);
    let shown = visible(&text);
    let mut in_hunk = false;
    let mut painted = String::with_capacity(shown.len());
    for line in shown.split_inclusive('\n') {
        if line.starts_with("diff --git ") {
            in_hunk = false;
        } else if line.starts_with("@@ ") {
            in_hunk = true;
        }
        let (content, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let style = diff_style(content, in_hunk).force_styling(colors);
        // Writing to a String cannot fail.
        let _ = write!(painted, "{}{end}", style.apply_to(content));
    }
    painted
}

/// Within a hunk the first character decides; before it, every line is about the file.
fn diff_style(line: &str, in_hunk: bool) -> Style {
    let style = Style::new();
    match line.chars().next() {
        _ if !in_hunk => style.bold(),
        Some('@') => style.cyan(),
        Some('+') => style.green(),
        Some('-') => style.red(),
        _ => style,
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

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
    fn colors_follow_the_conventions() {
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
    fn the_flag_overrides_the_environment() {
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
        Printer::to(Box::new(Broken), look, Box::new(|| None)).line(&Line::Blank);
    }

    #[test]
    fn hints_are_indented_and_control_characters_are_visible() {
        let message = "no PRD.json\x1b[2J here\nrun `ralph init`\n";
        assert_eq!(
            render_error(message, false),
            "error: no PRD.json\\x1b[2J here\n  run `ralph init`"
        );
        assert_eq!(render_error("x", true), "\x1b[31m\x1b[1merror:\x1b[0m x");
    }

    const PATCH: &[u8] =
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n---\n+\x1b[2J\xff\n same\n";

    #[test]
    fn a_diff_is_colored_and_its_control_characters_are_visible() {
        let painted = diff(PATCH, true);
        assert!(painted.contains("\x1b[1m+++ b/x\x1b[0m\n"), "{painted:?}");
        assert!(painted.contains("\x1b[31m---\x1b[0m\n"), "{painted:?}");
        assert!(painted.contains("\x1b[32m+\\x1b[2J\u{fffd}\x1b[0m\n same\n"), "{painted:?}");
        assert!(!diff(PATCH, false).contains('\x1b'));
    }
}
