//! Line and column of a byte.
//!
//! A file may be one line of 8 MB with thousands of problems, so no query may scan the text.

use std::ops::Range;

use serde_json::value::RawValue;

/// The byte order mark; not part of the first line.
pub const BOM: char = '\u{feff}';

const BLOCK: usize = 4096;

/// 1-based; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// The position of one byte. For many of the same text, keep a [`LineIndex`].
pub fn position(text: &str, offset: usize) -> Position {
    LineIndex::new(text).position(offset)
}

/// The place of a piece of JSON in its text.
pub fn span(text: &str, piece: &RawValue) -> Range<usize> {
    let piece = piece.get();
    let start = piece.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start + piece.len()
}

/// Built with one pass over the text.
#[derive(Debug)]
pub struct LineIndex<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    /// Characters before each block of `BLOCK` bytes.
    chars_before_block: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    pub fn new(text: &'t str) -> Self {
        let first_line = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
        let after_breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        Self {
            text,
            line_starts: std::iter::once(first_line).chain(after_breaks).collect(),
            chars_before_block: chars_before_blocks(text),
        }
    }

    pub fn position(&self, offset: usize) -> Position {
        let line = self.line(offset);
        let start = self.line_start(line);
        let column = 1 + self.chars_before(offset).saturating_sub(self.chars_before(start));
        Position { line, column }
    }

    /// The 1-based number of the byte's line.
    pub fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset).max(1)
    }

    /// The bytes of a line, without its line ending.
    pub fn line_range(&self, line: usize) -> Range<usize> {
        let start = self.line_start(line);
        let next = self.line_starts.get(line).map_or(self.text.len(), |next| next - 1);
        let ends_with_cr = self.text.get(start..next).is_some_and(|line| line.ends_with('\r'));
        start..if ends_with_cr { next - 1 } else { next }
    }

    fn line_start(&self, line: usize) -> usize {
        self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len())
    }

    fn chars_before(&self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        let block = offset / BLOCK;
        let counted = self.chars_before_block.get(block).copied().unwrap_or(0);
        let rest = self.text.as_bytes().get(block * BLOCK..offset).unwrap_or_default();
        counted + count_chars(rest)
    }
}

fn chars_before_blocks(text: &str) -> Vec<usize> {
    let counts = text.as_bytes().chunks(BLOCK).scan(0, |seen, block| {
        *seen += count_chars(block);
        Some(*seen)
    });
    std::iter::once(0).chain(counts).collect()
}

/// Every byte except UTF-8 continuation bytes begins a character.
fn count_chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_count_characters_without_the_bom() {
        for (text, offset, line, column) in [
            ("", 0, 1, 1),
            ("abc", 2, 1, 3),
            ("abc", 3, 1, 4),
            ("abc", 99, 1, 4),
            ("a\nb", 1, 1, 2),
            ("a\nb", 2, 2, 1),
            ("a\r\nb", 3, 2, 1),
            ("漢字x", 6, 1, 3),
            ("\u{feff}ab", 0, 1, 1),
            ("\u{feff}ab", 4, 1, 2),
            ("\u{feff}a\nb", 5, 2, 1),
        ] {
            let found = position(text, offset);
            assert_eq!(found, Position { line, column }, "{text:?} at {offset}");
        }
    }

    #[test]
    fn a_line_range_excludes_its_ending() {
        let index = LineIndex::new("\u{feff}a\r\nbc\n");
        assert_eq!(index.line_range(1), 3..4);
        assert_eq!(index.line_range(2), 6..8);
        assert_eq!(index.line_range(3), 9..9);
    }

    #[test]
    fn positions_in_a_long_line_are_cheap() {
        let text = "é".repeat(4 * 1024 * 1024);
        let index = LineIndex::new(&text);
        let start = std::time::Instant::now();
        for n in 0..10_000 {
            assert_eq!(index.position(text.len() - 2 * n).column, 4 * 1024 * 1024 - n + 1);
        }
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }

    proptest! {
        #[test]
        fn positions_equal_a_count_from_the_start(text in "[a\u{e9}\u{6f22}\n]{0,40}", pad in 0..9000_usize) {
            let text = format!("{}{text}", "ü".repeat(pad));
            let index = LineIndex::new(&text);
            for (offset, _) in text.char_indices().rev().take(50) {
                let before = text.get(..offset).unwrap();
                let line = 1 + before.matches('\n').count();
                let column = 1 + before.rsplit('\n').next().unwrap().chars().count();
                prop_assert_eq!(index.position(offset), Position { line, column });
            }
        }
    }
}
