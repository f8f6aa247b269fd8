//! The loop's end of the display. The words are made here, on the loop's side, and shown on a
//! thread of their own.
//!
//! A terminal that takes nothing (Ctrl-S, a reader that stands still) keeps that thread waiting
//! and nobody else: time-outs and signals go on.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::model::{Event, Health, NudgedBy, Recorded, StuckEvent, WaitFor};
use crate::ports::{Activity, Asked, Clock, Doing, Notice, Reporter, View, Wait};

use super::look::{Line, Text, Tone};
use super::menu::{Menu, MenuBody};
use super::printer::LAST_WORDS;
use super::screen::{HoldRequest, Screen};
use super::{UiOptions, notices, wording};

/// How much of an agent's activity may wait, in bytes. Facts and notices are few: they always may.
const ROOM: usize = 4 << 20;
/// How soon a withdrawn question is noticed.
const GLANCE: Duration = Duration::from_millis(100);

enum DisplayMessage {
    Fact(Vec<Line>),
    Notice(Vec<Line>),
    Doing(String),
    Health(Option<&'static str>),
    Said { lines: Vec<Line>, size: usize },
    Wait(Wait),
    KeysAreRead(bool),
    OpenMenu(Box<Menu>),
    ChangeMenu(MenuBody),
    CloseMenu(Vec<Line>),
    OpenQuestions(usize),
    Hold(HoldRequest),
    End,
}

pub struct Display {
    amount: Amount,
    queue: DisplayQueue,
    /// Bytes of activity that wait.
    waiting: Arc<AtomicUsize>,
    /// Something the agent said did not fit.
    left_out: bool,
    /// The end of the wait that was told.
    told_wait: Option<i64>,
    /// The moving line counts down.
    counting: bool,
    /// Closed when the thread has ended.
    over: Receiver<Infallible>,
}

impl Display {
    pub fn start(screen: Screen, options: &UiOptions, clock: Clock) -> Self {
        let (sender, messages) = channel();
        let (alive, over) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&waiting);
        let work = move || {
            show(screen, &messages, &counted);
            drop(alive);
        };
        // Without a thread nothing can be shown; the run goes on all the same.
        let _ = thread::Builder::new().name("display".to_owned()).spawn(work);
        Self {
            amount: Amount::new(options),
            queue: DisplayQueue { sender, clock },
            waiting,
            left_out: false,
            told_wait: None,
            counting: false,
            over,
        }
    }

    /// For menus, which share the terminal with this display.
    pub fn queue(&self) -> DisplayQueue {
        self.queue.clone()
    }

    fn fact(&mut self, lines: Vec<Line>) {
        self.counting = false;
        self.queue.send(DisplayMessage::Fact(lines));
    }

    fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < ROOM
    }

    fn said(&mut self, text: &str) {
        let mut lines = self.amount.said(text);
        if lines.is_empty() {
            return;
        }
        if !self.has_room() {
            self.left_out = true;
            return;
        }
        if std::mem::take(&mut self.left_out) {
            let gap = "  (text left out here: it came faster than it could be shown)";
            lines.insert(0, Text::new().with(Tone::Dim, gap).into());
        }
        self.waiting.fetch_add(text.len(), Ordering::Relaxed);
        self.queue.send(DisplayMessage::Said { lines, size: text.len() });
    }

    fn doing(&self, what: &str) {
        if self.has_room() {
            self.waiting.fetch_add(what.len(), Ordering::Relaxed);
            self.queue.send(DisplayMessage::Doing(what.to_owned()));
        }
    }
}

impl Reporter for Display {
    fn on_event(&mut self, recorded: &Recorded, view: View<'_>) {
        let lines = self.amount.event(recorded, view);
        if let Some(health) = health_of_agent(&recorded.event) {
            // The agent goes on, and so does the moving line.
            self.queue.send(DisplayMessage::Notice(lines));
            return self.queue.send(DisplayMessage::Health(health));
        }
        // Sent even without words: each fact ends the moving line.
        self.fact(lines);
    }

    fn on_activity(&mut self, activity: &Activity) {
        match &activity.doing {
            Doing::Step(what) => self.doing(what),
            Doing::Said(text) => self.said(text),
            Doing::Checking { at, gate } => {
                let running =
                    Line::Running { at: *at, agent: gate.clone(), to_go: None, health: None };
                self.fact(self.amount.checking(running));
            }
        }
    }

    /// One line per wait, and a countdown that comes back when a fact ended it.
    fn on_wait(&mut self, wait: &Wait) {
        // What failed was just told, and so was the pause.
        let is_news = matches!(wait.what, WaitFor::Limit | WaitFor::Service | WaitFor::Budget);
        if is_news && self.told_wait.replace(wait.until) != Some(wait.until) {
            self.queue.send(DisplayMessage::Notice(vec![Line::Waiting(wait.clone())]));
        }
        if !std::mem::replace(&mut self.counting, true) {
            self.queue.send(DisplayMessage::Wait(wait.clone()));
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        self.queue.send(DisplayMessage::Notice(self.amount.notice(notice)));
    }
}

impl Drop for Display {
    /// Everything is shown, if the terminal takes it in time.
    fn drop(&mut self) {
        self.queue.send(DisplayMessage::End);
        let _ = self.over.recv_timeout(LAST_WORDS);
    }
}

/// What is said about an agent at work.
fn health_of_agent(event: &Event) -> Option<Option<&'static str>> {
    match event {
        Event::Nudged { by: NudgedBy::Driver, .. }
        | Event::Stuck { step: StuckEvent::Asked { .. } | StuckEvent::Ended { .. }, .. } => {
            Some(Some(Health::Stuck.word()))
        }
        Event::Nudged { .. } | Event::Stuck { .. } => Some(None),
        _ => None,
    }
}

fn show(mut screen: Screen, messages: &Receiver<DisplayMessage>, waiting: &AtomicUsize) {
    loop {
        let message = match screen.tick() {
            Some(wait) => match messages.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => continue,
                message => message.ok(),
            },
            None => messages.recv().ok(),
        };
        match message {
            Some(DisplayMessage::Doing(what)) => {
                screen.doing(&what);
                waiting.fetch_sub(what.len(), Ordering::Relaxed);
            }
            Some(DisplayMessage::Said { lines, size }) => {
                screen.print(&lines);
                waiting.fetch_sub(size, Ordering::Relaxed);
            }
            None | Some(DisplayMessage::End) => return,
            Some(message) => take(&mut screen, message),
        }
    }
}

fn take(screen: &mut Screen, message: DisplayMessage) {
    match message {
        DisplayMessage::Fact(lines) => screen.fact(lines),
        DisplayMessage::Notice(lines) => screen.print(&lines),
        DisplayMessage::Health(word) => screen.health(word),
        DisplayMessage::Wait(wait) => screen.wait(wait),
        DisplayMessage::KeysAreRead(are_read) => screen.keys_are_read(are_read),
        DisplayMessage::OpenMenu(menu) => screen.open_menu(*menu),
        DisplayMessage::ChangeMenu(body) => screen.change_menu(body),
        DisplayMessage::CloseMenu(outcome) => screen.close_menu(&outcome),
        DisplayMessage::OpenQuestions(count) => screen.count_questions(count),
        DisplayMessage::Hold(hold) => screen.hold(&hold),
        DisplayMessage::Doing(_) | DisplayMessage::Said { .. } | DisplayMessage::End => {}
    }
}

/// The way of a menu to the display.
#[derive(Clone)]
pub struct DisplayQueue {
    sender: Sender<DisplayMessage>,
    clock: Clock,
}

/// Another program has the terminal; the display goes on when this is dropped.
pub struct TerminalHold {
    _release: Sender<Infallible>,
}

impl DisplayQueue {
    /// A display that is gone is no error: nobody is there to be told.
    fn send(&self, message: DisplayMessage) {
        let _ = self.sender.send(message);
    }

    pub fn print(&self, lines: Vec<Line>) {
        self.send(DisplayMessage::Notice(lines));
    }

    pub fn open_menu(&self, menu: Menu) {
        self.send(DisplayMessage::OpenMenu(Box::new(menu)));
    }

    pub fn change_menu(&self, body: MenuBody) {
        self.send(DisplayMessage::ChangeMenu(body));
    }

    pub fn close_menu(&self, outcome: Vec<Line>) {
        self.send(DisplayMessage::CloseMenu(outcome));
    }

    pub fn open_questions(&self, count: usize) {
        self.send(DisplayMessage::OpenQuestions(count));
    }

    /// A countdown says what Enter does exactly as long as it does it.
    pub fn keys_are_read(&self, are_read: bool) {
        self.send(DisplayMessage::KeysAreRead(are_read));
    }

    /// Waits until all that was told is on the terminal.
    pub fn sync(&self, patience: Duration, withdrawn: &AtomicBool) -> Result<(), Asked> {
        self.hold(patience, withdrawn).map(drop)
    }

    /// On the steady clock. None: too far to be counted, so there is no limit.
    pub fn deadline(&self, patience: Duration) -> Option<Duration> {
        (self.clock)().steady.checked_add(patience)
    }

    pub fn is_over(&self, deadline: Option<Duration>) -> bool {
        deadline.is_some_and(|end| (self.clock)().steady >= end)
    }

    /// As `sync`, and nothing is shown until the result is dropped.
    pub fn hold(&self, patience: Duration, withdrawn: &AtomicBool) -> Result<TerminalHold, Asked> {
        let (held, is_held) = channel();
        let (release, released) = channel();
        self.send(DisplayMessage::Hold(HoldRequest { held, released }));
        let deadline = self.deadline(patience);
        loop {
            if withdrawn.load(Ordering::SeqCst) {
                return Err(Asked::NoAnswer);
            }
            match is_held.recv_timeout(GLANCE) {
                // A display that has ended holds itself.
                Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                    return Ok(TerminalHold { _release: release });
                }
                Err(RecvTimeoutError::Timeout) if !self.is_over(deadline) => {}
                // A terminal that takes nothing has nobody in front of it who could answer.
                Err(RecvTimeoutError::Timeout) => return Err(Asked::NoAnswer),
            }
        }
    }
}

/// How much is said: `--quiet`, `--verbose`, or neither.
#[derive(Clone, Copy)]
pub struct Amount {
    quiet: bool,
    verbose: bool,
}

impl Amount {
    pub fn new(options: &UiOptions) -> Self {
        Self { quiet: options.quiet, verbose: options.verbose }
    }

    pub fn event(self, recorded: &Recorded, view: View<'_>) -> Vec<Line> {
        if self.quiet && !wording::is_essential(&recorded.event) {
            return vec![];
        }
        wording::lines(recorded, view)
    }

    pub fn checking(self, running: Line) -> Vec<Line> {
        if self.quiet { vec![] } else { vec![running] }
    }

    pub fn said(self, text: &str) -> Vec<Line> {
        if !self.verbose || self.quiet {
            return vec![];
        }
        let indented = |line| format!("  {line}").trim_end().to_owned();
        let lines = text.trim().lines().map(indented);
        lines.map(|line| Text::new().with(Tone::Dim, line).into()).collect()
    }

    pub fn notice(self, notice: &Notice) -> Vec<Line> {
        if self.quiet && !notices::is_warning(notice) { vec![] } else { notices::lines(notice) }
    }
}
