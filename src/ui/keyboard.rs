//! The keyboard: keys in raw mode, or whole lines.
//!
//! The decoder is strict about escape sequences: an unknown one (Ctrl-Up, a mouse or focus report)
//! must never leave a digit behind that would choose an option.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use console::Term;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios};
use rustix::termios::{tcflush, tcgetattr, tcgetpgrp, tcsetattr, ttyname};

use crate::files::follow;
use crate::model::visible_line;

const ESC: u8 = 0x1b;
/// Bytes of one key come together; after that long an escape is the escape key.
const REST_OF_KEY: Duration = Duration::from_millis(50);
/// Pasted text comes marked, so that it cannot choose from a menu.
const MARK_PASTES: &str = "\x1b[?2004h";
const DO_NOT_MARK_PASTES: &str = "\x1b[?2004l";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPress {
    Char(char),
    Enter,
    Up,
    Down,
    Backspace,
    Escape,
    /// Ctrl-U.
    EraseLine,
    /// Ctrl-W.
    EraseWord,
    /// Ctrl-D.
    End,
    /// Ctrl-C.
    Interrupt,
    PasteStart,
    PasteEnd,
    /// Not a key: the window was resized, or the question was withdrawn.
    Redraw,
    Unknown,
}

/// Keeps bytes that are not a whole key yet.
#[derive(Default)]
pub struct KeyDecoder {
    pending: Vec<u8>,
}

impl KeyDecoder {
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<KeyPress> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, length)) = first_key(&self.pending) {
            self.pending.drain(..length.min(self.pending.len()));
            keys.push(key);
        }
        keys
    }

    /// Nothing more came: the escape key itself, or something broken off.
    fn give_up(&mut self) -> Option<KeyPress> {
        match std::mem::take(&mut self.pending).as_slice() {
            [] => None,
            [ESC] => Some(KeyPress::Escape),
            _ => Some(KeyPress::Unknown),
        }
    }
}

/// The first key and its length; None while it is not whole.
fn first_key(bytes: &[u8]) -> Option<(KeyPress, usize)> {
    match bytes {
        [] | [ESC] | [ESC, b'O'] => None,
        [ESC, b'[', rest @ ..] => control_sequence(rest).map(|(key, length)| (key, length + 2)),
        [ESC, b'O', code, ..] => Some((arrow(*code), 3)),
        [ESC, ESC, ..] => Some((KeyPress::Escape, 1)),
        [ESC, ..] => Some((KeyPress::Unknown, 2)),
        [byte @ (0..0x20 | 0x7f), ..] => Some((control(*byte), 1)),
        _ => character(bytes),
    }
}

fn control(byte: u8) -> KeyPress {
    match byte {
        b'\r' | b'\n' => KeyPress::Enter,
        b'\t' => KeyPress::Char('\t'),
        0x03 => KeyPress::Interrupt,
        0x04 => KeyPress::End,
        0x08 | 0x7f => KeyPress::Backspace,
        0x15 => KeyPress::EraseLine,
        0x17 => KeyPress::EraseWord,
        _ => KeyPress::Unknown,
    }
}

/// Parameters up to a final byte, after `ESC [`.
fn control_sequence(rest: &[u8]) -> Option<(KeyPress, usize)> {
    let end = rest.iter().position(|byte| !(0x20..0x40).contains(byte))?;
    let (parameters, last) = (rest.get(..end)?, *rest.get(end)?);
    let key = match (parameters, last) {
        (b"", code) => arrow(code),
        (b"200", b'~') => KeyPress::PasteStart,
        (b"201", b'~') => KeyPress::PasteEnd,
        _ => KeyPress::Unknown,
    };
    // A control character breaks the sequence off and is a key of its own.
    let length = if last < 0x20 { end } else { end + 1 };
    Some((key, length))
}

fn arrow(code: u8) -> KeyPress {
    match code {
        b'A' => KeyPress::Up,
        b'B' => KeyPress::Down,
        _ => KeyPress::Unknown,
    }
}

fn character(bytes: &[u8]) -> Option<(KeyPress, usize)> {
    let head = bytes.get(..4).unwrap_or(bytes);
    let valid = head.utf8_chunks().next()?.valid().chars().next();
    match (valid, std::str::from_utf8(head)) {
        (Some(c), _) if c.is_control() => Some((KeyPress::Unknown, c.len_utf8())),
        (Some(c), _) => Some((KeyPress::Char(c), c.len_utf8())),
        (None, Err(error)) if error.error_len().is_none() => None,
        _ => Some((KeyPress::Unknown, 1)),
    }
}

/// The terminal to read from, whatever standard input is.
pub struct Keyboard {
    pub input: OwnedFd,
}

impl Keyboard {
    /// Opens this process's terminal, so that a menu works while standard input is a pipe.
    pub fn open() -> io::Result<Self> {
        let input = if io::stdin().is_terminal() {
            io::stdin().as_fd().try_clone_to_owned()?
        } else {
            follow::open_device(Path::new("/dev/tty"))?.into()
        };
        Ok(Self { input })
    }

    /// Reading or changing the terminal from the background would stop the process.
    pub fn is_in_background(&self) -> bool {
        tcgetpgrp(&self.input).is_ok_and(|foreground| foreground != getpgrp())
    }

    /// Drops earlier input: it was not meant for ralph.
    pub fn forget(&self) -> io::Result<()> {
        Ok(tcflush(&self.input, QueueSelector::IFlush)?)
    }

    pub fn is_readable(&self, wait: Duration) -> io::Result<bool> {
        let wait = Timespec::try_from(wait).ok();
        let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
        match poll(&mut fds, wait.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            // A resize, for example.
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
}

/// The keyboard key by key. Restores the terminal's modes when it is dropped.
pub struct RawKeyboard {
    keyboard: Keyboard,
    /// Something was typed before it was opened.
    pub was_in_use: bool,
    original: Termios,
    decoder: KeyDecoder,
    keys: VecDeque<KeyPress>,
}

impl RawKeyboard {
    /// Fails in the background. Drops what was typed before.
    pub fn open(keyboard: Keyboard) -> io::Result<Self> {
        if keyboard.is_in_background() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let original = tcgetattr(&keyboard.input)?;
        let (decoder, keys) = (KeyDecoder::default(), VecDeque::new());
        let mut raw = Self { keyboard, was_in_use: false, original, decoder, keys };
        raw.was_in_use = raw.enter()?;
        Ok(raw)
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

    /// Restores the terminal while another program has it.
    pub fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        self.leave();
        let result = to();
        self.enter()?;
        Ok(result)
    }

    fn read(&mut self, wait: Duration) -> io::Result<()> {
        let is_whole = self.decoder.pending.is_empty();
        let wait = if is_whole { wait } else { wait.min(REST_OF_KEY) };
        if !self.keyboard.is_readable(wait)? {
            self.keys.extend(self.decoder.give_up());
            return Ok(());
        }
        match self.keyboard.read(&mut [0; 1024])? {
            Some([]) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(bytes) => self.keys.extend(self.decoder.feed(bytes)),
            None => {}
        }
        Ok(())
    }

    /// Drops what was typed before. Returns whether there was something.
    fn enter(&self) -> io::Result<bool> {
        let mut raw = self.original.clone();
        raw.make_raw();
        // Line ends still begin a new line.
        raw.output_modes = self.original.output_modes;
        tcsetattr(&self.keyboard.input, OptionalActions::Now, &raw)?;
        // A part of a line can be seen from here on.
        let is_in_use = self.keyboard.is_readable(Duration::ZERO)?;
        self.keyboard.forget()?;
        Term::stderr().write_str(MARK_PASTES)?;
        Ok(is_in_use)
    }

    fn leave(&self) {
        let _ = Term::stderr().write_str(DO_NOT_MARK_PASTES);
        let _ = tcsetattr(&self.keyboard.input, OptionalActions::Now, &self.original);
    }
}

impl Drop for RawKeyboard {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The terminal of this process, such as `/dev/pts/3`.
pub fn terminal_name() -> Option<String> {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stderr()];
    let name = streams.into_iter().find_map(|stream| ttyname(stream, Vec::new()).ok())?;
    Some(visible_line(&name.to_string_lossy()))
}

/// Bytes of whole lines that were typed, echoed on standard error and not read.
pub fn typed_lines() -> Option<u64> {
    let terminal = rustix::stdio::stderr();
    let modes = tcgetattr(terminal).ok()?.local_modes;
    let echoes = modes.contains(LocalModes::ICANON | LocalModes::ECHO);
    ioctl_fionread(terminal).ok().filter(|_| echoes)
}

/// Standard error can show a menu or a countdown.
pub fn can_draw() -> bool {
    Term::stderr().is_term() && !console::is_dumb()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_keys() {
        for (bytes, keys) in [
            (&b"1c"[..], vec![KeyPress::Char('1'), KeyPress::Char('c')]),
            (b"\r\n", vec![KeyPress::Enter, KeyPress::Enter]),
            (b"\x1b[A\x1b[B\x1bOA", vec![KeyPress::Up, KeyPress::Down, KeyPress::Up]),
            (
                b"\x03\x04\x7f\x08",
                vec![KeyPress::Interrupt, KeyPress::End, KeyPress::Backspace, KeyPress::Backspace],
            ),
            (
                "ü漢🎉".as_bytes(),
                vec![KeyPress::Char('ü'), KeyPress::Char('漢'), KeyPress::Char('🎉')],
            ),
            (
                b"\x1b[200~s\x1b[201~",
                vec![KeyPress::PasteStart, KeyPress::Char('s'), KeyPress::PasteEnd],
            ),
        ] {
            assert_eq!(KeyDecoder::default().feed(bytes), keys, "{bytes:?}");
        }
    }

    #[test]
    fn unknown_sequences_leave_no_key_behind() {
        for bytes in [
            &b"\x1b[1;5A"[..],
            b"\x1b[15~",
            b"\x1b[I",
            b"\x1b[<0;12;3M",
            b"\x1ba",
            b"\x1bOs",
            b"\xff",
            b"\xc2\x9b",
        ] {
            let mut decoder = KeyDecoder::default();
            assert_eq!(decoder.feed(bytes), [KeyPress::Unknown], "{bytes:?}");
            assert!(decoder.pending.is_empty());
        }
    }

    #[test]
    fn keys_may_come_in_pieces() {
        let mut decoder = KeyDecoder::default();
        for byte in b"\x1b[" {
            assert_eq!(decoder.feed(&[*byte]), []);
        }
        assert_eq!(decoder.feed(b"A"), [KeyPress::Up]);
        assert_eq!(decoder.feed(b"\x1b"), []);
        assert_eq!(decoder.give_up(), Some(KeyPress::Escape));
        assert_eq!(decoder.feed(&[0xe6, 0xbc]), []);
        assert_eq!(decoder.feed(&[0xa2]), [KeyPress::Char('漢')]);
        assert_eq!(decoder.give_up(), None);
    }

    #[test]
    fn ctrl_c_is_seen_inside_a_broken_sequence() {
        assert_eq!(
            KeyDecoder::default().feed(b"\x1b[1\x03"),
            [KeyPress::Unknown, KeyPress::Interrupt]
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_consumed(bytes: Vec<u8>) {
            let mut decoder = KeyDecoder::default();
            let keys = decoder.feed(&bytes);
            proptest::prop_assert!(keys.len() <= bytes.len());
            decoder.give_up();
            proptest::prop_assert!(decoder.pending.is_empty());
        }
    }
}
