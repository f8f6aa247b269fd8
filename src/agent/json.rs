//! JSON lines, read leniently and no further than needed.
//!
//! Most of a stream is nested data that no decoder needs. Skipping it is three times as fast as
//! parsing it; the few fields that matter are then parsed by serde. A line that is not a JSON
//! object is recognized; nested values that are not asked for are not checked. Key order is not
//! stable, fields come and go between versions, and their types change: every field is taken raw,
//! so that a surprise in one of them never loses the line.

use serde::Deserialize;

use crate::text::backlog::json::behind_string;

/// Further fields of an object are not kept, so that no line uses much more memory than its text.
const MAX_FIELDS: usize = 64;
/// Nearly every line has fewer fields.
const USUAL_FIELDS: usize = 32;
/// A JSON value as it is written; None if it is missing or null.
#[derive(Clone, Copy, Debug, Default)]
pub struct RawJson<'a>(Option<&'a str>);

impl<'a> RawJson<'a> {
    pub fn of(raw: &'a str) -> Self {
        Self((raw != "null").then_some(raw))
    }

    /// None if it has another type.
    pub fn read<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.0?).ok()
    }

    pub fn text(self) -> Option<String> {
        self.read()
    }

    /// To compare with a text that needs no escapes; empty if it is not a text.
    pub fn word(self) -> &'a str {
        self.0.and_then(|raw| raw.strip_prefix('"')?.strip_suffix('"')).unwrap_or_default()
    }

    pub fn is_present(self) -> bool {
        self.0.is_some()
    }

    /// The items of an array.
    pub fn items(self) -> impl Iterator<Item = Self> {
        let mut rest = Cursor { text: self.0.unwrap_or_default(), at: 0 };
        std::iter::from_fn(move || {
            let is_next = matches!(rest.take()?, b'[' | b',');
            is_next.then(|| rest.value().map(Self::of))?
        })
    }

    pub fn object(self) -> JsonObject<'a> {
        JsonObject::new(self.0.unwrap_or_default())
    }
}

/// An object that is read as far as its fields are asked for.
pub struct JsonObject<'a> {
    rest: Cursor<'a>,
    seen: Vec<(&'a str, RawJson<'a>)>,
    is_whole: bool,
}

impl<'a> JsonObject<'a> {
    pub fn new(text: &'a str) -> Self {
        let (rest, seen) = (Cursor { text, at: 0 }, Vec::with_capacity(USUAL_FIELDS));
        Self { rest, seen, is_whole: false }
    }

    /// Names are compared as they are written, between their quotes.
    pub fn get(&mut self, name: &str) -> RawJson<'a> {
        if let Some((_, value)) = self.seen.iter().find(|(key, _)| *key == name) {
            return *value;
        }
        while let Some((key, value)) = self.advance() {
            if key == name {
                return value;
            }
        }
        RawJson::default()
    }

    /// Whether the text is an object, from its start to its end.
    pub fn is_whole(&mut self) -> bool {
        while self.advance().is_some() {}
        self.is_whole
    }

    fn advance(&mut self) -> Option<(&'a str, RawJson<'a>)> {
        let Some(field) = self.next_field() else {
            // The text is over, or not an object: nothing more is read.
            self.rest = Cursor { text: "", at: 0 };
            return None;
        };
        if self.seen.len() < MAX_FIELDS {
            self.seen.push(field);
        }
        Some(field)
    }

    fn next_field(&mut self) -> Option<(&'a str, RawJson<'a>)> {
        match (self.rest.at == 0, self.rest.take()?) {
            (true, b'{') if self.rest.peek()? == b'}' => return self.next_field(),
            (true, b'{') | (false, b',') => {}
            (false, b'}') => {
                self.is_whole = self.rest.peek().is_none();
                return None;
            }
            _ => return None,
        }
        let key = self.rest.value()?.strip_prefix('"')?.strip_suffix('"')?;
        let value = (self.rest.take()? == b':').then(|| self.rest.value())??;
        Some((key, RawJson::of(value)))
    }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The next byte that is not white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !byte.is_ascii_whitespace() {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    #[inline]
    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn value(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let (bytes, start) = (self.text.as_bytes(), self.at);
        self.at = match first {
            b'"' => behind_string(bytes, start)?,
            b'{' | b'[' => behind_nested(bytes, start)?,
            _ => behind_scalar(bytes, start)?,
        };
        self.text.get(start..self.at)
    }
}

fn behind_nested(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = behind_string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

fn behind_scalar(bytes: &[u8], start: usize) -> Option<usize> {
    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
    let length = bytes.get(start..)?.iter().position(ends)?;
    (length > 0).then_some(start + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn collected(text: &str) -> Option<Vec<(&str, &str)>> {
        let mut object = JsonObject::new(text);
        let is_whole = object.is_whole();
        let members = object.seen.into_iter();
        is_whole.then(|| members.map(|(key, value)| (key, value.0.unwrap_or("null"))).collect())
    }

    #[test]
    fn text_that_is_not_an_object_is_refused() {
        for bad in [
            "",
            " ",
            "x",
            "[1]",
            "\"a\"",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1",
            "{\"a\":1}}",
            "{\"a\":1} x",
            "{\"a\":\"x}",
            "{a:1}",
            "{\"a\":1,}",
            "{\"a\":\"\\",
        ] {
            assert_eq!(collected(bad), None, "{bad}");
        }
    }

    #[test]
    fn strings_may_contain_quotes_and_brackets() {
        let text = r#" { "a\"b" : "}\\" , "c":{"d":["]\"",{}]} ,"e":-1.5e3}"#;
        let found = collected(text).unwrap();
        let expected = [("a\\\"b", "\"}\\\\\""), ("c", "{\"d\":[\"]\\\"\",{}]}"), ("e", "-1.5e3")];
        assert_eq!(found, expected);
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\{}\\[\\],:\u{e9}\n]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"\\\\]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn an_object_is_read_as_far_as_it_is_asked_for() {
        let mut object = JsonObject::new(r#"{"a":null,"b":"x","c":[1, 2],"d":"#);
        assert!(!object.get("a").is_present());
        assert_eq!((object.get("b").word(), object.get("a").word()), ("x", ""));
        assert_eq!(object.seen.len(), 2);
        let items: Vec<u8> = object.get("c").items().filter_map(RawJson::read).collect();
        assert_eq!(items, [1, 2]);
        assert!(!object.is_whole() && !object.get("d").is_present());
    }

    proptest! {
        #[test]
        fn members_are_those_that_a_parser_finds(
            object in prop::collection::btree_map("[a-z\"\\\\]{0,4}", json(), 0..5),
            pretty in any::<bool>(),
        ) {
            let value = Value::Object(object.clone().into_iter().collect());
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let found: std::collections::BTreeMap<String, Value> = collected(&text)
                .unwrap()
                .into_iter()
                .map(|(key, raw)| {
                    let key: String = serde_json::from_str(&format!("\"{key}\"")).unwrap();
                    (key, serde_json::from_str(raw).unwrap())
                })
                .collect();
            prop_assert_eq!(found, object);
        }

        #[test]
        fn no_text_causes_a_panic(text in "[{}\\[\\]\",:\\\\a1 ]{0,24}") {
            let _ = collected(&text);
        }
    }
}
