//! The parts of a pattern.

use super::ahead::{Ahead, Class, More, REACH};
use super::pem;

/// A known kind of credential: how it begins, and what follows.
pub struct Pattern {
    /// In the marker.
    pub kind: &'static str,
    /// Each of at least three bytes.
    pub starts: &'static [&'static str],
    /// Its start is also the end of ordinary words.
    pub stands_alone: bool,
    pub follows: Follows,
}

pub enum Follows {
    /// Bytes of a class, so many at least, and no further ones after `most`.
    Run { class: Class, least: usize, most: usize },
    /// Anything else, given the length of the start.
    Shape(fn(Ahead<'_>, usize) -> Result<Option<Hit>, More>),
}

/// The secret range, counted from the start.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    pub from: usize,
    pub to: usize,
    /// How it continues after that.
    pub rest: Option<Rest>,
}

/// The rest of a secret that was already marked.
#[derive(Clone, Copy, Debug)]
pub enum Rest {
    Run(Class),
    KeyBlock,
}

/// Bytes that are part of it; then it ends, or may continue.
pub struct Swallowed {
    pub length: usize,
    pub is_over: bool,
}

impl Hit {
    pub fn all(length: usize) -> Self {
        Self { from: 0, to: length, rest: None }
    }

    pub fn part(from: usize, to: usize) -> Self {
        Self { from, to, rest: None }
    }

    /// Ends with a run that was counted from `counted`; beyond the reach it continues uncounted.
    pub fn with_run(from: usize, counted: usize, to: usize, class: Class) -> Self {
        let rest = (to - counted >= REACH).then_some(Rest::Run(class));
        Self { from, to, rest }
    }
}

impl Rest {
    pub fn swallow(self, ahead: Ahead<'_>) -> Result<Swallowed, More> {
        match self {
            Self::Run(class) => {
                let length = ahead.while_there(class);
                Ok(Swallowed { length, is_over: ahead.at(length).is_ok() })
            }
            Self::KeyBlock => pem::swallow(ahead),
        }
    }
}

impl Pattern {
    /// Whatever the start, at least `least` bytes of the class after it.
    pub const fn open(
        kind: &'static str,
        starts: &'static [&'static str],
        class: Class,
        least: usize,
    ) -> Self {
        let follows = Follows::Run { class, least, most: usize::MAX };
        Self { kind, starts, stands_alone: false, follows }
    }

    /// An exact number.
    pub const fn exact(
        kind: &'static str,
        starts: &'static [&'static str],
        class: Class,
        length: usize,
    ) -> Self {
        let follows = Follows::Run { class, least: length, most: length };
        Self { kind, starts, stands_alone: false, follows }
    }

    pub const fn shape(
        kind: &'static str,
        starts: &'static [&'static str],
        find: fn(Ahead<'_>, usize) -> Result<Option<Hit>, More>,
    ) -> Self {
        Self { kind, starts, stands_alone: false, follows: Follows::Shape(find) }
    }

    pub const fn alone(mut self) -> Self {
        self.stands_alone = true;
        self
    }

    /// `length`: of the start, which is there.
    pub fn find(
        &self,
        ahead: Ahead<'_>,
        length: usize,
        after_word: bool,
    ) -> Result<Option<Hit>, More> {
        if self.stands_alone && after_word {
            return Ok(None);
        }
        match self.follows {
            Follows::Shape(find) => find(ahead, length),
            Follows::Run { class, least, most } => {
                let end = ahead.run(length, class, REACH.min(most.saturating_add(1)))?;
                let fits = (least..=most).contains(&(end - length));
                let is_one = fits && is_varied(ahead.part(length, end));
                Ok(is_one.then(|| Hit::with_run(0, length, end, class)))
            }
        }
    }
}

/// `ghp_xxxxxxxx…` and `AKIA0000…` in documentation are not secrets.
pub fn is_varied(bytes: &[u8]) -> bool {
    let seen = bytes.iter().fold(0u128, |seen, byte| seen | 1 << (byte & 127));
    seen.count_ones() > 5
}
