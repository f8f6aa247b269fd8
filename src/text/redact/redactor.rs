//! Applies the rules to one stream.

use std::sync::Arc;

use super::lookahead::{Lookahead, More, SecretRest};
use super::{FoundSecret, SecretRules, pem};

/// Yields the same bytes for every chunking, and holds back only what may become a secret: a few
/// hundred bytes, or the length of the longest value.
pub struct Redactor {
    rules: Arc<SecretRules>,
    /// Not decided yet.
    pub(super) held: Vec<u8>,
    /// Inside a secret whose marker is already written.
    rest: Option<SecretRest>,
    /// The last original bytes before `held`.
    behind: [u8; 2],
}

impl Redactor {
    pub fn new(rules: Arc<SecretRules>) -> Self {
        Self { rules, held: Vec::new(), rest: None, behind: *b"\n\n" }
    }

    /// Appends clean or redacted bytes to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let mut joined = std::mem::take(&mut self.held);
        let bytes = if joined.is_empty() {
            chunk
        } else {
            joined.extend_from_slice(chunk);
            &joined
        };
        let done = self.pass(bytes, false, out);
        self.held.extend_from_slice(bytes.get(done..).unwrap_or_default());
    }

    /// The stream is over: decides what was held back.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let bytes = std::mem::take(&mut self.held);
        self.pass(&bytes, true, out);
    }

    /// How many bytes are decided.
    fn pass(&mut self, bytes: &[u8], is_all: bool, out: &mut Vec<u8>) -> usize {
        let rules = Arc::clone(&self.rules);
        let mut done = 0;
        loop {
            done += self.swallow(Lookahead::new(bytes, is_all).from(done));
            if self.rest.is_some() {
                break;
            }
            match self.find(&rules, bytes, done, is_all) {
                Ok((place, found)) => {
                    let (from, to) = (place + found.range.from, place + found.range.to);
                    out.extend_from_slice(bytes.get(done..from).unwrap_or_default());
                    for part in ["[redacted:", found.kind, "]"] {
                        out.extend_from_slice(part.as_bytes());
                    }
                    done = to;
                    self.rest = found.range.rest;
                }
                Err(clean) => {
                    out.extend_from_slice(bytes.get(done..clean).unwrap_or_default());
                    done = clean;
                    break;
                }
            }
        }
        self.behind = self.two_before(bytes, done);
        done
    }

    /// The rest of the previous secret, as far as it has arrived.
    fn swallow(&mut self, ahead: Lookahead<'_>) -> usize {
        let mut length = 0;
        while let Some(rest) = self.rest {
            let ahead = ahead.from(length);
            let swallowed = match rest {
                SecretRest::Run(class) => Ok(ahead.swallow(class)),
                SecretRest::KeyBlock => pem::next(ahead),
            };
            let Ok(swallowed) = swallowed else { break };
            length += swallowed.length;
            if swallowed.is_over {
                self.rest = None;
            } else if swallowed.length == 0 {
                break;
            }
        }
        length
    }

    /// The next secret, or the end of the bytes that are certainly none.
    pub(super) fn find<'a>(
        &self,
        rules: &'a SecretRules,
        bytes: &[u8],
        from: usize,
        is_all: bool,
    ) -> Result<(usize, FoundSecret<'a>), usize> {
        let ahead = Lookahead::new(bytes, is_all);
        let mut at = from;
        while let Some(place) = rules.next_candidate(bytes, at, is_all) {
            match rules.look(ahead.from(place), self.is_after_word(bytes, place)) {
                Ok(Some(found)) => return Ok((place, found)),
                Ok(None) => at = place + 1,
                Err(More) => return Err(place),
            }
        }
        Err(bytes.len())
    }

    fn two_before(&self, bytes: &[u8], place: usize) -> [u8; 2] {
        match bytes.get(..place) {
            Some([.., a, b]) => [*a, *b],
            Some([b]) => [self.behind[1], *b],
            _ => self.behind,
        }
    }

    /// The bytes before are part of the same word. The letter of `\n` is not, nor the end of a
    /// color's escape sequence.
    fn is_after_word(&self, bytes: &[u8], place: usize) -> bool {
        match self.two_before(bytes, place) {
            [b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => false,
            [b'0'..=b'9' | b'[' | b';', b'm'] => false,
            [_, before] => before.is_ascii_alphanumeric(),
        }
    }
}
