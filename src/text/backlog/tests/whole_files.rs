//! Whole files: all fields are read, and all problems are found at once.

use crate::model::{Backlog, CompletionMarkers, Story, StoryId};

use super::*;

#[test]
fn all_fields_are_read() {
    let text = r#"{
        "branchName": "x", "project": "Caf\u00e9", "description": "d",
        "userStories": [
            {"id": "US-002", "title": "b", "description": "e", "acceptanceCriteria": ["c", "d"],
             "passes": true, "dependsOn": ["US-001"], "priority": 1.10, "completionPromise": "SHIPPED",
             "signals": ["LOGIN_OK"], "stages": ["TESTS_PASS", "DOCS_COMPLETE"]},
            {"passes": false, "criteria": ["c"], "description": "f", "title": "a", "id": "US-001",
             "skipped": true, "priority": 100000000000000000000, "notes": ""}
        ]}"#;
    let id = |text: &str| StoryId::try_from(text).unwrap();
    let first = Story {
        id: id("US-002"),
        title: "b".to_owned(),
        description: "e".to_owned(),
        criteria: vec!["c".to_owned(), "d".to_owned()],
        passes: true,
        skipped: false,
        depends_on: vec![id("US-001")],
        priority: Some(1.1),
        verify: vec![],
        max_attempts: None,
        markers: CompletionMarkers {
            promise: Some("SHIPPED".to_owned()),
            signals: vec!["LOGIN_OK".to_owned()],
            stages: vec!["TESTS_PASS".to_owned(), "DOCS_COMPLETE".to_owned()],
        },
    };
    let second = Story {
        id: id("US-001"),
        title: "a".to_owned(),
        description: "f".to_owned(),
        criteria: vec!["c".to_owned()],
        passes: false,
        skipped: true,
        depends_on: vec![],
        priority: Some(1e20),
        verify: vec![],
        max_attempts: None,
        markers: CompletionMarkers::default(),
    };
    let backlog = Backlog::new("Café".to_owned(), "d".to_owned(), vec![first, second]);
    for text in [text.to_owned(), format!("\u{feff}{text}\n"), text.replace('\n', "\r\n")] {
        assert_eq!(parse(&text), Parsed { backlog: Some(backlog.clone()), diagnostics: vec![] });
    }
}

#[test]
fn all_problems_of_a_file_are_found_at_once() {
    let text = r#"{
  "project": 1,
  "descripton": "d",
  "userStories": [
    "story",
    {"id": "a b", "title": "t", "description": "d", "criteria": ["c"], "passes": false},
    {"id": "US-001", "title": "", "description": "d", "criteria": ["c"], "passes": false},
    {"id": "us-001", "title": "t", "description": "d", "criteria": [1], "passes": false},
    {"id": "US-003", "title": "t", "description": "d", "criteria": ["c"], "passes": "no"},
    {"id": "US-004", "title": "t", "description": "d", "criteria": ["c"], "passes": false, "passes": false},
    {"id": "US-005", "title": "t", "description": "d", "criteria": ["c"], "passes": false, "depends_on": ["US-5"]},
    {"id": "US-006", "title": "t", "description": "d", "criteria": ["c"], "passes": false, "depends_on": ["US-006"]},
    {"id": "US-007", "title": "t", "description": "d", "criteria": [], "passes": false}
  ]
}"#;
    let told = problems(text);
    let expected = [
        "error 2:14 `project` must be",
        "error 3:3 the file has no `description` (rename `descripton` to",
        "error 5:5 story number 1 must be an object",
        "error 6:12 `a b` is not a valid story id",
        "error 7:31 the title of story `US-001` is empty",
        "error 8:12 the id `us-001` differs only by case from `US-001` on line 7",
        "error 8:69 `criteria` of story `us-001` must be",
        "error 9:85 `passes` of story `US-003` must be",
        "error 10:92 duplicate field `passes`",
        "error 11:107 story `US-005` depends on `US-5`, which does not exist (did you mean `US-005`?)",
        "error 12:107 story `US-006` depends on itself",
        "warning 13:68 story `US-007` has no criteria",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}\n{expected}");
    }
}

fn chain(stories: usize, wait_for: impl Fn(usize) -> String) -> String {
    let one = |n: usize| {
        let story = GOOD.replacen("\"A\"", &format!("\"US-{n:05}\""), 1);
        story.replacen("false", &format!("false, \"depends_on\": [\"{}\"]", wait_for(n)), 1)
    };
    file_with(&(0..stories).map(one).collect::<Vec<_>>().join(","))
}

#[test]
fn a_cycle_of_ten_thousand_stories_needs_no_stack() {
    let text = chain(MAX_STORIES, |n| format!("US-{:05}", (n + 1) % MAX_STORIES));
    let told = problems(&text);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("`US-00000` → `US-00001` → "), "{}", told[0]);
}

#[test]
fn all_unknown_dependencies_are_counted() {
    let text = chain(MAX_STORIES, |n| format!("XX-{:05}", n));
    let parsed = parse(&text);
    assert_eq!(parsed.diagnostics.len(), MAX_STORIES);
    assert!(render("f", &text, &parsed.diagnostics).ends_with("10000 errors\n"));
}
