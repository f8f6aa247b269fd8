//! Bytes from a terminal → keys.
//!
//! Strict about escape sequences: a key nobody knows (Ctrl-Up, a mouse, a focus
//! report) must never leave a digit behind that would choose an option.

const ESC: u8 = 0x1b;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
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
    /// No key: the window has another size.
    Resized,
    Unknown,
}

/// Keeps what is not a whole key yet.
#[derive(Default)]
pub struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, length)) = first(&self.pending) {
            self.pending.drain(..length.min(self.pending.len()));
            keys.push(key);
        }
        keys
    }

    pub fn waits_for_more(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Nothing more came: the escape key itself, or something broken off.
    pub fn give_up(&mut self) -> Option<Key> {
        let pending = std::mem::take(&mut self.pending);
        match pending.as_slice() {
            [] => None,
            [ESC] => Some(Key::Escape),
            _ => Some(Key::Unknown),
        }
    }
}

/// The first key and its length; None while it is not whole.
fn first(bytes: &[u8]) -> Option<(Key, usize)> {
    match bytes {
        [] | [ESC] | [ESC, b'O'] => None,
        [ESC, b'[', rest @ ..] => control_sequence(rest).map(|(key, length)| (key, length + 2)),
        [ESC, b'O', code, ..] => Some((arrow(*code), 3)),
        [ESC, ESC, ..] => Some((Key::Escape, 1)),
        [ESC, ..] => Some((Key::Unknown, 2)),
        [0..0x20 | 0x7f, ..] => Some((control(bytes), 1)),
        [lead, ..] => character(bytes, *lead),
    }
}

fn control(bytes: &[u8]) -> Key {
    match bytes.first() {
        Some(b'\r' | b'\n') => Key::Enter,
        Some(b'\t') => Key::Char('\t'),
        Some(0x03) => Key::Interrupt,
        Some(0x04) => Key::End,
        Some(0x08 | 0x7f) => Key::Backspace,
        Some(0x15) => Key::EraseLine,
        Some(0x17) => Key::EraseWord,
        _ => Key::Unknown,
    }
}

/// Parameters up to a final byte, after `ESC [`.
fn control_sequence(rest: &[u8]) -> Option<(Key, usize)> {
    let end = rest.iter().position(|byte| !(0x20..0x40).contains(byte))?;
    let (parameters, last) = (rest.get(..end)?, *rest.get(end)?);
    let key = match (parameters, last) {
        (b"", code) => arrow(code),
        (b"200", b'~') => Key::PasteStart,
        (b"201", b'~') => Key::PasteEnd,
        _ => Key::Unknown,
    };
    // A control character breaks the sequence off and is a key of its own.
    let length = if last < 0x20 { end } else { end + 1 };
    Some((key, length))
}

fn arrow(code: u8) -> Key {
    match code {
        b'A' => Key::Up,
        b'B' => Key::Down,
        _ => Key::Unknown,
    }
}

fn character(bytes: &[u8], lead: u8) -> Option<(Key, usize)> {
    let length = match lead {
        0..0x80 => 1,
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return Some((Key::Unknown, 1)),
    };
    let whole = bytes.get(..length)?;
    let c = std::str::from_utf8(whole).ok().and_then(|text| text.chars().next());
    Some(match c {
        Some(c) if !c.is_control() => (Key::Char(c), length),
        Some(_) => (Key::Unknown, length),
        None => (Key::Unknown, 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        for (bytes, keys) in [
            (&b"1c"[..], vec![Key::Char('1'), Key::Char('c')]),
            (b"\r\n", vec![Key::Enter, Key::Enter]),
            (b"\x1b[A\x1b[B\x1bOA", vec![Key::Up, Key::Down, Key::Up]),
            (b"\x03\x04\x7f\x08", vec![Key::Interrupt, Key::End, Key::Backspace, Key::Backspace]),
            ("ü漢🎉".as_bytes(), vec![Key::Char('ü'), Key::Char('漢'), Key::Char('🎉')]),
            (b"\x1b[200~s\x1b[201~", vec![Key::PasteStart, Key::Char('s'), Key::PasteEnd]),
        ] {
            assert_eq!(Decoder::default().feed(bytes), keys, "{bytes:?}");
        }
    }

    #[test]
    fn unknown_sequences_leave_nothing_behind_that_chooses() {
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
            let mut decoder = Decoder::default();
            assert_eq!(decoder.feed(bytes), [Key::Unknown], "{bytes:?}");
            assert!(!decoder.waits_for_more());
        }
    }

    #[test]
    fn keys_may_come_in_pieces() {
        let mut decoder = Decoder::default();
        for byte in b"\x1b[" {
            assert_eq!(decoder.feed(&[*byte]), []);
        }
        assert_eq!(decoder.feed(b"A"), [Key::Up]);
        assert_eq!(decoder.feed(b"\x1b"), []);
        assert_eq!(decoder.give_up(), Some(Key::Escape));
        assert_eq!(decoder.feed(&[0xe6, 0xbc]), []);
        assert_eq!(decoder.feed(&[0xa2]), [Key::Char('漢')]);
        assert_eq!(decoder.give_up(), None);
    }

    #[test]
    fn ctrl_c_is_seen_inside_a_broken_sequence() {
        assert_eq!(Decoder::default().feed(b"\x1b[1\x03"), [Key::Unknown, Key::Interrupt]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end(bytes: Vec<u8>) {
            let mut decoder = Decoder::default();
            let keys = decoder.feed(&bytes);
            proptest::prop_assert!(keys.len() <= bytes.len());
            decoder.give_up();
            proptest::prop_assert!(!decoder.waits_for_more());
        }
    }
}
