//! The line that moves while an agent works.
//!
//! indicatif ticks and draws; `Anchor` places what it draws.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::anchor::Anchor;
use super::figures::duration;
use super::line::Tone;
use super::look::{Look, one_line};
use super::wrap;
use crate::core::text::visible_line;

const TICK: Duration = Duration::from_millis(100);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// `⠋ Running claude · 1m02s · Bash cargo test`, gone when dropped.
pub struct Spinner {
    bar: ProgressBar,
    doing: Arc<Mutex<String>>,
}

impl Spinner {
    pub fn start(agent: &str, look: &Look) -> Self {
        let doing = Arc::new(Mutex::new(String::new()));
        let status = status(visible_line(agent), doing.clone(), look.clone());
        let style = ProgressStyle::with_template("{status}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner())
            .with_key("status", status);
        let target = ProgressDrawTarget::term_like(Box::new(Anchor::stderr()));
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.set_draw_target(target);
        bar.enable_steady_tick(TICK);
        Self { bar, doing }
    }

    /// The line is away while something else is written.
    pub fn stand_back<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    pub fn doing(&self, what: &str) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = visible_line(what);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Asks for the width at each tick: a line that wraps could not be replaced.
fn status(
    agent: String,
    doing: Arc<Mutex<String>>,
    look: Look,
) -> impl Fn(&ProgressState, &mut dyn Write) + Clone + Send + Sync {
    let terminal = Term::stderr();
    move |state, out| {
        let columns = usize::from(terminal.size().1);
        let doing = doing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let _ = out.write_str(&line(&look, &agent, &doing, state.elapsed(), columns));
    }
}

fn line(look: &Look, agent: &str, doing: &str, elapsed: Duration, columns: usize) -> String {
    let ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let frame = usize::try_from(ms / 100).unwrap_or_default() % FRAMES.len();
    let spinner = look.paint(Tone::Question, FRAMES.get(frame).unwrap_or(&"·"));
    let elapsed = duration(ms / 1000 * 1000).replace("0.0s", "0s");
    let separator = if doing.is_empty() { "" } else { " · " };
    let text = one_line(&format!("Running {agent} · {elapsed}{separator}{doing}"));
    format!("{spinner} {}", wrap::cut(&text, columns.saturating_sub(3)))
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    fn draw(doing: &str, seconds: u64, columns: usize) -> String {
        let look = Look { colors: false, columns: None, zone: TimeZone::UTC };
        line(&look, "claude", doing, Duration::from_secs(seconds), columns)
    }

    #[test]
    fn the_moving_line_says_what_and_how_long() {
        assert_eq!(draw("Bash cargo test", 62, 80), "⠋ Running claude · 1m02s · Bash cargo test");
        assert_eq!(draw("", 0, 80), "⠋ Running claude · 0s");
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
