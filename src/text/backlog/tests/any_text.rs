//! Any text ends in a backlog or an error.

use super::*;
use proptest::prelude::*;

const SMALL: &str = r#"{"project": "p", "description": "é", "userStories": [
  {"id": "A", "title": "t", "description": "", "criteria": ["\u00e9"], "passes": false},
  {"id": "B", "title": "t", "description": "", "acceptanceCriteria": ["c"], "passes": true,
   "dependsOn": ["A"], "skipped": null, "priority": 1.10, "x": [{"y": [1e2, {}]}]}
]}"#;

fn must_end(text: &str) {
    let parsed = parse(text);
    let errors = parsed.diagnostics.iter().filter(|one| one.is_error()).count();
    assert_eq!(parsed.backlog.is_some(), errors == 0, "{text}");
    for span in parsed.diagnostics.iter().filter_map(|one| one.span.as_ref()) {
        assert!(text.get(span.clone()).is_some(), "{span:?} in {text}");
    }
    render("f", text, &parsed.diagnostics);
}

#[test]
fn the_small_file_is_valid() {
    assert_eq!(problems(SMALL), Vec::<String>::new());
}

#[test]
fn every_truncation_is_an_error() {
    for (at, _) in SMALL.char_indices() {
        let cut = SMALL.get(..at).unwrap();
        must_end(cut);
        assert!(parse(cut).backlog.is_none(), "{cut}");
    }
}

#[test]
fn every_flipped_bit_ends_in_a_backlog_or_an_error() {
    for at in 0..SMALL.len() {
        for bit in 0..8 {
            let mut bytes = SMALL.as_bytes().to_vec();
            bytes[at] ^= 1 << bit;
            must_end(&String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn a_million_brackets_are_one_error() {
    for open in ["[", "{\"a\":", "[\"\\\"\",{"] {
        let text = open.repeat(1_000_000);
        let told = problems(&text);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("more than 64 deep"), "{}", told[0]);
    }
}

#[test]
fn at_most_ten_thousand_problems_are_kept() {
    let doubled = format!("{{{}\"a\":1}}", "\"pases\":1,".repeat(100_000));
    assert_eq!(parse(&doubled).diagnostics.len(), 10_000);
    let empty = file_with(&vec!["{}"; MAX_STORIES].join(","));
    assert_eq!(parse(&empty).diagnostics.len(), 10_000);
}

fn pieces() -> impl Strategy<Value = String> {
    let known = ["project", "description", "userStories", "id", "title", "criteria", "passes"];
    let words = known.map(|word| format!("\"{word}\":")).to_vec();
    let marks = ["{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "1", "true", "null", "\n", "é"];
    let marks: Vec<String> = marks.map(str::to_owned).to_vec();
    let piece = prop_oneof![prop::sample::select(words), prop::sample::select(marks), ".{0,3}"];
    prop::collection::vec(piece, 0..40).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn any_text_ends_in_a_backlog_or_an_error(text in pieces()) {
        must_end(&text);
    }

    #[test]
    fn any_change_of_a_valid_file_ends_in_a_backlog_or_an_error(at in 0..SMALL.len(), cut in 0..20_usize, piece in pieces()) {
        let start = SMALL.floor_char_boundary(at);
        let end = SMALL.floor_char_boundary(start + cut);
        must_end(&[SMALL.get(..start).unwrap(), &piece, SMALL.get(end..).unwrap()].concat());
    }
}
