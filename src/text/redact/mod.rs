//! Redacts secrets in output.
//!
//! A secret is the value of an environment variable with a secret-looking name, or text
//! in the format of a known kind of credential. It becomes `[redacted:KIND]`, which is
//! safe inside JSON.
//!
//! [`SecretRules`] are made once per process; a [`Redactor`] applies them to one stream. They
//! protect against accidents, such as a printed file or environment, not against an
//! agent that encodes a secret on purpose.

mod environment;
mod filter;
mod pattern;
mod patterns;
mod pem;
mod redactor;

use std::borrow::Cow;
use std::sync::Arc;

use filter::{Filter, WIDTH};
use pattern::{Credential, Lookahead, More, SecretRange};
pub use redactor::Redactor;

/// Triggers are compared by this many bytes first.
const KEY: usize = 3;

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

/// A secret at a place.
struct FoundSecret<'a> {
    kind: &'a str,
    range: SecretRange,
}

impl SecretRules {
    /// The known kinds of credentials, and secrets among environment variables.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let known = patterns::ALL.iter().flat_map(|credential| {
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
        let filter = Filter::new(triggers.iter().map(|trigger| trigger.start.as_ref()));
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
        let (_, found) = redactor.find(self, text, 0, true).ok()?;
        Some(found.kind.to_owned())
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
            let (kind, range) = match &trigger.secret {
                Secret::Value(name) => (name.as_str(), Some(SecretRange::new(0, length))),
                Secret::Credential(credential) => {
                    (credential.kind, credential.find(ahead, length, after_word)?)
                }
            };
            if let Some(range) = range {
                return Ok(Some(FoundSecret { kind, range }));
            }
        }
        Ok(None)
    }
}

fn first_bytes(start: &[u8]) -> [u8; KEY] {
    match start {
        [a, b, c, ..] => [*a, *b, *c],
        _ => [0; KEY],
    }
}

#[cfg(test)]
mod tests;
