//! Diagnostics as text, character by character.

use super::*;

#[test]
fn all_problems_of_a_file_are_rendered() {
    let text = "\u{feff}{\r
  \"project\": \"shop\",\r
  \"description\": 7,\r
  \"userStories\": [\r
    {\"id\": \"US-001\", \"titel\": \"Log in\", \"description\": \"…\", \"criteria\": [], \"passes\": false},\r
\t{\"id\": \"US-002\", \"title\": \"漢字\", \"description\": \"\", \"criteria\": [\"x\"], \"passes\": false, \"depends_on\": [\"US-01\"]}\r
  ]\r
}\r
";
    let expected = "\
error: PRD.json:3:18: `description` must be a string, found a number
  |
3 |   \"description\": 7,
  |                  ^
  = help: write it in double quotes: `\"description\": \"…\"`

error: PRD.json:5:22: story `US-001` has no `title`
  |
5 |     {\"id\": \"US-001\", \"titel\": \"Log in\", \"description\": \"…\", \"criteri…
  |                      ^^^^^^^
  = help: rename `titel` to `title`

error: PRD.json:6:104: story `US-002` depends on `US-01`, which does not exist
  |
6 | …n\": \"\", \"criteria\": [\"x\"], \"passes\": false, \"depends_on\": [\"US-01\"]}
  |                                                             ^^^^^^^
  = help: did you mean `US-001`?

warning: PRD.json:5:73: story `US-001` has no criteria
  |
5 | …el\": \"Log in\", \"description\": \"…\", \"criteria\": [], \"passes\": false},
  |                                                 ^^
  = help: add at least one criterion that an agent can check

3 errors, 1 warning
";
    assert_eq!(render("PRD.json", text, &parse(text).diagnostics), expected);
}

#[test]
fn carets_line_up_below_visible_control_characters() {
    let text = "\t\u{202e}\"\u{1b}[2J\" x";
    let at = text.find('"').unwrap();
    let problem = Diagnostic::warning("odd").at(at..text.len() - 2);
    let expected = "\
warning: a\\x1bb:1:3: odd
  |
1 |   \\u{202e}\"\\x1b[2J\" x
  |           ^^^^^^^^^

1 warning
";
    assert_eq!(render("a\u{1b}b", text, &[problem]), expected);
}

#[test]
fn a_long_line_is_cut_around_the_problem() {
    let text = format!("{}HERE{}", "ä".repeat(5000), "b".repeat(5000));
    let problem = Diagnostic::error("long").at(10_000..10_004);
    let rendered = render("f", &text, std::slice::from_ref(&problem));
    let lines: Vec<&str> = rendered.lines().collect();
    assert_eq!(lines[0], "error: f:1:5001: long");
    assert_eq!(lines[2], format!("1 | …{}HERE{}…", "ä".repeat(30), "b".repeat(34)));
    assert_eq!(lines[3], format!("  | {}^^^^", " ".repeat(31)));
    let whole = Diagnostic { span: Some(0..text.len()), ..problem };
    let rendered = render("f", &text, &[whole]);
    assert_eq!(rendered.lines().nth(3).unwrap(), format!("  | {}", "^".repeat(68)));
}

#[test]
fn errors_come_first_and_at_most_fifty_are_shown() {
    let text = "x".repeat(100);
    let mut all: Vec<Diagnostic> =
        (0..362).map(|_| Diagnostic::warning("later").at(0..1)).collect();
    all.push(Diagnostic::error("second").at(9..10));
    all.push(Diagnostic::error("first").at(4..5));
    let rendered = render("f", &text, &all);
    let heads: Vec<&str> = rendered.lines().filter(|line| line.contains(": f:")).collect();
    assert_eq!(heads.len(), 50);
    assert_eq!(
        heads[..3],
        ["error: f:1:5: first", "error: f:1:10: second", "warning: f:1:1: later"]
    );
    assert!(
        rendered.ends_with("\n\n… and 314 more problems\n\n2 errors, 362 warnings\n"),
        "{rendered}"
    );
    let one_more = render("f", &text, &all[..51]);
    assert!(one_more.contains("… and 1 more problem\n"), "{one_more}");
    assert_eq!(render("f", &text, &[]), "");
}

#[test]
fn a_problem_can_be_at_the_end_or_in_the_whole_file() {
    let rendered = render("f", "{\n", &parse("{\n").diagnostics);
    assert!(rendered.starts_with("error: f:2:1: invalid JSON: the file ends in the middle of an object\n  |\n2 |\n  | ^\n"), "{rendered}");
    let rendered = render("f", "", &parse("").diagnostics);
    let expected = "error: f: the file is empty\n  = help: delete it, and create a sample with `ralph init`\n\n1 error\n";
    assert_eq!(rendered, expected);
}
