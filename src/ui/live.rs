//! The line that moves while an agent works or the run waits.
//!
//! indicatif draws it onto a canvas; the screen places it below everything else.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use jiff::tz::TimeZone;

use crate::model::WaitFor;
use crate::ports::{Moment, Wait};

use super::figures::{clock, whole_seconds};
use super::layout::{self, one_line};
use super::look::{Look, Tone};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// `⠋ Running mock · 1m02s · Bash cargo test`.
pub struct LiveLine {
    pub subject: LiveSubject,
    /// On the steady clock.
    pub since: Duration,
}

/// What the line is about.
pub enum LiveSubject {
    Agent {
        name: String,
        /// The forecast.
        to_go: Option<String>,
        /// Unless it is healthy.
        health: Option<&'static str>,
        doing: String,
    },
    Wait {
        wait: Wait,
        /// Enter ends it.
        keys: bool,
    },
}

impl LiveLine {
    /// Never as wide as the terminal: a line that wraps could not be replaced.
    pub fn text(&self, look: &Look, now: Moment, columns: usize) -> String {
        let elapsed = now.steady.saturating_sub(self.since);
        let frame = usize::try_from(elapsed.as_millis() / 100).unwrap_or_default() % FRAMES.len();
        let spinner = look.paint(Tone::Question, FRAMES.get(frame).unwrap_or(&"·"));
        let text = match &self.subject {
            LiveSubject::Agent { name, to_go, health, doing } => {
                let running = format!("Running {name} · {}", whole_seconds(elapsed.as_secs()));
                let parts = health.iter().copied().chain(to_go.as_deref()).chain([doing.as_str()]);
                let parts = parts.filter(|part| !part.is_empty());
                std::iter::once(running.as_str()).chain(parts).collect::<Vec<_>>().join(" · ")
            }
            LiveSubject::Wait { wait, keys } => countdown(wait, *keys, now.wall, &look.zone),
        };
        let line =
            format!("{spinner} {}", layout::cut(&one_line(&text), columns.saturating_sub(3)));
        drawn(line, columns)
    }
}

/// The row that indicatif draws.
fn drawn(line: String, columns: usize) -> String {
    let columns = u16::try_from(columns).unwrap_or(u16::MAX);
    let canvas = Canvas { columns, drawn: Arc::default() };
    let target = ProgressDrawTarget::term_like(Box::new(canvas.clone()));
    let style = ProgressStyle::with_template("{msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::with_draw_target(None, target).with_style(style).with_message(line);
    bar.force_draw();
    canvas.with(std::mem::take)
}

/// What indicatif draws on. There is one row, so the cursor does not move.
#[derive(Clone, Debug)]
struct Canvas {
    columns: u16,
    drawn: Arc<Mutex<String>>,
}

impl Canvas {
    fn with<T>(&self, change: impl FnOnce(&mut String) -> T) -> T {
        change(&mut self.drawn.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TermLike for Canvas {
    fn width(&self) -> u16 {
        self.columns
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    /// Without the spaces that indicatif pads the row with.
    fn write_str(&self, text: &str) -> io::Result<()> {
        if !text.trim().is_empty() {
            self.with(|drawn| drawn.push_str(text));
        }
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.with(String::clear);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// `Usage limit: 4h12m left, until Tue 03:10 · press Enter to retry now`.
fn countdown(wait: &Wait, keys: bool, now: i64, zone: &TimeZone) -> String {
    let what = match wait.what {
        WaitFor::Limit => "Usage limit",
        WaitFor::Service => "Waiting for the service",
        WaitFor::Retry => "Retrying",
        WaitFor::CoolDown => "Cooling down",
        WaitFor::Budget => "Waiting for budget",
    };
    let ms = u64::try_from(wait.until.saturating_sub(now)).unwrap_or_default();
    let left = whole_seconds(ms.div_ceil(1000));
    let until = clock(wait.until, zone, "%a %H:%M");
    let hint = if keys { " · press Enter to retry now" } else { "" };
    format!("{what}: {left} left, until {until}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Thursday.
    const UNTIL: i64 = (3 * 3600 + 10 * 60) * 1000;

    fn draw(subject: LiveSubject, now: Moment, columns: usize) -> String {
        let look = Look { colors: false, columns: None, zone: TimeZone::UTC };
        LiveLine { subject, since: Duration::ZERO }.text(&look, now, columns)
    }

    fn agent(to_go: Option<&str>, health: Option<&'static str>, doing: &str) -> LiveSubject {
        let (name, to_go) = ("mock".to_owned(), to_go.map(str::to_owned));
        LiveSubject::Agent { name, to_go, health, doing: doing.to_owned() }
    }

    fn after(seconds: u64) -> Moment {
        Moment { wall: 0, steady: Duration::from_secs(seconds) }
    }

    #[test]
    fn a_running_agent() {
        let lines = [
            draw(agent(None, None, ""), after(0), 80),
            draw(agent(None, None, "Bash cargo test"), after(62), 80),
            draw(agent(Some("$1.20–$2.40 to go"), None, "Edit a.rs"), after(3_660), 80),
            draw(agent(Some("$1.20–$2.40 to go"), Some("stuck"), "Edit a.rs"), after(62), 80),
            draw(agent(Some("$1.20–$2.40 to go"), Some("stuck"), "Edit a.rs"), after(62), 40),
            draw(agent(None, None, "Bash echo \x1b[2J漢字"), after(62), 80),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r"
        ⠋ Running mock · 0s
        ⠋ Running mock · 1m02s · Bash cargo test
        ⠋ Running mock · 1h01m · $1.20–$2.40 to go · Edit a.rs
        ⠋ Running mock · 1m02s · stuck · $1.20–$2.40 to go · Edit a.rs
        ⠋ Running mock · 1m02s · stuck · $1.20…
        ⠋ Running mock · 1m02s · Bash echo \x1b[2J漢字
        ");
    }

    #[test]
    fn a_wait_that_counts_down() {
        let wait = |what, left_ms, keys, columns| {
            let wait = Wait { what, error: "e".into(), until: UNTIL };
            let now = Moment { wall: UNTIL - left_ms, steady: Duration::ZERO };
            draw(LiveSubject::Wait { wait, keys }, now, columns)
        };
        let lines = [
            wait(WaitFor::Limit, (4 * 60 + 12) * 60_000, true, 80),
            wait(WaitFor::Limit, 8 * 24 * 3_600_000, true, 80),
            wait(WaitFor::Limit, 61_001, false, 80),
            wait(WaitFor::Limit, 61_001, true, 40),
            wait(WaitFor::Service, 1, false, 80),
            wait(WaitFor::Retry, 0, true, 80),
            wait(WaitFor::CoolDown, -5_000, false, 80),
            wait(WaitFor::Budget, 3_600_000, true, 80),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r"
        ⠋ Usage limit: 4h12m left, until Thu 03:10 · press Enter to retry now
        ⠋ Usage limit: 192h00m left, until Thu 03:10 · press Enter to retry now
        ⠋ Usage limit: 1m02s left, until Thu 03:10
        ⠋ Usage limit: 1m02s left, until Thu 0…
        ⠋ Waiting for the service: 1s left, until Thu 03:10
        ⠋ Retrying: 0s left, until Thu 03:10 · press Enter to retry now
        ⠋ Cooling down: 0s left, until Thu 03:10
        ⠋ Waiting for budget: 1h00m left, until Thu 03:10 · press Enter to retry now
        ");
    }

    #[test]
    fn the_line_is_narrower_than_the_window() {
        for columns in [1, 5, 20, 80] {
            let drawn = draw(agent(None, None, &"漢字 \x1b[2J".repeat(50)), after(5), columns);
            assert!(layout::width(&drawn) < columns.max(4), "{drawn}");
        }
    }
}
