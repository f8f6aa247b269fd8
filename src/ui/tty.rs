//! The keyboard, key by key.
//!
//! Puts the terminal into raw mode and back, whatever happens in between. Reads
//! the terminal itself, so a menu works while standard input is a pipe.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use console::Term;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

use super::keys::{Decoder, Key};
use crate::core::text::visible_line;

/// Bytes of one key come together; after that long an escape is the escape key.
const REST_OF_KEY: Duration = Duration::from_millis(50);
/// Pasted text comes marked, so that it cannot choose from a menu.
const MARK_PASTES: &str = "\x1b[?2004h";
const DO_NOT_MARK_PASTES: &str = "\x1b[?2004l";

pub struct Tty {
    input: OwnedFd,
    original: Termios,
    decoder: Decoder,
    keys: VecDeque<Key>,
}

impl Tty {
    /// Takes the keyboard. What was typed before is forgotten: it was not meant for us.
    pub fn take() -> io::Result<Self> {
        let input = keyboard()?;
        let original = tcgetattr(&input)?;
        let tty = Self { input, original, decoder: Decoder::default(), keys: VecDeque::new() };
        tty.enter()?;
        Ok(tty)
    }

    /// The next key, or None when none came in time.
    pub fn key(&mut self, wait: Duration) -> io::Result<Option<Key>> {
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
        if !self.is_readable(wait)? {
            self.keys.extend(self.decoder.give_up());
            return Ok(());
        }
        let mut buffer = [0; 1024];
        match rustix::io::read(&self.input, &mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                self.keys.extend(self.decoder.feed(buffer.get(..length).unwrap_or_default()));
                Ok(())
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn is_readable(&self, wait: Duration) -> io::Result<bool> {
        let wait = Timespec::try_from(wait).ok();
        let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
        match poll(&mut fds, wait.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            // A resize, for one. Nothing to read, and no reason to stop.
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn enter(&self) -> io::Result<()> {
        let mut raw = self.original.clone();
        raw.make_raw();
        // Line ends still begin a new line.
        raw.output_modes = self.original.output_modes;
        tcsetattr(&self.input, OptionalActions::Flush, &raw)?;
        let terminal = Term::stderr();
        terminal.write_str(MARK_PASTES).and_then(|()| terminal.hide_cursor())
    }

    fn leave(&self) {
        let terminal = Term::stderr();
        let _ = terminal.write_str(DO_NOT_MARK_PASTES);
        let _ = terminal.show_cursor();
        let _ = tcsetattr(&self.input, OptionalActions::Now, &self.original);
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

fn keyboard() -> io::Result<OwnedFd> {
    let input = if io::stdin().is_terminal() {
        io::stdin().as_fd().try_clone_to_owned()?
    } else {
        OpenOptions::new().read(true).write(true).open("/dev/tty")?.into()
    };
    if in_background(&input) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(input) }
}

/// Changing the terminal from the background would stop the process until somebody looks.
fn in_background(terminal: &OwnedFd) -> bool {
    tcgetpgrp(terminal).is_ok_and(|foreground| foreground != rustix::process::getpgrp())
}
