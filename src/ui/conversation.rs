//! One question's time with the human: keys, patience, the end of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use console::Term;

use crate::ports::Asked;

use super::GLANCE;
use super::display::DisplayQueue;
use super::keys::KeyPress;
use super::look::{Line, Text, Tone};
use super::menu::{Menu, MenuBody, MenuItem, MenuList};
use super::tty::Tty;

pub struct Conversation<'a> {
    tty: Tty,
    display: &'a DisplayQueue,
    patience: Duration,
    withdrawn: &'a AtomicBool,
    size: (u16, u16),
    /// What is left on the terminal below the question, when the menu closes.
    outcome: Vec<Line>,
}

impl<'a> Conversation<'a> {
    pub fn open(
        display: &'a DisplayQueue,
        menu: Menu,
        patience: Duration,
        withdrawn: &'a AtomicBool,
    ) -> Result<Self, Asked> {
        // A terminal that takes nothing has nobody in front of it who could answer.
        drop(display.hold(patience, withdrawn)?);
        let tty = Tty::take().map_err(|_| Asked::NoAnswer)?;
        display.send(move |screen| screen.open_menu(menu));
        let (size, outcome) = (Term::stderr().size(), Vec::new());
        Ok(Self { tty, display, patience, withdrawn, size, outcome })
    }

    /// Not while more keys are here already.
    pub fn show(&self, body: impl FnOnce() -> MenuBody) {
        if !self.tty.has_more() {
            let body = body();
            self.display.send(move |screen| screen.change_menu(body));
        }
    }

    pub fn add(&mut self, line: impl Into<Line>) {
        self.outcome.push(line.into());
    }

    /// Above the menu, right now.
    pub fn warn(&self, problem: &str) {
        let line = Text::new().with(Tone::Warning, "warning: ").plain(problem);
        self.display.print(vec![line.into()]);
    }

    /// The terminal as it was, for another program; nothing else is shown meanwhile.
    pub fn lend<T>(&mut self, to: impl FnOnce() -> T) -> Result<T, Asked> {
        let held = self.display.hold(self.patience, self.withdrawn)?;
        let result = self.tty.lend(to).map_err(|_| Asked::NoAnswer);
        drop(held);
        result
    }

    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::SeqCst)
    }

    /// The next key. Every key starts the patience anew.
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
            match self.tty.key(GLANCE) {
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

/// Shows the list until something is chosen.
pub fn choose<'i, C>(
    conversation: &mut Conversation<'_>,
    items: &'i [MenuItem<C>],
) -> Result<&'i C, Asked> {
    let mut list = MenuList { selected: 0, pasting: false, items };
    loop {
        conversation.show(|| list.body());
        if let Some(item) = list.press(conversation.next()?) {
            conversation.add(Text::new().with(Tone::Question, "› ").plain(item.text()));
            return Ok(&item.choice);
        }
    }
}
