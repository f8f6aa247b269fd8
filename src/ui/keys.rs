//! Bytes from a terminal → keys.
//!
//! Strict about escape sequences: a key nobody knows (Ctrl-Up, a mouse, a focus
//! report) must never leave a digit behind that would choose an option.

const ESC: u8 = 0x1b;

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
    /// No key: the window has another size.
    Resized,
    Unknown,
}

/// Keeps what is not a whole key yet.
#[derive(Default)]
pub struct KeyDecoder {
    pending: Vec<u8>,
}

impl KeyDecoder {
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<KeyPress> {
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
    pub fn give_up(&mut self) -> Option<KeyPress> {
        let pending = std::mem::take(&mut self.pending);
        match pending.as_slice() {
            [] => None,
            [ESC] => Some(KeyPress::Escape),
            _ => Some(KeyPress::Unknown),
        }
    }
}

/// The first key and its length; None while it is not whole.
fn first(bytes: &[u8]) -> Option<(KeyPress, usize)> {
    match bytes {
        [] | [ESC] | [ESC, b'O'] => None,
        [ESC, b'[', rest @ ..] => control_sequence(rest).map(|(key, length)| (key, length + 2)),
        [ESC, b'O', code, ..] => Some((arrow(*code), 3)),
        [ESC, ESC, ..] => Some((KeyPress::Escape, 1)),
        [ESC, ..] => Some((KeyPress::Unknown, 2)),
        [0..0x20 | 0x7f, ..] => Some((control(bytes), 1)),
        [lead, ..] => character(bytes, *lead),
    }
}

fn control(bytes: &[u8]) -> KeyPress {
    match bytes.first() {
        Some(b'\r' | b'\n') => KeyPress::Enter,
        Some(b'\t') => KeyPress::Char('\t'),
        Some(0x03) => KeyPress::Interrupt,
        Some(0x04) => KeyPress::End,
        Some(0x08 | 0x7f) => KeyPress::Backspace,
        Some(0x15) => KeyPress::EraseLine,
        Some(0x17) => KeyPress::EraseWord,
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

fn character(bytes: &[u8], lead: u8) -> Option<(KeyPress, usize)> {
    let length = match lead {
        0..0x80 => 1,
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return Some((KeyPress::Unknown, 1)),
    };
    let whole = bytes.get(..length)?;
    let c = std::str::from_utf8(whole).ok().and_then(|text| text.chars().next());
    Some(match c {
        Some(c) if !c.is_control() => (KeyPress::Char(c), length),
        Some(_) => (KeyPress::Unknown, length),
        None => (KeyPress::Unknown, 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
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
            let mut decoder = KeyDecoder::default();
            assert_eq!(decoder.feed(bytes), [KeyPress::Unknown], "{bytes:?}");
            assert!(!decoder.waits_for_more());
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
        fn any_bytes_end(bytes: Vec<u8>) {
            let mut decoder = KeyDecoder::default();
            let keys = decoder.feed(&bytes);
            proptest::prop_assert!(keys.len() <= bytes.len());
            decoder.give_up();
            proptest::prop_assert!(!decoder.waits_for_more());
        }
    }
}
