//! The terminal: lines that scroll, and one block below them that is drawn in place: the menu of an
//! open question, or the live lines, which are shown while agents run or the run waits.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use console::strip_ansi_codes;
use indicatif::ProgressStyle;
use jiff::tz::TimeZone;

use crate::model::{Wait, WaitFor, visible_line};
use crate::ports::Clock;

use super::figures::{clock, whole_seconds};
use super::layout::{self, one_line};
use super::look::{Line, LiveAgent, Look, Tone, of_story};
use super::menu::{Menu, MenuBody};
use super::printer::Printer;

/// How often the live lines are drawn.
const TICK: Duration = Duration::from_millis(100);
/// The last one is for a spinner that has stopped, which this one never does.
const SPINNER: &str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

pub struct Screen {
    printer: Printer,
    clock: Clock,
    /// Lines can be replaced in place. In a log they cannot.
    animated: bool,
    /// By attempt: its agent or its gates, and since when on the steady clock.
    live: BTreeMap<String, (LiveAgent, Duration)>,
    wait: Option<(Wait, Duration)>,
    /// When the live lines are drawn again, on the steady clock.
    due: Duration,
    menu: Option<Menu>,
    open_questions: usize,
    /// Enter skips a wait.
    keys: bool,
    /// A line was read: its Enter moved the cursor below the live line.
    is_below: bool,
    /// The lines that were typed and not read, at the last look.
    typed: Option<u64>,
    drawn: Drawn,
}

/// The block below the lines. It is wiped before anything else is written.
#[derive(Default)]
enum Drawn {
    #[default]
    Nothing,
    /// The cursor stays at the start of the line. Otherwise an echo (a key, `^C`) or a narrower
    /// window would leave a copy behind. An Enter moves it down; see `Screen::wipe`.
    Live,
    /// The cursor stays at the end of the last line.
    Menu(Vec<String>),
}

impl Screen {
    pub fn new(printer: Printer, animated: bool, clock: Clock) -> Self {
        Self {
            printer,
            clock,
            animated,
            live: BTreeMap::new(),
            wait: None,
            due: Duration::ZERO,
            menu: None,
            open_questions: 0,
            keys: false,
            is_below: false,
            typed: None,
            drawn: Drawn::Nothing,
        }
    }

    /// Ends a wait, and the live lines of all attempts but those that still run.
    pub fn fact(&mut self, lines: Vec<Line>, running: &BTreeSet<String>) {
        self.wait = None;
        self.live.retain(|attempt, _| running.contains(attempt));
        self.start(lines);
    }

    /// A line about something that runs moves from here on, in place of its attempt's last one.
    pub fn start(&mut self, mut lines: Vec<Line>) {
        let is_moving = |line: &mut Line| self.animated && matches!(line, Line::Running { .. });
        for moving in lines.extract_if(.., is_moving) {
            let Line::Running { attempt, agent, .. } = moving else { continue };
            self.live.insert(attempt, (agent, self.clock.now().steady));
        }
        self.print(&lines);
    }

    pub fn wait(&mut self, wait: Wait) {
        if self.animated {
            self.wait = Some((wait, self.clock.now().steady));
            self.print(&[]);
        }
    }

    /// Above an open menu.
    pub fn print(&mut self, lines: &[Line]) {
        let mut out = self.wipe();
        self.render(lines, &mut out);
        self.draw(out);
    }

    pub fn doing(&mut self, attempt: &str, what: &str) {
        if let Some((agent, _)) = self.live.get_mut(attempt) {
            agent.doing = visible_line(what);
        }
    }

    pub fn health(&mut self, attempt: &str, now: Option<&'static str>) {
        if let Some((agent, _)) = self.live.get_mut(attempt) {
            agent.health = now;
        }
    }

    pub fn keys_are_read(&mut self, are_read: bool) {
        self.keys = are_read;
    }

    /// A line was read. If the terminal echoed it, the live lines begin above the cursor.
    pub fn line_was_typed(&mut self) {
        self.is_below = (self.printer.typed)().is_some();
        self.print(&[]);
    }

    /// Draws the live lines again when they are due. Says how long to wait until the next time.
    pub fn tick(&mut self) -> Option<Duration> {
        if (self.live.is_empty() && self.wait.is_none()) || self.menu.is_some() {
            return None;
        }
        let now = self.clock.now().steady;
        if self.due <= now {
            self.print(&[]);
            self.due = now + TICK;
        }
        Some(self.due.saturating_sub(now))
    }

    pub fn open_menu(&mut self, menu: Menu) {
        self.menu = Some(menu);
        self.print(&[]);
    }

    pub fn change_menu(&mut self, body: MenuBody) {
        if let Some(menu) = &mut self.menu {
            menu.body = body;
            self.print(&[]);
        }
    }

    pub fn count_questions(&mut self, open: usize) {
        self.open_questions = open;
        if self.menu.is_some() {
            self.print(&[]);
        }
    }

    /// The question stays on the terminal, with the outcome below it.
    pub fn close_menu(&mut self, outcome: &[Line]) {
        let Some(menu) = self.menu.take() else { return };
        let mut out = self.wipe();
        if !menu.is_printed {
            self.render(&menu.question(0), &mut out);
        }
        self.render(outcome, &mut out);
        out.push_str(SHOW_CURSOR);
        self.draw(out);
    }

    /// Gives the terminal to another program until `released` is closed.
    pub fn hold(&mut self, held: &Sender<()>, released: &Receiver<Infallible>) {
        let mut out = self.wipe();
        if self.menu.is_some() {
            out.push_str(SHOW_CURSOR);
        }
        self.printer.write(&out);
        let _ = held.send(());
        let _ = released.recv();
        self.print(&[]);
    }

    fn render(&mut self, lines: &[Line], out: &mut String) {
        for row in lines.iter().flat_map(|line| self.printer.render(line)) {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{row}");
        }
    }

    /// A resized window wraps lines differently, so rows are counted with its current width.
    /// If a line was typed, the cursor is at least one row below the live line.
    fn wipe(&mut self) -> String {
        let typed = (self.printer.typed)();
        let before = std::mem::replace(&mut self.typed, typed);
        let is_seen = !self.keys && typed.zip(before).is_some_and(|(now, before)| now > before);
        let is_below = std::mem::take(&mut self.is_below) || is_seen;
        match std::mem::take(&mut self.drawn) {
            Drawn::Nothing => String::new(),
            Drawn::Live => format!("{}\r\x1b[J", if is_below { "\x1b[A" } else { "" }),
            Drawn::Menu(lines) => {
                let (_, columns) = self.printer.size();
                let rows = |line: &String| layout::broken(&strip_ansi_codes(line), columns).len();
                let above = lines.iter().map(rows).sum::<usize>().saturating_sub(1);
                let up = if above > 0 { format!("\x1b[{above}A") } else { String::new() };
                format!("\r{up}\x1b[J")
            }
        }
    }

    /// Writes it together with the block below, so that lines of other programs do not come between.
    fn draw(&mut self, mut out: String) {
        let (rows, columns) = self.printer.size();
        let (room, has_lines) = (rows.saturating_sub(1), out.contains('\n'));
        if let Some(mut menu) = self.menu.take() {
            let lines = menu.whole(&self.printer.look, self.open_questions);
            let lines = if lines.len() <= room {
                lines
            } else {
                if !std::mem::replace(&mut menu.is_printed, true) {
                    self.render(&menu.question(0), &mut out);
                }
                menu.short(&self.printer.look, room, self.open_questions)
            };
            out.push_str(if menu.is_typing() { SHOW_CURSOR } else { HIDE_CURSOR });
            out.push_str(&lines.join("\n"));
            self.drawn = Drawn::Menu(lines);
            self.menu = Some(menu);
        } else {
            out.push_str(&self.moving(rows, columns));
        }
        self.printer.write(&out);
        if has_lines {
            // An Enter of this moment may have come before them, and must not wipe the last one.
            self.typed = (self.printer.typed)();
        }
    }

    /// At most a third of the window, so that what scrolls by can be read.
    fn moving(&mut self, rows: usize, columns: usize) -> String {
        let (look, now) = (&self.printer.look, self.clock.now());
        let elapsed = |since: &Duration| now.steady.saturating_sub(*since);
        let agents = self.live.values();
        let several = self.live.len() > 1;
        let agents = agents.map(|(agent, since)| (since, running(agent, elapsed(since), several)));
        let countdown = |wait| countdown(wait, self.keys, now.wall, &look.zone);
        let wait = self.wait.iter().map(|(wait, since)| (since, countdown(wait)));
        let lines = agents.chain(wait).take((rows / 3).max(1));
        let lines = lines.map(|(since, text)| live_line(look, elapsed(since), &text, columns));
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() {
            return String::new();
        }
        self.drawn = Drawn::Live;
        let up = match lines.len() {
            1 => String::new(),
            count => format!("\x1b[{}A", count - 1),
        };
        format!("{}{up}\r", lines.join("\n"))
    }
}

/// Always narrower than the terminal: a line that wraps cannot be replaced.
fn live_line(look: &Look, elapsed: Duration, text: &str, columns: usize) -> String {
    let style = ProgressStyle::default_spinner().tick_chars(SPINNER);
    let tick = elapsed.as_millis() / TICK.as_millis();
    let spinner = style.get_tick_str(u64::try_from(tick).unwrap_or_default());
    let text = layout::cut(&one_line(text), columns.saturating_sub(3));
    format!("{} {text}", look.paint(Tone::Question, spinner))
}

/// `Running mock · 1m02s · Bash cargo test`, after the story if there are several.
fn running(agent: &LiveAgent, elapsed: Duration, several: bool) -> String {
    let time = whole_seconds(elapsed.as_secs());
    let story = of_story(agent.story.as_ref().filter(|_| several));
    let start = format!("{story}Running {} · {time}", visible_line(&agent.name));
    let parts = [Some(start.as_str()), agent.health, agent.to_go.as_deref(), Some(&agent.doing)];
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" · ")
}

/// `Usage limit: 4h12m left, until Tue 03:10 · press Enter to skip the wait`.
fn countdown(wait: &Wait, keys: bool, now: i64, zone: &TimeZone) -> String {
    let what = match wait.what {
        WaitFor::Limit => "Usage limit",
        WaitFor::Service => "Waiting for the service",
        WaitFor::Retry => "Waiting to retry",
        WaitFor::CoolDown => "Cooling down",
        WaitFor::Budget => "Saving budget",
    };
    let ms = u64::try_from(wait.until.saturating_sub(now)).unwrap_or_default();
    let left = whole_seconds(ms.div_ceil(1000));
    let until = clock(wait.until, zone, "%a %H:%M");
    let hint = if keys { " · press Enter to skip the wait" } else { "" };
    format!("{what}: {left} left, until {until}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Thursday.
    const UNTIL: i64 = (3 * 3600 + 10 * 60) * 1000;

    fn look() -> Look {
        Look { colors: false, columns: None, zone: TimeZone::UTC }
    }

    fn draw(agent: &LiveAgent, seconds: u64, columns: usize) -> String {
        let elapsed = Duration::from_secs(seconds);
        live_line(&look(), elapsed, &running(agent, elapsed, false), columns)
    }

    fn agent(to_go: Option<&str>, health: Option<&'static str>, doing: &str) -> LiveAgent {
        let (name, to_go) = ("mock".to_owned(), to_go.map(str::to_owned));
        LiveAgent { story: None, name, to_go, health, doing: doing.to_owned() }
    }

    #[test]
    fn a_running_agent() {
        let lines = [
            draw(&agent(None, None, ""), 0, 80),
            draw(&agent(None, None, "Bash cargo test"), 62, 80),
            draw(&agent(Some("$1.20–$2.40 to go"), None, "Edit a.rs"), 3_660, 80),
            draw(&agent(Some("$1.20–$2.40 to go"), Some("stuck"), "Edit a.rs"), 62, 80),
            draw(&agent(Some("$1.20–$2.40 to go"), Some("stuck"), "Edit a.rs"), 62, 40),
            draw(&agent(None, None, "Bash echo \x1b[2J漢字"), 62, 80),
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
            let text = countdown(&wait, keys, UNTIL - left_ms, &TimeZone::UTC);
            live_line(&look(), Duration::ZERO, &text, columns)
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
        ⠋ Usage limit: 4h12m left, until Thu 03:10 · press Enter to skip the wait
        ⠋ Usage limit: 192h00m left, until Thu 03:10 · press Enter to skip the wait
        ⠋ Usage limit: 1m02s left, until Thu 03:10
        ⠋ Usage limit: 1m02s left, until Thu 0…
        ⠋ Waiting for the service: 1s left, until Thu 03:10
        ⠋ Waiting to retry: 0s left, until Thu 03:10 · press Enter to skip the wait
        ⠋ Cooling down: 0s left, until Thu 03:10
        ⠋ Saving budget: 1h00m left, until Thu 03:10 · press Enter to skip the wait
        ");
    }

    #[test]
    fn the_line_is_narrower_than_the_window() {
        for columns in [1, 5, 20, 80] {
            let drawn = draw(&agent(None, None, &"漢字 \x1b[2J".repeat(50)), 5, columns);
            assert!(layout::width(&drawn) < columns.max(4), "{drawn}");
        }
    }
}
