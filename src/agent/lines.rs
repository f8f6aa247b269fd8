//! Splits bytes into lines, independent of their chunks, in bounded memory.

use memchr::memchr;

/// A longer line is cut here: its rest is skipped.
pub const MAX_LINE: usize = 64 * 1024 * 1024;
/// What the buffer may keep allocated between lines.
const KEEP: usize = 1024 * 1024;

#[derive(Default)]
pub struct Lines {
    /// The start of a line whose end has not come yet.
    pending: Vec<u8>,
    /// The current line is over the cap, and its start was passed on already.
    cut: bool,
}

impl Lines {
    /// Calls `each` with every complete line, without its line end.
    pub fn push(&mut self, chunk: &[u8], mut each: impl FnMut(&[u8])) {
        let mut rest = chunk;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            self.complete(line, &mut each);
            rest = after.get(1..).unwrap_or_default();
        }
        self.hold(rest, &mut each);
    }

    /// The output is over: a rest without a line end is a line too.
    pub fn finish(self, mut each: impl FnMut(&[u8])) {
        if !self.cut && !self.pending.is_empty() {
            each(trim_cr(&self.pending));
        }
    }

    fn complete(&mut self, tail: &[u8], each: &mut impl FnMut(&[u8])) {
        if self.cut {
            self.cut = false;
        } else if self.pending.is_empty() {
            each(trim_cr(tail));
        } else {
            self.hold(tail, each);
            if !std::mem::take(&mut self.cut) {
                each(trim_cr(&self.pending));
            }
        }
        self.pending.clear();
        self.pending.shrink_to(KEEP);
    }

    fn hold(&mut self, part: &[u8], each: &mut impl FnMut(&[u8])) {
        if self.cut {
            return;
        }
        let room = MAX_LINE - self.pending.len();
        let (fits, over) = part.split_at(part.len().min(room));
        self.pending.extend_from_slice(fits);
        if !over.is_empty() {
            each(&self.pending);
            self.cut = true;
            self.pending = Vec::new();
        }
    }
}

fn trim_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines_of(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for chunk in chunks {
            lines.push(chunk, |line| seen.push(line.to_vec()));
        }
        lines.finish(|line| seen.push(line.to_vec()));
        seen
    }

    #[test]
    fn line_ends_are_removed() {
        assert_eq!(lines_of(&[b"a\r\nb\n\nc"]), [&b"a"[..], b"b", b"", b"c"]);
        assert_eq!(lines_of(&[b"a", b"\r", b"\n", b"\0b\n"]), [&b"a"[..], b"\0b"]);
    }

    #[test]
    fn a_line_over_the_cap_is_cut_and_the_next_one_is_read() {
        let chunk = vec![b'x'; 1024 * 1024];
        let mut lines = Lines::default();
        let mut lengths = Vec::new();
        for _ in 0..(MAX_LINE / chunk.len() + 3) {
            lines.push(&chunk, |line| lengths.push(line.len()));
        }
        lines.push(b"tail\nnext\n", |line| lengths.push(line.len()));
        assert_eq!(lengths, [MAX_LINE, 4]);
        assert!(lines.pending.capacity() <= KEEP);
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(text in "[ab\r\n]{0,40}", cuts in prop::collection::vec(0usize..40, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= bytes.len()).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(lines_of(&chunks), lines_of(&[bytes]));
        }
    }
}
