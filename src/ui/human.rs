//! The person at the terminal.
//!
//! A question owns the keyboard only while it is open, and gives it back as it was. What is shown
//! goes through the display, so other stories' news scroll by above the menu.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use console::Term;

use crate::model::{Answer, Escalation, visible_line};
use crate::ports::{Ask, Asked, Human};

use super::GLANCE;
use super::conversation::{Conversation, choose};
use super::display::DisplayQueue;
use super::figures::duration;
use super::guidance;
use super::look::{Text, Tone};
use super::menu::{Menu, MenuChoice, items};
use super::tty::{self, Keyboard};

pub struct TerminalHuman {
    display: DisplayQueue,
    /// For the questions before the run; each of the run's has its own.
    pub(super) withdrawn: AtomicBool,
    /// Held by the one who reads keys.
    keyboard: Mutex<()>,
    /// Menus that are open or about to be: they go before a wait that could be skipped.
    menus: AtomicUsize,
}

impl TerminalHuman {
    pub(super) fn new(display: DisplayQueue) -> Self {
        let (withdrawn, keyboard) = (AtomicBool::new(false), Mutex::new(()));
        Self { display, withdrawn, keyboard, menus: AtomicUsize::new(0) }
    }

    /// A menu can be shown and keys can be read. False in the background.
    pub fn is_there() -> bool {
        tty::is_there()
    }

    /// Questions before the run end without an answer.
    pub fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::SeqCst);
    }

    /// The keyboard is the conversation's until it ends.
    pub(super) fn converse<T>(
        &self,
        menu: Menu,
        patience: Duration,
        withdrawn: &AtomicBool,
        talk: impl FnOnce(&mut Conversation<'_>) -> Result<T, Asked>,
    ) -> Result<T, Asked> {
        if !tty::is_there() {
            return Err(Asked::NoAnswer);
        }
        self.menus.fetch_add(1, Ordering::SeqCst);
        let result = {
            let _keyboard = self.keyboard.lock().unwrap_or_else(PoisonError::into_inner);
            Conversation::open(&self.display, menu, patience, withdrawn)
                .and_then(|mut conversation| talk(&mut conversation))
        };
        self.menus.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// Whole lines are read, as any program reads them. The terminal's modes stay as they are, so
    /// there is nothing to put back, and Ctrl-C, Ctrl-Z and a kill do what they always do.
    fn listen_for_enter(&self, keyboard: &Keyboard, over: &AtomicBool) -> io::Result<bool> {
        let mut listening = false;
        while !over.load(Ordering::SeqCst) {
            let is_free = self.menus.load(Ordering::SeqCst) == 0;
            let lock = match self.keyboard.try_lock() {
                Ok(lock) => Some(lock),
                Err(TryLockError::Poisoned(lock)) => Some(lock.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            let lock = lock.filter(|_| is_free && !keyboard.is_in_background());
            if lock.is_some() && !listening {
                keyboard.forget()?;
            }
            if lock.is_some() != listening {
                listening = lock.is_some();
                self.display.send(move |screen| screen.keys_are_read(listening));
            }
            if lock.is_none() {
                thread::sleep(GLANCE);
            } else if keyboard.is_readable(GLANCE)? && is_enter(keyboard)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Human for TerminalHuman {
    fn ask(&self, ask: &Ask) -> Asked {
        let heading = format!("{} {}", ask.story.id, visible_line(&ask.story.title));
        let note =
            format!("Waiting {} for an answer; then the story is parked.", time(ask.patience));
        let menu = Menu::new(heading, ask.question.clone(), note);
        self.converse(menu, ask.patience, &ask.withdrawn, |talk| answer(talk, &ask.question))
            .map_or_else(|asked| asked, Asked::Answered)
    }

    fn open_questions(&self, count: usize) {
        self.display.send(move |screen| screen.count_questions(count));
    }

    fn wait_skipped(&self, over: &AtomicBool) -> bool {
        if !Term::stderr().is_term() || console::is_dumb() {
            return false;
        }
        let skipped = Keyboard::open().and_then(|keyboard| self.listen_for_enter(&keyboard, over));
        self.display.send(|screen| screen.keys_are_read(false));
        skipped.unwrap_or(false)
    }
}

fn is_enter(keyboard: &Keyboard) -> io::Result<bool> {
    // It may have been moved to the background while it waited.
    if keyboard.is_in_background() {
        return Ok(false);
    }
    match keyboard.read(&mut [0; 1024])? {
        // Ctrl-D, or the terminal is gone; then it would be readable all the time.
        Some([]) => {
            thread::sleep(GLANCE);
            Ok(false)
        }
        Some(bytes) => Ok(bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r'))),
        None => Ok(false),
    }
}

fn answer(conversation: &mut Conversation<'_>, question: &Escalation) -> Result<Answer, Asked> {
    let items = items(question);
    loop {
        match choose(conversation, &items)? {
            MenuChoice::Answer(answer) => return Ok(answer.clone()),
            MenuChoice::Write => {
                if let Some(text) = guidance::write(conversation)? {
                    conversation.add(Text::new().with(Tone::Dim, "The agent will read:"));
                    for line in text.lines() {
                        conversation.add(Text::new().plain(format!("  {line}")));
                    }
                    return Ok(Answer::Guidance { text });
                }
            }
        }
    }
}

/// `10 minutes`, or as exact as it is.
pub(super) fn time(patience: Duration) -> String {
    match (patience.as_secs() / 60, patience.as_secs() % 60) {
        (1, 0) => "1 minute".to_owned(),
        (minutes @ 2..=120, 0) => format!("{minutes} minutes"),
        _ => duration(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_reads_well() {
        for (seconds, shown) in
            [(600, "10 minutes"), (60, "1 minute"), (90, "1m30s"), (5, "5s"), (36_000, "10h00m")]
        {
            assert_eq!(time(Duration::from_secs(seconds)), shown);
        }
    }
}
