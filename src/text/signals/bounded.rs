//! A text with a maximum length.

/// The most that is kept of one line, and of one escalation.
pub(super) const LIMIT: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct Bounded {
    text: String,
    overflowed: bool,
}

impl Bounded {
    pub(super) fn push(&mut self, more: &str) {
        // After a cut nothing may follow, or the result would depend on chunking.
        if self.overflowed {
            return;
        }
        let room = LIMIT - self.text.len();
        let fits = more.get(..more.floor_char_boundary(room)).unwrap_or_default();
        self.overflowed = fits.len() < more.len();
        self.make_room(fits.len());
        self.text.push_str(fits);
    }

    /// Doubling past the limit would waste half the buffer.
    fn make_room(&mut self, more: usize) {
        let needed = self.text.len() + more;
        if needed > self.text.capacity() {
            let grown = (self.text.capacity() * 2).clamp(needed, LIMIT);
            self.text.reserve_exact(grown - self.text.len());
        }
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.overflowed = false;
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Nothing was cut.
    pub(super) fn is_whole(&self) -> bool {
        !self.overflowed
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.text.capacity()
    }
}
