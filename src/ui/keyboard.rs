//! The terminal to read from, whatever standard input is.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, Termios};
use rustix::termios::{tcflush, tcgetattr, tcgetpgrp, tcsetattr};

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
