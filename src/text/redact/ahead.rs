//! Lookahead over the bytes that have arrived.
//!
//! Asking for a byte that has not arrived yields [`More`], and the rule decides later.
//! So a rule decides the same however the stream is cut into chunks.

/// The answer depends on bytes that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More;

pub type Class = fn(u8) -> bool;

/// The longest lookahead, which limits what is held back.
pub const REACH: usize = 512;

#[derive(Clone, Copy)]
pub struct Ahead<'a> {
    bytes: &'a [u8],
    /// These are the last bytes.
    is_all: bool,
}

impl<'a> Ahead<'a> {
    pub fn new(bytes: &'a [u8], is_all: bool) -> Self {
        Self { bytes, is_all }
    }

    /// None after the end of the stream.
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

    /// The end of a run of a class, after at most `most` bytes.
    pub fn run(&self, from: usize, class: Class, most: usize) -> Result<usize, More> {
        let mut end = from;
        while end - from < most && self.is(end, class)? {
            end += 1;
        }
        Ok(end)
    }

    /// The bytes of a run.
    pub fn part(&self, from: usize, to: usize) -> &'a [u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// The bytes of a class that have arrived; no decision depends on the end.
    pub fn while_there(&self, class: Class) -> usize {
        self.bytes.iter().position(|byte| !class(*byte)).unwrap_or(self.bytes.len())
    }

    pub fn from(&self, place: usize) -> Self {
        Self { bytes: self.bytes.get(place..).unwrap_or_default(), is_all: self.is_all }
    }
}
