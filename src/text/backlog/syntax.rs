//! Turns the JSON parser's error into a message with help.

use serde_json::Error;
use serde_json::error::Category;

use super::diagnostic::Diagnostic;

/// The parser's error about `json`, which begins at byte `begin` of the file.
pub fn explain(json: &str, begin: usize, error: &Error) -> Diagnostic {
    let at = offset(json, error);
    let rest = json.get(at..).unwrap_or_default();
    let len = rest.chars().next().map_or(0, char::len_utf8);
    let reason = error.to_string();
    let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
    let (what, help) = if error.classify() == Category::Eof {
        (
            reason.replace("EOF while parsing", "the file ends in the middle of"),
            "the end is missing: restore the file, or close what is open",
        )
    } else {
        in_words(reason, json.get(..at).unwrap_or_default(), rest)
    };
    Diagnostic::error(format!("this is not JSON: {what}"))
        .at(begin + at..begin + at + len)
        .help(help)
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
        (_, Some('/' | '#')) => ("found a comment", "JSON has no comments: remove it"),
        (_, Some('\'' | '“' | '”')) => {
            ("found a quote that is not `\"`", "write names and strings in double quotes, `\"`")
        }
        (_, Some('}' | ']')) if before.trim_end().ends_with(',') => {
            ("a comma with nothing after it", "remove the comma before the bracket")
        }
        ("trailing characters", _) => {
            ("there is more after its end", "remove what follows the last `}`")
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
        _ => (reason, "correct it there"),
    };
    (what.to_owned(), help)
}
