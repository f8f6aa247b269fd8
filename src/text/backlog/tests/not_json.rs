//! Messages about text that is not JSON.

use super::*;

#[test]
fn invalid_json_is_one_error_with_help() {
    for (text, told) in [
        ("", "error - the file is empty (delete it, and create a sample with `ralph init`)"),
        (" \r\n\t", "error - the file is empty (delete it, and create a sample with `ralph init`)"),
        (
            "\u{feff}",
            "error - the file is empty (delete it, and create a sample with `ralph init`)",
        ),
        (
            "{\n  \"a\": 1\n  \"b\": 2\n}",
            "error 3:3 invalid JSON: expected `,` or `}` (put a comma between two entries, or close the bracket)",
        ),
        (
            "{\"a\": 1,}",
            "error 1:9 invalid JSON: found a trailing comma (remove the comma before the bracket)",
        ),
        (
            "\u{feff}{\"ä\": 1,}",
            "error 1:9 invalid JSON: found a trailing comma (remove the comma before the bracket)",
        ),
        (
            "[1,\n]",
            "error 2:1 invalid JSON: found a trailing comma (remove the comma before the bracket)",
        ),
        (
            "{} x",
            "error 1:4 invalid JSON: found text after the end (remove everything after the last `}`)",
        ),
        (
            "{a: 1}",
            "error 1:2 invalid JSON: expected a field name (write the name in double quotes: `\"name\": …`)",
        ),
        (
            "{'a': 1}",
            "error 1:2 invalid JSON: found a quote that is not `\"` (write names and strings in double quotes, `\"`)",
        ),
        ("{\n// x\n}", "error 2:1 invalid JSON: found a comment (remove it; JSON has no comments)"),
        ("{\"a\" 1}", "error 1:6 invalid JSON: expected `:` (put a colon between name and value)"),
        (
            "{\"a\": tru}",
            "error 1:10 invalid JSON: expected a value (write a string in double quotes, a number, `true`, `false`, `null`, `[…]` or `{…}`)",
        ),
        (
            "{\"a\": \"x\ny\"}",
            "error 1:9 invalid JSON: found a line break or control character in a string (write a line break as `\\n` and a tab as `\\t`)",
        ),
        (
            "{\"a\": \"\\x\"}",
            "error 1:9 invalid JSON: invalid escape (write a backslash as `\\\\`)",
        ),
        (
            "{\"a\": [1,\n",
            "error 2:1 invalid JSON: the file ends in the middle of a value (the end is missing: close the open brackets and strings)",
        ),
        (
            "{\"a\": \"漢",
            "error 1:9 invalid JSON: the file ends in the middle of a string (the end is missing: close the open brackets and strings)",
        ),
    ] {
        assert_eq!(problems(text), [told], "{text:?}");
    }
}
