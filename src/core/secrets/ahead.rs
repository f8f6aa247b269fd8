//! A look at the bytes that come next, as far as they are there.
//!
//! Whoever asks for a byte that has not come yet gets [`More`] and decides later.
//! A rule that only looks through here decides the same however the bytes are cut.

/// The answer depends on bytes that have not come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More;

pub type Class = fn(u8) -> bool;

/// No rule counts further than this: what is held back is bounded.
pub const REACH: usize = 512;

#[derive(Clone, Copy)]
pub struct Ahead<'a> {
    bytes: &'a [u8],
    /// Nothing comes after them.
    is_all: bool,
}

impl<'a> Ahead<'a> {
    pub fn new(bytes: &'a [u8], is_all: bool) -> Self {
        Self { bytes, is_all }
    }

    /// None behind the end of everything.
    pub fn at(&self, place: usize) -> Result<Option<u8>, More> {
        match self.bytes.get(place) {
            Some(byte) => Ok(Some(*byte)),
            None if self.is_all => Ok(None),
            None => Err(More),
        }
    }

    pub fn is(&self, place: usize, class: Class) -> Result<bool, More> {
        Ok(self.at(place)?.is_some_and(class))
    }

    pub fn has(&self, from: usize, literal: &[u8]) -> Result<bool, More> {
        let there = self.bytes.get(from..).unwrap_or_default();
        if there.len() >= literal.len() {
            return Ok(there.starts_with(literal));
        }
        if self.is_all || !literal.starts_with(there) { Ok(false) } else { Err(More) }
    }

    /// The end of the bytes of a class, after at most so many of them.
    pub fn run(&self, from: usize, class: Class, most: usize) -> Result<usize, More> {
        let mut end = from;
        while end - from < most && self.is(end, class)? {
            end += 1;
        }
        Ok(end)
    }

    /// What a run went over.
    pub fn part(&self, from: usize, to: usize) -> &'a [u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// What is there of a class now; no decision hangs on where it ends.
    pub fn while_there(&self, class: Class) -> usize {
        self.bytes.iter().position(|byte| !class(*byte)).unwrap_or(self.bytes.len())
    }

    pub fn from(&self, place: usize) -> Self {
        Self { bytes: self.bytes.get(place..).unwrap_or_default(), is_all: self.is_all }
    }
}
