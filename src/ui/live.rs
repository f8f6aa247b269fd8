//! The line that moves while an agent works, and while the run waits.
//!
//! indicatif ticks and draws; `Anchor` places what it draws.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use jiff::Timestamp;

use super::anchor::Anchor;
use super::countdown;
use super::figures::whole_seconds;
use super::line::Tone;
use super::look::{Look, one_line};
use super::wrap;
use crate::engine::ports::Wait;

const TICK: Duration = Duration::from_millis(100);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What the line is about.
#[derive(Clone)]
pub enum Subject {
    Agent {
        name: String,
        /// What is probably still to come.
        to_go: Option<String>,
        /// When it is not well.
        health: Option<&'static str>,
        doing: String,
    },
    Wait {
        wait: Wait,
        /// Enter ends it.
        keys: bool,
    },
}

/// `⠋ Running claude · 1m02s · Bash cargo test`, gone when dropped.
pub struct Spinner {
    bar: ProgressBar,
    subject: Arc<Mutex<Subject>>,
}

impl Spinner {
    pub fn start(subject: Subject, look: &Look) -> Self {
        let subject = Arc::new(Mutex::new(subject));
        let status = status(Arc::clone(&subject), look.clone());
        let style = ProgressStyle::with_template("{status}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner())
            .with_key("status", status);
        let target = ProgressDrawTarget::term_like(Box::new(Anchor::stderr()));
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.set_draw_target(target);
        bar.enable_steady_tick(TICK);
        Self { bar, subject }
    }

    /// The line is away while something else is written.
    pub fn stand_back<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    pub fn change(&self, change: impl FnOnce(&mut Subject)) {
        change(&mut self.subject.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Asks for the width at each tick: a line that wraps could not be replaced.
fn status(
    subject: Arc<Mutex<Subject>>,
    look: Look,
) -> impl Fn(&ProgressState, &mut dyn Write) + Clone + Send + Sync {
    let terminal = Term::stderr();
    move |state, out| {
        let columns = usize::from(terminal.size().1);
        let subject = subject.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ms = u64::try_from(state.elapsed().as_millis()).unwrap_or(u64::MAX);
        let text = text(&subject, &look, ms, Timestamp::now().as_millisecond());
        let _ = out.write_str(&line(&look, &text, ms, columns));
    }
}

fn text(subject: &Subject, look: &Look, elapsed_ms: u64, now: i64) -> String {
    match subject {
        Subject::Agent { name, to_go, health, doing } => {
            let mut text = format!("Running {name} · {}", whole_seconds(elapsed_ms / 1000));
            let parts = health.iter().copied().chain(to_go.as_deref()).chain([doing.as_str()]);
            for part in parts.filter(|part| !part.is_empty()) {
                text.push_str(" · ");
                text.push_str(part);
            }
            text
        }
        Subject::Wait { wait, keys } => countdown::text(wait, *keys, now, &look.zone),
    }
}

fn line(look: &Look, text: &str, elapsed_ms: u64, columns: usize) -> String {
    let frame = usize::try_from(elapsed_ms / 100).unwrap_or_default() % FRAMES.len();
    let spinner = look.paint(Tone::Question, FRAMES.get(frame).unwrap_or(&"·"));
    format!("{spinner} {}", wrap::cut(&one_line(text), columns.saturating_sub(3)))
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    fn draw(doing: &str, seconds: u64, columns: usize) -> String {
        foreseen(None, doing, seconds, columns)
    }

    fn foreseen(to_go: Option<&str>, doing: &str, seconds: u64, columns: usize) -> String {
        let look = Look { colors: false, columns: None, zone: TimeZone::UTC };
        let (name, to_go) = ("claude".into(), to_go.map(str::to_owned));
        let subject = Subject::Agent { name, to_go, health: None, doing: doing.into() };
        line(&look, &text(&subject, &look, seconds * 1000, 0), seconds * 1000, columns)
    }

    #[test]
    fn the_moving_line_says_what_and_how_long() {
        assert_eq!(draw("Bash cargo test", 62, 80), "⠋ Running claude · 1m02s · Bash cargo test");
        assert_eq!(draw("", 0, 80), "⠋ Running claude · 0s");
        assert_eq!(
            foreseen(Some("$1.20–$2.40 to go"), "Edit a.rs", 62, 80),
            "⠋ Running claude · 1m02s · $1.20–$2.40 to go · Edit a.rs"
        );
    }

    #[test]
    fn the_moving_line_never_fills_the_width() {
        for columns in [1, 5, 20, 80] {
            let drawn = draw(&"漢字 \x1b[2J".repeat(50), 5, columns);
            assert!(wrap::width(&drawn) < columns.max(4), "{drawn}");
            assert!(!drawn.contains('\x1b'));
        }
    }
}
