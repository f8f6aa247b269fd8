//! The loop's end of the display. The words are made here, on the loop's side, and shown on a
//! thread of their own.
//!
//! A terminal that takes nothing (Ctrl-S, a reader that stands still) keeps that thread waiting
//! and nobody else: time-outs and signals go on.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::UiOptions;
use super::amount::Amount;
use super::line::{Line, Text, Tone};
use super::screen::{Hold, Screen};
use crate::core::event::{Event, Nudger, Recorded, StuckStep};
use crate::core::health::Health;
use crate::core::pause::WaitFor;
use crate::engine::ports::{Activity, Asked, Notice, Reporter, View, Wait};

/// How long the end of the process waits for a terminal that takes nothing.
pub const LAST_WORDS: Duration = Duration::from_secs(2);
/// How much of an agent's activity may wait, in bytes. Facts and notices are few: they always may.
const ROOM: usize = 4 << 20;
/// How soon a withdrawn question is noticed.
const GLANCE: Duration = Duration::from_millis(100);

/// The display of this process. Whoever reads keys has no other way to it: both only share the terminal.
static SHOWN: Mutex<Option<Sender<Message>>> = Mutex::new(None);

enum Message {
    Fact(Vec<Line>),
    Notice(Vec<Line>),
    Doing(String),
    Health(Option<&'static str>),
    Said { lines: Vec<Line>, size: usize },
    Wait(Wait),
    KeysAreRead(bool),
    Hold(Hold),
    End,
}

pub struct Display {
    amount: Amount,
    queue: Sender<Message>,
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
    pub fn start(screen: Screen, options: &UiOptions) -> Self {
        let (queue, messages) = channel();
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
            queue,
            waiting,
            left_out: false,
            told_wait: None,
            counting: false,
            over,
        }
    }

    /// Menus wait for this display from now on.
    pub fn share(self) -> Self {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.queue.clone());
        self
    }

    /// A display that is gone is no error: nobody is there to be told.
    fn send(&self, message: Message) {
        let _ = self.queue.send(message);
    }

    fn fact(&mut self, lines: Vec<Line>) {
        self.counting = false;
        self.send(Message::Fact(lines));
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
        self.send(Message::Said { lines, size: text.len() });
    }

    fn doing(&self, what: &str) {
        if self.has_room() {
            self.waiting.fetch_add(what.len(), Ordering::Relaxed);
            self.send(Message::Doing(what.to_owned()));
        }
    }
}

impl Reporter for Display {
    fn on_event(&mut self, recorded: &Recorded, view: View<'_>) {
        let lines = self.amount.event(recorded, view);
        if let Some(health) = health_of_agent(&recorded.event) {
            // The agent goes on, and so does the moving line.
            self.send(Message::Notice(lines));
            return self.send(Message::Health(health));
        }
        // Sent even without words: each fact ends the moving line.
        self.fact(lines);
    }

    fn on_activity(&mut self, activity: &Activity) {
        match activity {
            Activity::Doing(what) => self.doing(what),
            Activity::Said(text) => self.said(text),
            Activity::Checking { at, gate } => {
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
            self.send(Message::Notice(vec![Line::Waiting(wait.clone())]));
        }
        if !std::mem::replace(&mut self.counting, true) {
            self.send(Message::Wait(wait.clone()));
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        self.send(Message::Notice(self.amount.notice(notice)));
    }
}

impl Drop for Display {
    /// Everything is shown, if the terminal takes it in time.
    fn drop(&mut self) {
        self.send(Message::End);
        let _ = self.over.recv_timeout(LAST_WORDS);
    }
}

/// What is said about an agent at work.
fn health_of_agent(event: &Event) -> Option<Option<&'static str>> {
    match event {
        Event::Nudged { by: Nudger::Driver, .. }
        | Event::Stuck { step: StuckStep::Asked { .. } | StuckStep::Ended { .. }, .. } => {
            Some(Some(Health::Stuck.word()))
        }
        Event::Nudged { .. } | Event::Stuck { .. } => Some(None),
        _ => None,
    }
}

fn show(mut screen: Screen, messages: &Receiver<Message>, waiting: &AtomicUsize) {
    for message in messages {
        match message {
            Message::Fact(lines) => screen.fact(lines),
            Message::Notice(lines) => screen.print(&lines),
            Message::Health(word) => screen.health(word),
            Message::Doing(what) => {
                screen.doing(&what);
                waiting.fetch_sub(what.len(), Ordering::Relaxed);
            }
            Message::Said { lines, size } => {
                screen.print(&lines);
                waiting.fetch_sub(size, Ordering::Relaxed);
            }
            Message::Wait(wait) => screen.wait(wait),
            Message::KeysAreRead(are_read) => screen.keys_are_read(are_read),
            Message::Hold(hold) => screen.hold(&hold),
            Message::End => return,
        }
    }
}

/// The terminal is the holder's; the display goes on when this is dropped.
pub struct Held {
    _release: Sender<Infallible>,
}

/// Waits until all that was told is on the terminal, and keeps the display from it.
pub fn hold(patience: Duration, withdrawn: &AtomicBool) -> Result<Held, Asked> {
    let (held, is_held) = channel();
    let (release, released) = channel();
    request(Message::Hold(Hold { held, released }));
    let deadline = Instant::now().checked_add(patience);
    loop {
        if withdrawn.load(Ordering::SeqCst) {
            return Err(Asked::Interrupted);
        }
        match is_held.recv_timeout(GLANCE) {
            // No display, or one that has ended, holds itself.
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(Held { _release: release }),
            Err(RecvTimeoutError::Timeout) if deadline.is_none_or(|end| Instant::now() < end) => {}
            // A terminal that takes nothing has nobody in front of it who could answer.
            Err(RecvTimeoutError::Timeout) => return Err(Asked::NobodyThere),
        }
    }
}

/// A countdown says what Enter does exactly as long as it does it.
pub fn keys_are_read(are_read: bool) {
    request(Message::KeysAreRead(are_read));
}

fn request(message: Message) {
    if let Some(display) = &*SHOWN.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = display.send(message);
    }
}
