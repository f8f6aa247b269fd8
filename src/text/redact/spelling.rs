//! Spellings of a value in an agent's output.
//!
//! Events are JSON, and a tool's result may be JSON inside JSON; serialisers differ in what
//! they escape. Most values have one spelling.

use std::fmt::Write;

/// Without duplicates.
pub fn all(value: &str) -> Vec<String> {
    let mut all = vec![value.to_owned(), in_url(value)];
    for spelt in [in_json, in_ascii_json, in_slashed_json, in_web_json] {
        let once = spelt(value);
        all.push(in_json(&once));
        all.push(once);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// JavaScript, serde_json.
fn in_json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(value).to_owned()
}

/// Python.
fn in_ascii_json(value: &str) -> String {
    escaped(&in_json(value), |c| !c.is_ascii())
}

/// Go.
fn in_web_json(value: &str) -> String {
    escaped(&in_json(value), |c| matches!(c, '<' | '>' | '&'))
}

/// PHP.
fn in_slashed_json(value: &str) -> String {
    in_ascii_json(value).replace('/', "\\/")
}

fn escaped(text: &str, which: fn(char) -> bool) -> String {
    let mut spelt = String::with_capacity(text.len());
    for c in text.chars() {
        if which(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(spelt, "\\u{unit:04x}");
            }
        } else {
            spelt.push(c);
        }
    }
    spelt
}

fn in_url(value: &str) -> String {
    let mut spelt = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            spelt.push(char::from(byte));
        } else {
            let _ = write!(spelt, "%{byte:02X}");
        }
    }
    spelt
}
