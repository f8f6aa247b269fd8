//! Redacts secrets in output.
//!
//! A secret is the value of an environment variable with a secret-looking name, or text
//! in the format of a known kind of credential, or with a name that says so. It becomes `[redacted:KIND]`, which is
//! safe inside JSON.
//!
//! [`SecretRules`] are made once per process; a [`Redactor`] applies them to one stream. They
//! protect against accidents, such as a printed file or environment, not against an
//! agent that encodes a secret on purpose.

mod credentials;
mod environment;
mod lookahead;
mod named;
mod pem;
mod value;

use std::borrow::Cow;
use std::sync::Arc;

use credentials::Credential;
use lookahead::{BEHIND, ByteClass, Lookahead, More, SecretRange, SecretRest};

/// Triggers are compared by this many bytes first.
const KEY: usize = 3;
/// The last bytes of a text, fewer than this, cannot be filtered.
const WIDTH: usize = 5;

/// What counts as a secret here.
pub struct SecretRules {
    filter: Filter,
    /// Sorted by start; among equal first bytes in the order of trying.
    triggers: Vec<Trigger>,
}

/// How a secret begins.
struct Trigger {
    start: Cow<'static, [u8]>,
    secret: Secret,
}

enum Secret {
    /// The start is the whole secret: the value of the variable of this name.
    Value(String),
    Credential(&'static Credential),
}

impl Secret {
    /// What can follow the start.
    fn next(&self) -> ByteClass {
        match self {
            Self::Value(_) => |_| true,
            Self::Credential(credential) => credential.next,
        }
    }
}

/// The kind of a secret, and where it is.
type FoundSecret<'a> = (&'a str, SecretRange);

impl SecretRules {
    /// The known kinds of credentials, and secrets among environment variables.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let known = credentials::ALL.iter().flat_map(|credential| {
            let starts = credential.starts.iter().map(|start| Cow::Borrowed(start.as_bytes()));
            starts.map(|start| Trigger { start, secret: Secret::Credential(credential) })
        });
        let mut triggers: Vec<Trigger> = known.collect();
        for (name, value) in variables {
            let Some(value) = environment::secret(&name, &value) else { continue };
            triggers.extend(environment::spellings(value).into_iter().map(|spelling| Trigger {
                start: Cow::Owned(spelling.into_bytes()),
                secret: Secret::Value(environment::shown(&name)),
            }));
        }
        triggers.sort_by_key(|trigger| {
            let is_credential = matches!(trigger.secret, Secret::Credential(_));
            (first_bytes(&trigger.start), is_credential, usize::MAX - trigger.start.len())
        });
        let filter =
            Filter::new(triggers.iter().map(|one| (one.start.as_ref(), one.secret.next())));
        Self { filter, triggers }
    }

    /// Redacts a complete text.
    pub fn redact<'a>(self: &Arc<Self>, text: &'a str) -> Cow<'a, str> {
        if self.filter.next(text.as_bytes(), 0).is_none() {
            return Cow::Borrowed(text);
        }
        let mut clean = Vec::with_capacity(text.len());
        let mut redactor = Redactor::new(Arc::clone(self));
        redactor.push(text.as_bytes(), &mut clean);
        redactor.finish(&mut clean);
        Cow::Owned(String::from_utf8_lossy(&clean).into_owned())
    }

    /// The kind of the first secret in a complete text.
    pub fn kind_in(self: &Arc<Self>, text: &[u8]) -> Option<String> {
        let redactor = Redactor::new(Arc::clone(self));
        let (_, (kind, _)) = redactor.find(self, text, 0, true).ok()?;
        Some(kind.to_owned())
    }

    /// The next place at or after `from` where a secret begins or may begin.
    fn next_candidate(&self, bytes: &[u8], from: usize, is_all: bool) -> Option<usize> {
        let found = self.filter.next(bytes, from);
        if found.is_some() || is_all {
            return found;
        }
        let tail = bytes.len().saturating_sub(WIDTH - 1).max(from);
        (tail..bytes.len()).find(|place| self.may_start(bytes.get(*place..).unwrap_or_default()))
    }

    /// For fewer bytes than the filter needs.
    fn may_start(&self, bytes: &[u8]) -> bool {
        let mut starts = self.triggers.iter().map(|trigger| &trigger.start);
        starts.any(|start| start.starts_with(bytes) || bytes.starts_with(start))
    }

    /// The secret that begins here. `after_word`: the bytes before belong to the same word.
    fn look(
        &self,
        ahead: Lookahead<'_>,
        after_word: bool,
    ) -> Result<Option<FoundSecret<'_>>, More> {
        let [Some(a), Some(b), Some(c)] = [ahead.at(0)?, ahead.at(1)?, ahead.at(2)?] else {
            return Ok(None);
        };
        let key = [a, b, c];
        let first = self.triggers.partition_point(|trigger| first_bytes(&trigger.start) < key);
        let alike = self.triggers.iter().skip(first);
        for trigger in alike.take_while(|trigger| first_bytes(&trigger.start) == key) {
            if !ahead.has(0, &trigger.start)? {
                continue;
            }
            let length = trigger.start.len();
            let (kind, range) = match &trigger.secret {
                Secret::Value(name) => (name.as_str(), Some(SecretRange::new(0, length))),
                Secret::Credential(credential) => {
                    (credential.kind, credential.find(ahead, length, after_word)?)
                }
            };
            if let Some(range) = range {
                return Ok(Some((kind, range)));
            }
        }
        Ok(None)
    }
}

fn first_bytes(start: &[u8]) -> [u8; KEY] {
    start.first_chunk().copied().unwrap_or_default()
}

/// Applies the rules to one stream.
///
/// Yields the same bytes for every chunking, and holds back only what may become a secret: a few
/// hundred bytes, or the length of the longest value.
pub struct Redactor {
    rules: Arc<SecretRules>,
    /// Not decided yet.
    held: Vec<u8>,
    /// Inside a secret whose marker is already written.
    rest: Option<SecretRest>,
    /// The last original bytes before `held`.
    behind: [u8; BEHIND],
}

impl Redactor {
    pub fn new(rules: Arc<SecretRules>) -> Self {
        Self { rules, held: Vec::new(), rest: None, behind: [b'\n'; BEHIND] }
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
                Ok((place, (kind, SecretRange { from, to, rest }))) => {
                    let (from, to) = (place + from, place + to);
                    out.extend_from_slice(bytes.get(done..from).unwrap_or_default());
                    for part in ["[redacted:", kind, "]"] {
                        out.extend_from_slice(part.as_bytes());
                    }
                    done = to;
                    self.rest = rest;
                }
                Err(clean) => {
                    out.extend_from_slice(bytes.get(done..clean).unwrap_or_default());
                    done = clean;
                    break;
                }
            }
        }
        self.behind = self.behind(bytes, done);
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
    fn find<'a>(
        &self,
        rules: &'a SecretRules,
        bytes: &[u8],
        from: usize,
        is_all: bool,
    ) -> Result<(usize, FoundSecret<'a>), usize> {
        let ahead = Lookahead::new(bytes, is_all);
        let mut at = from;
        while let Some(place) = rules.next_candidate(bytes, at, is_all) {
            let behind = self.behind(bytes, place);
            match rules.look(ahead.from(place).behind(behind), is_after_word(behind)) {
                Ok(Some(found)) => return Ok((place, found)),
                Ok(None) => at = place + 1,
                Err(More) => return Err(place),
            }
        }
        Err(bytes.len())
    }

    /// The original bytes before a place.
    fn behind(&self, bytes: &[u8], place: usize) -> [u8; BEHIND] {
        let before = bytes.get(..place).unwrap_or_default();
        if let Some(last) = before.last_chunk() {
            return *last;
        }
        let mut behind = self.behind;
        behind.rotate_left(before.len());
        let known = BEHIND - before.len();
        behind.iter_mut().skip(known).zip(before).for_each(|(to, from)| *to = *from);
        behind
    }
}

/// The bytes before are part of the same word. The letter of `\n` is not, nor the end of a color's
/// escape sequence.
fn is_after_word(behind: [u8; BEHIND]) -> bool {
    match behind {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => false,
        [.., b'0'..=b'9' | b'[' | b';', b'm'] => false,
        [.., before] => before.is_ascii_alphanumeric(),
    }
}

type Table = Box<[bool; 1 << 16]>;

/// Finds the few places where a secret may begin, fast.
///
/// Every other place is enough: a start of four bytes is found by its first three bytes or, one place
/// further, by its last three. A hit is checked again with all four. Both checks use hash tables, so
/// there are false positives but no misses.
struct Filter {
    /// Three adjacent bytes of the first four of a start.
    threes: Table,
    /// The first four bytes of a start.
    fours: Table,
}

impl Filter {
    /// Of starts with three bytes or more, and what can follow them.
    fn new<'a>(starts: impl Iterator<Item = (&'a [u8], ByteClass)>) -> Self {
        let (mut threes, mut fours) = (Box::new([false; 1 << 16]), Box::new([false; 1 << 16]));
        for (start, next) in starts {
            let &[a, b, c, ref rest @ ..] = start else { continue };
            // After a start of three bytes, what can follow it and is not blank.
            let is_next = |d: &u8| !rest.is_empty() || next(*d);
            for d in rest.first().map_or(b'!'..=b'~', |d| *d..=*d).filter(is_next) {
                threes[hash_of_three([a, b, c, 0])] = true;
                threes[hash_of_three([b, c, d, 0])] = true;
                fours[hash([a, b, c, d])] = true;
            }
        }
        Self { threes, fours }
    }

    /// The first place at or after `from` whose four bytes may begin a secret.
    fn next(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            let twos = bytes.get(at..)?.as_chunks().0;
            let mut places = twos.array_windows().map(|[[a, b], [c, d]]| [*a, *b, *c, *d]);
            at += 2 * places.position(|four| self.threes[hash_of_three(four)])?;
            let found = [at.wrapping_sub(1), at].into_iter().find(|place| {
                let four = bytes.get(*place..).and_then(<[u8]>::first_chunk);
                *place >= from && four.is_some_and(|four| self.fours[hash(*four)])
            });
            if found.is_some() {
                return found;
            }
            at += 2;
        }
    }
}

fn hash(bytes: [u8; 4]) -> usize {
    (u32::from_le_bytes(bytes).wrapping_mul(0x9E37_79B1) >> 16) as usize
}

/// Four are read at once; the last does not count.
fn hash_of_three(bytes: [u8; 4]) -> usize {
    ((u32::from_le_bytes(bytes) << 8).wrapping_mul(0x9E37_79B1) >> 16) as usize
}

#[cfg(test)]
mod tests;
