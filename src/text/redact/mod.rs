//! Redacts secrets in output.
//!
//! A secret is the value of an environment variable with a secret-looking name, or text
//! in the format of a known kind of credential. It becomes `[redacted:KIND]`, which is
//! safe inside JSON.
//!
//! [`Rules`] are made once per process; a [`Redactor`] applies them to one stream. They
//! protect against accidents, such as a printed file or environment, not against an
//! agent that encodes a secret on purpose.

mod ahead;
mod environment;
mod filter;
mod pattern;
mod patterns;
mod pem;
mod redactor;
mod shapes;
mod spelling;

use std::borrow::Cow;
use std::sync::Arc;

use ahead::{Ahead, More};
use filter::{Filter, WIDTH};
use pattern::{Hit, Pattern};
pub use redactor::Redactor;

/// Triggers are compared by this many bytes first.
const KEY: usize = 3;

/// What counts as a secret here.
pub struct Rules {
    filter: Filter,
    /// Sorted by start; among equal first bytes in the order of trying.
    triggers: Vec<Trigger>,
}

/// How a secret begins.
struct Trigger {
    start: Cow<'static, [u8]>,
    what: What,
}

enum What {
    /// The whole secret: the value of the variable of this name.
    Value(String),
    Pattern(&'static Pattern),
}

/// A secret at a place.
struct Found<'a> {
    kind: &'a str,
    hit: Hit,
}

impl Rules {
    /// The known kinds of credentials, and secrets of the environment.
    pub fn new(environment: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut triggers: Vec<Trigger> = patterns::ALL.iter().flat_map(of_pattern).collect();
        for (name, value) in environment {
            triggers.extend(of_variable(&name, &value));
        }
        let order = |trigger: &Trigger| {
            let is_pattern = matches!(trigger.what, What::Pattern(_));
            (first_bytes(&trigger.start), is_pattern, usize::MAX - trigger.start.len())
        };
        triggers.sort_by_key(order);
        let filter = Filter::new(triggers.iter().map(|trigger| trigger.start.as_ref()));
        Self { filter, triggers }
    }

    /// For a complete text.
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
        Redactor::new(Arc::clone(self)).first(text)
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

    /// Fewer bytes than the filter needs.
    fn may_start(&self, bytes: &[u8]) -> bool {
        let mut starts = self.triggers.iter().map(|trigger| &trigger.start);
        starts.any(|start| start.starts_with(bytes) || bytes.starts_with(start))
    }

    /// `after_word`: the bytes before belong to the same word.
    fn look(&self, ahead: Ahead<'_>, after_word: bool) -> Result<Option<Found<'_>>, More> {
        let mut key = [0; KEY];
        for (place, byte) in key.iter_mut().enumerate() {
            let Some(there) = ahead.at(place)? else { return Ok(None) };
            *byte = there;
        }
        let first = self.triggers.partition_point(|trigger| first_bytes(&trigger.start) < key);
        let alike = self.triggers.iter().skip(first);
        for trigger in alike.take_while(|trigger| first_bytes(&trigger.start) == key) {
            if !ahead.has(0, &trigger.start)? {
                continue;
            }
            let length = trigger.start.len();
            match &trigger.what {
                What::Value(name) => {
                    return Ok(Some(Found { kind: name, hit: Hit::all(length) }));
                }
                What::Pattern(pattern) => {
                    if let Some(hit) = pattern.find(ahead, length, after_word)? {
                        return Ok(Some(Found { kind: pattern.kind, hit }));
                    }
                }
            }
        }
        Ok(None)
    }
}

fn of_pattern(pattern: &'static Pattern) -> impl Iterator<Item = Trigger> {
    let start = |text: &'static str| Cow::Borrowed(text.as_bytes());
    pattern
        .starts
        .iter()
        .map(move |text| Trigger { start: start(text), what: What::Pattern(pattern) })
}

fn of_variable(name: &str, value: &str) -> Vec<Trigger> {
    let Some(secret) = environment::secret(name, value) else { return Vec::new() };
    let trigger = |form: String| Trigger {
        start: Cow::Owned(form.into_bytes()),
        what: What::Value(environment::shown(name)),
    };
    spelling::all(secret).into_iter().map(trigger).collect()
}

fn first_bytes(start: &[u8]) -> [u8; KEY] {
    match start {
        [a, b, c, ..] => [*a, *b, *c],
        _ => [0; KEY],
    }
}

#[cfg(test)]
mod tests;
