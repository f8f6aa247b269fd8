//! Messages about text that is not JSON.

use super::*;

#[test]
fn invalid_json_is_one_error_with_help() {
    for (text, told) in [
        ("", "error - the file is empty (`ralph init` writes a backlog to start from)"),
        (" \r\n\t", "error - the file is empty (`ralph init` writes a backlog to start from)"),
        ("\u{feff}", "error - the file is empty (`ralph init` writes a backlog to start from)"),
        (
            "{\n  \"a\": 1\n  \"b\": 2\n}",
            "error 3:3 this is not JSON: expected `,` or `}` (put a comma between two entries, or close the bracket)",
        ),
        (
            "{\"a\": 1,}",
            "error 1:9 this is not JSON: a comma with nothing after it (remove the comma before the bracket)",
        ),
        (
            "\u{feff}{\"ä\": 1,}",
            "error 1:9 this is not JSON: a comma with nothing after it (remove the comma before the bracket)",
        ),
        (
            "[1,\n]",
            "error 2:1 this is not JSON: a comma with nothing after it (remove the comma before the bracket)",
        ),
        (
            "{} x",
            "error 1:4 this is not JSON: there is more after its end (remove what follows the last `}`)",
        ),
        (
            "{a: 1}",
            "error 1:2 this is not JSON: expected a field name (write the name in double quotes: `\"name\": …`)",
        ),
        (
            "{'a': 1}",
            "error 1:2 this is not JSON: found a quote that is not `\"` (write names and strings in double quotes, `\"`)",
        ),
        (
            "{\n// x\n}",
            "error 2:1 this is not JSON: found a comment (JSON has no comments: remove it)",
        ),
        (
            "{\"a\" 1}",
            "error 1:6 this is not JSON: expected `:` (put a colon between name and value)",
        ),
        (
            "{\"a\": tru}",
            "error 1:10 this is not JSON: expected a value (write a string in double quotes, a number, `true`, `false`, `null`, `[…]` or `{…}`)",
        ),
        (
            "{\"a\": \"x\ny\"}",
            "error 1:9 this is not JSON: found a line break or control character in a string (write a line break as `\\n` and a tab as `\\t`)",
        ),
        (
            "{\"a\": \"\\x\"}",
            "error 1:9 this is not JSON: invalid escape (write a backslash as `\\\\`)",
        ),
        (
            "{\"a\": [1,\n",
            "error 2:1 this is not JSON: the file ends in the middle of a value (the end is missing: restore the file, or close what is open)",
        ),
        (
            "{\"a\": \"漢",
            "error 1:9 this is not JSON: the file ends in the middle of a string (the end is missing: restore the file, or close what is open)",
        ),
    ] {
        assert_eq!(problems(text), [told], "{text:?}");
    }
}
