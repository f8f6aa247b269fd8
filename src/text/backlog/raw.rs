//! JSON as borrowed pieces of its text, so that every piece has a place.
//!
//! Splits one level at a time and never copies or normalises a value: spelling and duplicate keys
//! are kept.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
pub use serde_json::value::RawValue;

/// One `"name": value` of an object.
#[derive(Debug)]
pub struct Member<'a> {
    pub name: Cow<'a, str>,
    pub key: &'a RawValue,
    pub value: &'a RawValue,
}

/// The members of an object in the order of the file, including duplicate keys.
#[derive(Debug)]
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

/// The place of a piece in its text.
pub fn span(text: &str, piece: &RawValue) -> Range<usize> {
    let piece = piece.get();
    let start = piece.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start + piece.len()
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
}
