//! What rules look at, and what they find: bytes that may not all have arrived, and a secret's range.

/// The answer depends on bytes that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More;

pub type ByteClass = fn(u8) -> bool;

/// The secret at the start of the lookahead, if there is one.
pub type Match = Result<Option<SecretRange>, More>;

/// The longest lookahead, which limits what is held back.
pub const REACH: usize = 512;

/// How many bytes before a start a rule can look at.
pub const BEHIND: usize = 16;

/// The bytes that have arrived. Asking for a later one yields [`More`], and the rule decides later.
/// So a rule decides the same however the stream is cut into chunks.
#[derive(Clone, Copy)]
pub struct Lookahead<'a> {
    bytes: &'a [u8],
    /// These are the last bytes.
    is_all: bool,
    behind: [u8; BEHIND],
}

impl<'a> Lookahead<'a> {
    pub fn new(bytes: &'a [u8], is_all: bool) -> Self {
        Self { bytes, is_all, behind: [b'\n'; BEHIND] }
    }

    /// With what is before them.
    pub fn behind(self, behind: [u8; BEHIND]) -> Self {
        Self { behind, ..self }
    }

    /// Whether one of these words is right before, in any case.
    pub fn is_behind(&self, words: &[&str]) -> bool {
        words.iter().any(|word| {
            let at = BEHIND.saturating_sub(word.len());
            self.behind.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(word.as_bytes()))
        })
    }

    /// None after the end of the stream.
    pub fn at(&self, place: usize) -> Result<Option<u8>, More> {
        match self.bytes.get(place) {
            Some(byte) => Ok(Some(*byte)),
            None if self.is_all => Ok(None),
            None => Err(More),
        }
    }

    pub fn is(&self, place: usize, class: ByteClass) -> Result<bool, More> {
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
    pub fn run(&self, from: usize, class: ByteClass, most: usize) -> Result<usize, More> {
        let mut end = from;
        while end - from < most && self.is(end, class)? {
            end += 1;
        }
        Ok(end)
    }

    pub fn part(&self, from: usize, to: usize) -> &'a [u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// The bytes of a class that have arrived; no decision depends on the end.
    pub fn swallow(&self, class: ByteClass) -> Swallowed {
        let length = self.bytes.iter().position(|byte| !class(*byte)).unwrap_or(self.bytes.len());
        Swallowed { length, is_over: self.at(length).is_ok() }
    }

    pub fn from(&self, place: usize) -> Self {
        Self { bytes: self.bytes.get(place..).unwrap_or_default(), ..*self }
    }
}

/// The secret's bytes, counted from the start of the lookahead.
#[derive(Clone, Copy, Debug)]
pub struct SecretRange {
    pub from: usize,
    pub to: usize,
    /// How it continues after that.
    pub rest: Option<SecretRest>,
}

/// The rest of a secret whose marker is already written.
#[derive(Clone, Copy, Debug)]
pub enum SecretRest {
    Run(ByteClass),
    KeyBlock,
}

/// Bytes that are part of the secret; then it ends, or may continue.
pub struct Swallowed {
    pub length: usize,
    pub is_over: bool,
}

impl SecretRange {
    pub fn new(from: usize, to: usize) -> Self {
        Self { from, to, rest: None }
    }

    /// Ends with a run that was counted from `counted`; beyond the reach it continues uncounted.
    pub fn with_run(from: usize, counted: usize, to: usize, class: ByteClass) -> Self {
        let rest = (to - counted >= REACH).then_some(SecretRest::Run(class));
        Self { from, to, rest }
    }
}

pub fn base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
