//! JSON as borrowed pieces of its text, so that every piece has a place.
//!
//! Splits one level at a time and never copies or normalizes a value: spelling and duplicate keys
//! are kept. Checks the limits of a file first, and explains the parser's errors.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Error;
use serde_json::error::Category;
pub use serde_json::value::RawValue;

use super::diagnostic::{BOM, Diagnostic};

/// The longest text.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;
/// How deep objects and arrays may nest.
pub const MAX_DEPTH: usize = 64;
/// How many words of eight bytes of a string are searched before the vector search starts.
const NEAR_WORDS: usize = 4;
const LOW_BITS: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);

/// The file's one value, if the text is JSON within the limits.
pub fn root(text: &str) -> Result<&RawValue, Diagnostic> {
    if text.len() > MAX_BYTES {
        let message = format!("the file is larger than {} MB", MAX_BYTES / 1024 / 1024);
        return Err(Diagnostic::error(message).help("split it into several backlogs"));
    }
    let json = text.strip_prefix(BOM).unwrap_or(text);
    if json.trim().is_empty() {
        let help = "delete it, and create a sample with `ralph init`";
        return Err(Diagnostic::error("the file is empty").help(help));
    }
    // Checked first, because the JSON parser recurses.
    if let Some(at) = first_deeper_than(text, MAX_DEPTH) {
        let message = format!("brackets are nested more than {MAX_DEPTH} deep");
        let help = "a backlog needs only 4 levels";
        return Err(Diagnostic::error(message).at(at..at + 1).help(help));
    }
    let begin = text.len() - json.len();
    serde_json::from_str(json).map_err(|error| explain(json, begin, &error))
}

/// The parser's error without its place.
pub fn reason(error: &Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

/// The parser's error about `json`, which begins at byte `begin` of the file.
fn explain(json: &str, begin: usize, error: &Error) -> Diagnostic {
    let at = offset(json, error);
    let rest = json.get(at..).unwrap_or_default();
    let len = rest.chars().next().map_or(0, char::len_utf8);
    let reason = reason(error);
    let (what, help) = if error.classify() == Category::Eof {
        (
            reason.replace("EOF while parsing", "the file ends in the middle of"),
            "the end is missing: close the open brackets and strings",
        )
    } else {
        in_words(&reason, json.get(..at).unwrap_or_default(), rest)
    };
    Diagnostic::error(format!("invalid JSON: {what}")).at(begin + at..begin + at + len).help(help)
}

/// The byte of the parser's error; its lines and columns count from 1, in bytes.
fn offset(json: &str, error: &Error) -> usize {
    if error.classify() == Category::Eof {
        return json.len();
    }
    let breaks = memchr::memchr_iter(b'\n', json.as_bytes()).map(|at| at + 1);
    let line = std::iter::once(0).chain(breaks).nth(error.line().saturating_sub(1));
    let after = line.unwrap_or(json.len()) + error.column();
    // It does not count a control character in a string.
    let is_control = json.as_bytes().get(after).is_some_and(u8::is_ascii_control);
    let about_it = is_control && error.to_string().starts_with("control character");
    json.floor_char_boundary(if about_it { after } else { after.saturating_sub(1) })
}

fn in_words(reason: &str, before: &str, rest: &str) -> (String, &'static str) {
    let (what, help) = match (reason, rest.chars().next()) {
        (_, Some('/' | '#')) => ("found a comment", "remove it; JSON has no comments"),
        (_, Some('\'' | '“' | '”')) => {
            ("found a quote that is not `\"`", "write names and strings in double quotes, `\"`")
        }
        (_, Some('}' | ']')) if before.trim_end().ends_with(',') => {
            ("found a trailing comma", "remove the comma before the bracket")
        }
        ("trailing characters", _) => {
            ("found text after the end", "remove everything after the last `}`")
        }
        ("key must be a string", _) => {
            ("expected a field name", "write the name in double quotes: `\"name\": …`")
        }
        ("expected `,` or `}`" | "expected `,` or `]`", _) => {
            (reason, "put a comma between two entries, or close the bracket")
        }
        ("expected `:`", _) => (reason, "put a colon between name and value"),
        ("expected value" | "expected ident", _) => (
            "expected a value",
            "write a string in double quotes, a number, `true`, `false`, `null`, `[…]` or `{…}`",
        ),
        ("invalid escape", _) => (reason, "write a backslash as `\\\\`"),
        ("invalid number", _) => {
            (reason, "write a number such as `1` or `0.5`, or put it in double quotes")
        }
        _ if reason.starts_with("control character") => (
            "found a line break or control character in a string",
            "write a line break as `\\n` and a tab as `\\t`",
        ),
        _ => (reason, "fix the syntax here"),
    };
    (what.to_owned(), help)
}

/// The byte of the first bracket that opens more than `max` levels, found without recursion.
fn first_deeper_than(text: &str, max: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = behind_string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > max {
            return Some(at);
        }
        at += 1;
    }
}

/// From an opening quote to behind the closing one.
#[inline]
pub fn behind_string(bytes: &[u8], quote: usize) -> Option<usize> {
    let mut at = quote + 1;
    loop {
        let found = at + end_or_escape(bytes.get(at..)?)?;
        if bytes.get(found) == Some(&b'"') {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

/// Most strings are short, and a vector search costs more than they are long.
#[inline]
fn end_or_escape(bytes: &[u8]) -> Option<usize> {
    let mut words = bytes.chunks_exact(8);
    for (number, word) in words.by_ref().take(NEAR_WORDS).enumerate() {
        let word = u64::from_le_bytes(word.try_into().ok()?);
        let hits = zero_bytes(word ^ QUOTES) | zero_bytes(word ^ BACKSLASHES);
        if hits != 0 {
            return Some(number * 8 + hits.trailing_zeros() as usize / 8);
        }
    }
    let near = (bytes.len() / 8).min(NEAR_WORDS) * 8;
    Some(near + memchr::memchr2(b'"', b'\\', bytes.get(near..)?)?)
}

/// The high bit of every byte that is zero; above the lowest such byte it may err.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(LOW_BITS) & !word & HIGH_BITS
}

/// One `"name": value` of an object.
pub struct Member<'a> {
    pub name: Cow<'a, str>,
    pub key: &'a RawValue,
    pub value: &'a RawValue,
}

/// The members of an object in the order of the file, including duplicate keys.
pub struct Members<'a>(pub Vec<Member<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            members.push(Member { name: name_of(key), key, value });
        }
        Ok(Members(members))
    }
}

/// The unescaped name (`p\u0061sses` is `passes`); as written if it is invalid.
pub fn name_of(key: &RawValue) -> Cow<'_, str> {
    string(key).unwrap_or(Cow::Borrowed(key.get()))
}

/// The text of a string; None for another kind or an invalid escape.
pub fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    let quoted = value.get();
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(quoted).ok().map(Cow::Owned)
}

/// The members, if it is an object.
pub fn members(value: &RawValue) -> Option<Vec<Member<'_>>> {
    serde_json::from_str(value.get()).ok().map(|Members(members)| members)
}

/// The elements, if it is an array.
pub fn elements(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// The kind of a value, for messages.
pub fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't') => "`true`",
        Some(b'f') => "`false`",
        Some(b'n') => "`null`",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::backlog::diagnostic::span;

    #[test]
    fn members_keep_their_order_spelling_and_place() {
        let text = r#" { "b" : 1.10, "p\u0061sses":true ,"b": [ 1e2 ]}"#;
        let root: &RawValue = serde_json::from_str(text).unwrap();
        let found: Vec<(String, &str)> = members(root)
            .unwrap()
            .iter()
            .map(|member| (member.name.to_string(), text.get(span(text, member.value)).unwrap()))
            .collect();
        let expected = [("b", "1.10"), ("passes", "true"), ("b", "[ 1e2 ]")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
        let key = members(root).unwrap()[1].key;
        assert_eq!(text.get(span(text, key)), Some(r#""p\u0061sses""#));
    }

    #[test]
    fn a_lone_surrogate_is_not_a_string() {
        let root: &RawValue = serde_json::from_str(r#"{"\ud800": "\ud800"}"#).unwrap();
        let all = members(root).unwrap();
        assert_eq!(all[0].name, r#""\ud800""#);
        assert_eq!(string(all[0].value), None);
    }

    #[test]
    fn kinds_of_values_have_names() {
        for (text, told) in [
            ("{}", "an object"),
            ("[]", "an array"),
            ("\"\"", "a string"),
            ("true", "`true`"),
            ("false", "`false`"),
            ("null", "`null`"),
            ("-1", "a number"),
        ] {
            let value: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(kind(value), told);
        }
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        for (text, found) in [
            ("", None),
            ("[[]]", None),
            ("[[[]]]", Some(2)),
            ("[{\"a\":[", Some(6)),
            ("[[],[],[]]", None),
            (r#"["[[[","\"[[[","\\"]"#, None),
            (r#"["\\",[["#, Some(7)),
            ("\"[[[", None),
            ("\"\\", None),
            ("]]]]][[[", Some(7)),
        ] {
            assert_eq!(first_deeper_than(text, 2), found, "{text}");
        }
    }
}
