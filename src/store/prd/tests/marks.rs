//! `set_mark`, example by example.

use super::*;

/// A file whose only story is given.
fn file_of(story: &str) -> String {
    format!(r#"{{"userStories": [{story}]}}"#)
}

fn marked(story: &str, mark: Mark) -> String {
    let whole = set_mark(&file_of(story), &id("A"), mark).unwrap();
    let story = whole.strip_prefix(r#"{"userStories": ["#).unwrap();
    story.strip_suffix("]}").unwrap().to_owned()
}

#[test]
fn a_skip_is_inserted_in_the_style_of_the_file() {
    for (before, after) in [
        (r#"{"id": "A", "passes": false}"#, r#"{"id": "A", "passes": false, "skipped": true}"#),
        (r#"{"id":"A","passes":false}"#, r#"{"id":"A","passes":false,"skipped":true}"#),
        (r#"{"passes": false, "id": "A"}"#, r#"{"passes": false, "skipped": true, "id": "A"}"#),
        (
            r#"{ "passes" : false , "id":"A"}"#,
            r#"{ "passes" : false , "skipped" : true , "id":"A"}"#,
        ),
        (
            "{\n  \"id\": \"A\",\n  \"passes\": false\n}",
            "{\n  \"id\": \"A\",\n  \"passes\": false,\n  \"skipped\": true\n}",
        ),
        (
            "{\r\n\t\"passes\":  false,\r\n\t\"id\": \"A\"\r\n}",
            "{\r\n\t\"passes\":  false,\r\n\t\"skipped\":  true,\r\n\t\"id\": \"A\"\r\n}",
        ),
        (
            "{ \"id\": \"A\"\n, \"passes\": false\n, \"x\": 1 }",
            "{ \"id\": \"A\"\n, \"passes\": false\n, \"skipped\": true\n, \"x\": 1 }",
        ),
        (
            "{\"id\": \"A\", \"title\": \"t\",\n \"x\": 1, \"passes\": false}",
            "{\"id\": \"A\", \"title\": \"t\",\n \"x\": 1, \"passes\": false, \"skipped\": true}",
        ),
    ] {
        assert_eq!(marked(before, Mark::Skipped(true)), after);
        assert_eq!(marked(before, Mark::Skipped(false)), before);
    }
}

#[test]
fn an_existing_mark_is_replaced_and_nothing_else() {
    for (before, mark, after) in [
        (
            r#"{"id":"A","passes": false,"n":1.10}"#,
            Mark::Passes(true),
            r#"{"id":"A","passes": true,"n":1.10}"#,
        ),
        (r#"{"id":"A","passes": true}"#, Mark::Passes(true), r#"{"id":"A","passes": true}"#),
        (
            r#"{"id":"\u0041","p\u0061sses" :true}"#,
            Mark::Passes(false),
            r#"{"id":"\u0041","p\u0061sses" :false}"#,
        ),
        (
            r#"{"id":"A","passes":true,"skipped": null}"#,
            Mark::Skipped(true),
            r#"{"id":"A","passes":true,"skipped": true}"#,
        ),
        (
            r#"{"skipped":true,"id":"A","passes":true}"#,
            Mark::Skipped(false),
            r#"{"skipped":false,"id":"A","passes":true}"#,
        ),
        (
            r#"{"id":"A","x":{"passes":false},"passes":false}"#,
            Mark::Passes(true),
            r#"{"id":"A","x":{"passes":false},"passes":true}"#,
        ),
    ] {
        assert_eq!(marked(before, mark), after);
    }
}

#[test]
fn a_mark_that_cannot_be_set_says_why() {
    let twice = r#"{"id":"A","passes":true},{"id":"A","passes":true}"#;
    for (text, told) in [
        (
            file_of(r#"{"id":"B","passes":true}"#),
            "no story `A` in the backlog; was it renamed or removed?",
        ),
        (
            file_of(r#"{"id":"a","passes":true}"#),
            "no story `A` in the backlog; was it renamed or removed?",
        ),
        (file_of(twice), "story `A` is in the backlog twice; change the id of one of them"),
        (file_of(r#"{"id":"A"}"#), "story `A` needs one field `passes` with `true` or `false`"),
        (
            file_of(r#"{"id":"A","passes":null}"#),
            "story `A` needs one field `passes` with `true` or `false`",
        ),
        (
            file_of(r#"{"id":"A","passes":true,"passes":true}"#),
            "story `A` needs one field `passes` with `true` or `false`",
        ),
        (
            file_of(r#"{"id":"A","passes":true,"skipped":1}"#),
            "story `A` needs one field `skipped` with `true` or `false`",
        ),
        (
            file_of("1"),
            "cannot parse the backlog: invalid type: integer `1`, expected an object at line 1 column 18",
        ),
        (
            "{}".to_owned(),
            "cannot parse the backlog: missing field `userStories` at line 1 column 2",
        ),
        (file_of("{}") + "x", "cannot parse the backlog: trailing characters at line 1 column 22"),
        (String::new(), "cannot parse the backlog: EOF while parsing a value at line 1 column 0"),
    ] {
        let error = set_mark(&text, &id("A"), Mark::Skipped(true)).unwrap_err();
        assert_eq!(error.to_string(), told, "{text}");
    }
}

#[test]
fn no_truncation_or_flipped_byte_makes_it_panic() {
    for at in 0..SMALL.len() {
        let _ = set_mark(SMALL.get(..at).unwrap(), &id("A"), Mark::Skipped(true));
        for bit in 0..8 {
            let mut bytes = SMALL.as_bytes().to_vec();
            bytes[at] ^= 1 << bit;
            let _ = set_mark(&String::from_utf8_lossy(&bytes), &id("A"), Mark::Skipped(true));
        }
    }
}

#[test]
fn deep_nesting_is_walked_over_without_recursion() {
    let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    let story = format!(r#"{{"id":"A","passes":false,"x":{deep}}}"#);
    assert!(set_mark(&file_of(&story), &id("A"), Mark::Passes(true)).is_ok());
}
