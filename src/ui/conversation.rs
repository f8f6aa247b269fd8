//! An open menu and its keys, until an answer, the end of the patience or a withdrawal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use console::Term;

use crate::ports::Asked;

use super::GLANCE;
use super::display::DisplayQueue;
use super::keyboard::{KeyPress, RawKeyboard};
use super::look::{Line, TextLine, Tone};
use super::menu::{Menu, MenuBody, MenuItem, MenuList};

pub struct Conversation<'a> {
    keyboard: RawKeyboard,
    display: &'a DisplayQueue,
    patience: Duration,
    withdrawn: &'a AtomicBool,
    size: (u16, u16),
    /// The lines that stay below the question when the menu closes.
    outcome: Vec<Line>,
}

impl<'a> Conversation<'a> {
    pub fn open(
        display: &'a DisplayQueue,
        menu: Menu,
        patience: Duration,
        withdrawn: &'a AtomicBool,
    ) -> Result<Self, Asked> {
        // The display is waited for: at a terminal that accepts nothing, no human can answer.
        drop(display.hold(patience, withdrawn)?);
        let keyboard = RawKeyboard::open().map_err(|_| Asked::NoAnswer)?;
        display.send(move |screen| screen.open_menu(menu));
        let (size, outcome) = (Term::stderr().size(), Vec::new());
        Ok(Self { keyboard, display, patience, withdrawn, size, outcome })
    }

    /// Not if more keys are here already.
    pub fn show(&self, body: impl FnOnce() -> MenuBody) {
        if !self.keyboard.has_more() {
            let body = body();
            self.display.send(move |screen| screen.change_menu(body));
        }
    }

    pub fn add(&mut self, line: impl Into<Line>) {
        self.outcome.push(line.into());
    }

    /// Above the menu, right now.
    pub fn warn(&self, problem: &str) {
        self.display.print(vec![TextLine::warning(problem).into()]);
    }

    /// Gives the terminal to another program; nothing else is drawn until it ends.
    pub fn lend<T>(&mut self, to: impl FnOnce() -> T) -> Result<T, Asked> {
        let _held = self.display.hold(self.patience, self.withdrawn)?;
        self.keyboard.lend(to).map_err(|_| Asked::NoAnswer)
    }

    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::SeqCst)
    }

    /// The next key. Every key restarts the patience.
    pub fn next(&mut self) -> Result<KeyPress, Asked> {
        let deadline = self.display.deadline(self.patience);
        loop {
            if self.is_withdrawn() {
                return Err(Asked::NoAnswer);
            }
            let size = Term::stderr().size();
            if std::mem::replace(&mut self.size, size) != size {
                return Ok(KeyPress::Resized);
            }
            match self.keyboard.key(GLANCE) {
                Ok(Some(KeyPress::Interrupt)) => return Err(Asked::Interrupted),
                Ok(Some(key)) => return Ok(key),
                Ok(None) if !self.display.is_over(deadline) => {}
                Ok(None) | Err(_) => return Err(Asked::NoAnswer),
            }
        }
    }
}

impl Drop for Conversation<'_> {
    fn drop(&mut self) {
        let outcome = std::mem::take(&mut self.outcome);
        self.display.send(move |screen| screen.close_menu(&outcome));
    }
}

/// Shows the list until an item is chosen.
pub fn choose<'i, C>(
    conversation: &mut Conversation<'_>,
    items: &'i [MenuItem<C>],
) -> Result<&'i C, Asked> {
    let mut list = MenuList { selected: 0, pasting: false, items };
    loop {
        conversation.show(|| list.body());
        if let Some(item) = list.press(conversation.next()?) {
            conversation.add(TextLine::new().with(Tone::Question, "› ").plain(item.text()));
            return Ok(&item.choice);
        }
    }
}
