//! How deep a text nests, without recursion.
//!
//! Runs before the JSON parser, so that no input makes it recurse deeply; the text may not be
//! JSON.

/// The byte of the first bracket that opens more than `max` levels.
pub fn first_deeper_than(text: &str, max: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The byte of the quote that closes the string opened at `open`, or the end of the text.
fn end_of_string(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while let Some(rest) = bytes.get(at..) {
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(found) if rest.get(found) == Some(&b'"') => return at + found,
            // The backslash and what it escapes.
            Some(found) => at += found + 2,
            None => break,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

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
