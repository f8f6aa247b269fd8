//! The keyboard, key by key.
//!
//! Puts the terminal into raw mode and back, whatever happens in between.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use console::Term;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, Termios};
use rustix::termios::{tcflush, tcgetattr, tcgetpgrp, tcsetattr};

use crate::model::visible_line;

use super::keys::{KeyDecoder, KeyPress};

/// Bytes of one key come together; after that long an escape is the escape key.
const REST_OF_KEY: Duration = Duration::from_millis(50);
/// Pasted text comes marked, so that it cannot choose from a menu.
const MARK_PASTES: &str = "\x1b[?2004h";
const DO_NOT_MARK_PASTES: &str = "\x1b[?2004l";

pub struct Tty {
    keyboard: Keyboard,
    original: Termios,
    decoder: KeyDecoder,
    keys: VecDeque<KeyPress>,
}

impl Tty {
    /// Takes the keyboard. What was typed before is forgotten: it was not meant for us.
    pub fn take() -> io::Result<Self> {
        let keyboard = keyboard()?;
        let original = keyboard.modes()?;
        let tty =
            Self { keyboard, original, decoder: KeyDecoder::default(), keys: VecDeque::new() };
        tty.enter()?;
        Ok(tty)
    }

    /// The next key, or None when none came in time.
    pub fn key(&mut self, wait: Duration) -> io::Result<Option<KeyPress>> {
        if self.keys.is_empty() {
            self.read(wait)?;
        }
        Ok(self.keys.pop_front())
    }

    /// More keys are here already: no need to draw yet.
    pub fn has_more(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The terminal as it was, for another program.
    pub fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        self.leave();
        let result = to();
        self.enter()?;
        Ok(result)
    }

    fn read(&mut self, wait: Duration) -> io::Result<()> {
        let more = self.decoder.waits_for_more();
        let wait = if more { wait.min(REST_OF_KEY) } else { wait };
        if !self.keyboard.is_readable(wait)? {
            self.keys.extend(self.decoder.give_up());
            return Ok(());
        }
        match self.keyboard.read(&mut [0; 1024])? {
            Some([]) => Err(io::ErrorKind::UnexpectedEof.into()),
            Some(bytes) => {
                self.keys.extend(self.decoder.feed(bytes));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn enter(&self) -> io::Result<()> {
        let mut raw = self.original.clone();
        raw.make_raw();
        // Line ends still begin a new line.
        raw.output_modes = self.original.output_modes;
        self.keyboard.set_modes(OptionalActions::Flush, &raw)?;
        Term::stderr().write_str(MARK_PASTES)
    }

    fn leave(&self) {
        let _ = Term::stderr().write_str(DO_NOT_MARK_PASTES);
        let _ = self.keyboard.set_modes(OptionalActions::Now, &self.original);
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.leave();
    }
}

/// `/dev/pts/3`, where people would look for this process.
pub fn name() -> Option<String> {
    let names = [rustix::stdio::stdin(), rustix::stdio::stderr()]
        .map(|stream| rustix::termios::ttyname(stream, Vec::new()).ok());
    let name = names.into_iter().flatten().next()?;
    Some(visible_line(&name.to_string_lossy()))
}

/// Somebody could press a key: there is a terminal to read from and to show a menu on.
pub fn is_there() -> bool {
    Term::stderr().is_term() && !console::is_dumb() && keyboard().is_ok()
}

fn keyboard() -> io::Result<Keyboard> {
    let keyboard = Keyboard::open()?;
    if keyboard.is_in_background() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(keyboard) }
}

/// The terminal to read from, whatever standard input is.
pub struct Keyboard {
    input: OwnedFd,
}

impl Keyboard {
    /// Of this terminal, so that a menu works while standard input is a pipe.
    pub fn open() -> io::Result<Self> {
        let input = if io::stdin().is_terminal() {
            io::stdin().as_fd().try_clone_to_owned()?
        } else {
            OpenOptions::new().read(true).write(true).open("/dev/tty")?.into()
        };
        Ok(Self { input })
    }

    /// Reading or changing the terminal from there would stop the process until somebody looks.
    pub fn is_in_background(&self) -> bool {
        tcgetpgrp(&self.input).is_ok_and(|foreground| foreground != rustix::process::getpgrp())
    }

    /// What was typed before is forgotten: it was not meant for us.
    pub fn forget(&self) -> io::Result<()> {
        Ok(tcflush(&self.input, QueueSelector::IFlush)?)
    }

    pub fn is_readable(&self, wait: Duration) -> io::Result<bool> {
        let wait = Timespec::try_from(wait).ok();
        let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
        match poll(&mut fds, wait.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            // A resize, for one. Nothing to read, and no reason to stop.
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// None when there was nothing after all; empty at the end of the input.
    pub fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        match rustix::io::read(&self.input, &mut *buffer) {
            Ok(length) => Ok(buffer.get(..length)),
            Err(Errno::INTR | Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub fn modes(&self) -> io::Result<Termios> {
        Ok(tcgetattr(&self.input)?)
    }

    pub fn set_modes(&self, when: OptionalActions, modes: &Termios) -> io::Result<()> {
        Ok(tcsetattr(&self.input, when, modes)?)
    }
}
