//! The terminal as the display sees it: lines that scroll by, and below them what is drawn in place,
//! which is the menu of an open question or one line that moves.

use std::convert::Infallible;
use std::fmt::Write;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use console::strip_ansi_codes;

use crate::model::visible_line;
use crate::ports::{Clock, Wait};

use super::layout;
use super::live::{LiveLine, LiveSubject};
use super::look::Line;
use super::menu::{Menu, MenuBody};
use super::printer::Printer;

/// How often the moving line moves.
const TICK: Duration = Duration::from_millis(100);
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

pub struct Screen {
    printer: Printer,
    clock: Clock,
    /// A line can be replaced in place. In a log it cannot.
    animated: bool,
    live: Option<LiveLine>,
    /// When the moving line is drawn again, on the steady clock.
    due: Duration,
    menu: Option<Menu>,
    open_questions: usize,
    /// Enter ends a wait.
    keys: bool,
    drawn: Drawn,
}

/// What stands below the lines, and is wiped before anything else is written.
#[derive(Default)]
enum Drawn {
    #[default]
    Nothing,
    /// The cursor waits at its start. What the terminal echoes there (a key, `^C`) and a window
    /// that gets narrower would otherwise leave a dead copy behind.
    Live,
    /// The cursor waits at the end of the last line.
    Menu(Vec<String>),
}

impl Screen {
    pub fn new(printer: Printer, animated: bool, clock: Clock) -> Self {
        Self {
            printer,
            clock,
            animated,
            live: None,
            due: Duration::ZERO,
            menu: None,
            open_questions: 0,
            keys: false,
            drawn: Drawn::Nothing,
        }
    }

    /// The moving line lives from an attempt's start, or a wait's, to the next fact.
    pub fn fact(&mut self, mut lines: Vec<Line>) {
        self.live = None;
        let running = if self.animated { take_running(&mut lines) } else { None };
        if let Some(Line::Running { agent, to_go, health, .. }) = running {
            let (name, doing) = (visible_line(&agent), String::new());
            self.move_line(LiveSubject::Agent { name, to_go, health, doing });
        }
        self.print(&lines);
    }

    pub fn wait(&mut self, wait: Wait) {
        if self.animated {
            self.move_line(LiveSubject::Wait { wait, keys: self.keys });
            self.print(&[]);
        }
    }

    fn move_line(&mut self, subject: LiveSubject) {
        self.live = Some(LiveLine::new(subject, (self.clock)().steady));
    }

    /// Above an open menu.
    pub fn print(&mut self, lines: &[Line]) {
        let mut out = self.wipe();
        self.render(lines, &mut out);
        self.draw(out);
    }

    pub fn doing(&mut self, what: &str) {
        if let Some(LiveLine { subject: LiveSubject::Agent { doing, .. }, .. }) = &mut self.live {
            *doing = visible_line(what);
        }
    }

    pub fn health(&mut self, now: Option<&'static str>) {
        if let Some(LiveLine { subject: LiveSubject::Agent { health, .. }, .. }) = &mut self.live {
            *health = now;
        }
    }

    pub fn keys_are_read(&mut self, are_read: bool) {
        self.keys = are_read;
        if let Some(LiveLine { subject: LiveSubject::Wait { keys, .. }, .. }) = &mut self.live {
            *keys = are_read;
        }
    }

    /// Something moves and must be drawn again soon.
    fn moves(&self) -> bool {
        self.live.is_some() && self.menu.is_none()
    }

    /// Draws the moving line again when it is due. Says how long to wait until the next time.
    pub fn tick(&mut self) -> Option<Duration> {
        if !self.moves() {
            return None;
        }
        let now = (self.clock)().steady;
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

    /// The question stays where it was asked, and what came of it below.
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

    /// A window that got narrower has broken the lines anew, so rows are counted by its width now.
    fn wipe(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            Drawn::Nothing => String::new(),
            Drawn::Live => "\r\x1b[J".to_owned(),
            Drawn::Menu(lines) => {
                let (_, columns) = self.printer.size();
                let rows = |line: &String| layout::broken(&strip_ansi_codes(line), columns).len();
                let above = lines.iter().map(rows).sum::<usize>().saturating_sub(1);
                let up = if above > 0 { format!("\x1b[{above}A") } else { String::new() };
                format!("\r{up}\x1b[J")
            }
        }
    }

    /// Writes it, and what stands below it, at once: lines of other programs stay out.
    fn draw(&mut self, mut out: String) {
        let (rows, columns) = self.printer.size();
        let room = rows.saturating_sub(1);
        if let Some(mut menu) = self.menu.take() {
            let lines = menu.whole(self.printer.look(), self.open_questions);
            let lines = if lines.len() <= room {
                lines
            } else {
                if !std::mem::replace(&mut menu.is_printed, true) {
                    self.render(&menu.question(0), &mut out);
                }
                menu.short(self.printer.look(), room, self.open_questions)
            };
            out.push_str(if menu.is_typing() { SHOW_CURSOR } else { HIDE_CURSOR });
            out.push_str(&lines.join("\n"));
            self.drawn = Drawn::Menu(lines);
            self.menu = Some(menu);
        } else if let Some(live) = &self.live {
            let _ = write!(out, "{}\r", live.text(self.printer.look(), (self.clock)(), columns));
            self.drawn = Drawn::Live;
        }
        self.printer.write(&out);
    }
}

fn take_running(lines: &mut Vec<Line>) -> Option<Line> {
    let place = lines.iter().position(|line| matches!(line, Line::Running { .. }))?;
    Some(lines.remove(place))
}
