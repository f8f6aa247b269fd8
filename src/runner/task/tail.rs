//! The end of a stream that is too long to keep.

/// The last bytes of a stream.
pub struct Tail {
    kept: Vec<u8>,
    most: usize,
}

impl Tail {
    pub fn new(most: usize) -> Self {
        Self { kept: Vec::new(), most }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let bytes = bytes.get(bytes.len().saturating_sub(self.most)..).unwrap_or(bytes);
        self.kept.extend_from_slice(bytes);
        let over = self.kept.len().saturating_sub(self.most);
        self.kept.drain(..over);
    }

    /// As text, without a partial first character.
    pub fn text(&self) -> String {
        let is_inside = |byte: &&u8| (0x80..0xc0).contains(*byte);
        let inside = self.kept.iter().take_while(is_inside).count().min(3);
        String::from_utf8_lossy(self.kept.get(inside..).unwrap_or_default()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_begins_with_a_whole_character() {
        let mut tail = Tail::new(5);
        for chunk in ["ab", "cdefgh", "i", "漢字"] {
            tail.push(chunk.as_bytes());
        }
        assert_eq!(tail.text(), "字");
        let mut tail = Tail::new(6);
        tail.push("x漢字".as_bytes());
        assert_eq!(tail.text(), "漢字");
        assert_eq!(Tail::new(4).text(), "");
    }
}
