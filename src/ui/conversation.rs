//! One question's time with the human: keys, patience, the end of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use console::Term;

use super::keys::Key;
use super::line::Line;
use super::look::Look;
use super::tty::Tty;
use crate::engine::ports::Asked;

/// How soon a withdrawn question or another window size is noticed.
const GLANCE: Duration = Duration::from_millis(150);

pub struct Conversation<'a> {
    pub tty: Tty,
    pub terminal: Term,
    pub look: Look,
    patience: Duration,
    withdrawn: &'a AtomicBool,
    size: (u16, u16),
}

impl<'a> Conversation<'a> {
    pub fn start(look: Look, patience: Duration, withdrawn: &'a AtomicBool) -> Result<Self, Asked> {
        let terminal = Term::stderr();
        let tty = Tty::take().map_err(|_| Asked::NobodyThere)?;
        let size = terminal.size();
        let look = Look { columns: Some(usize::from(size.1)), ..look };
        Ok(Self { tty, terminal, look, patience, withdrawn, size })
    }

    pub fn print(&self, line: &Line) {
        for rendered in self.look.render(line) {
            let _ = self.terminal.write_line(&rendered);
        }
    }

    /// The next key. Every key starts the patience anew.
    pub fn next(&mut self) -> Result<Key, Asked> {
        // A time too far to be counted is no limit.
        let deadline = Instant::now().checked_add(self.patience);
        loop {
            if self.withdrawn.load(Ordering::SeqCst) {
                return Err(Asked::Interrupted);
            }
            if self.is_resized() {
                return Ok(Key::Resized);
            }
            match self.tty.key(GLANCE) {
                Ok(Some(Key::Interrupt)) => return Err(Asked::Interrupted),
                Ok(Some(key)) => return Ok(key),
                Ok(None) if deadline.is_none_or(|end| Instant::now() < end) => {}
                Ok(None) | Err(_) => return Err(Asked::NobodyThere),
            }
        }
    }

    pub fn columns(&self) -> usize {
        usize::from(self.size.1)
    }

    pub fn rows(&self) -> usize {
        usize::from(self.size.0)
    }

    fn is_resized(&mut self) -> bool {
        let size = self.terminal.size();
        let resized = size != self.size;
        self.size = size;
        self.look.columns = Some(usize::from(size.1));
        resized
    }
}
