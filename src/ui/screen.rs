//! The terminal as the display sees it: lines that scroll by, and one block below them that is drawn
//! in place: the menu of an open question, or the moving line.

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

/// How often the moving line is drawn.
const TICK: Duration = Duration::from_millis(100);
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

pub struct Screen {
    printer: Printer,
    clock: Clock,
    /// Lines can be replaced in place. In a log they cannot.
    animated: bool,
    live: Option<LiveLine>,
    /// When the moving line is drawn again, on the steady clock.
    due: Duration,
    menu: Option<Menu>,
    open_questions: usize,
    /// Enter skips a wait.
    keys: bool,
    drawn: Drawn,
}

/// The block below the lines. It is wiped before anything else is written.
#[derive(Default)]
enum Drawn {
    #[default]
    Nothing,
    /// The cursor stays at its start. Otherwise an echo (a key, `^C`) or a narrower window would
    /// leave a copy behind.
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
            live: None,
            due: Duration::ZERO,
            menu: None,
            open_questions: 0,
            keys: false,
            drawn: Drawn::Nothing,
        }
    }

    /// The moving line lasts from the start of an attempt or a wait to the next fact.
    pub fn fact(&mut self, mut lines: Vec<Line>) {
        self.live = None;
        let is_moving = |line: &mut Line| self.animated && matches!(line, Line::Running { .. });
        let running = lines.extract_if(.., is_moving).next();
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
        self.live = Some(LiveLine { subject, since: (self.clock)().steady });
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

    /// Draws the moving line again when it is due. Says how long to wait until the next time.
    pub fn tick(&mut self) -> Option<Duration> {
        if self.live.is_none() || self.menu.is_some() {
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

    /// A narrower window has broken the lines again, so rows are counted by its present width.
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

    /// Writes it together with the block below, so that lines of other programs do not come between.
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
