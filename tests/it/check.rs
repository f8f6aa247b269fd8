//! Bad input: clear, all at once, and nothing written.

use crate::support::{Prd, World};

#[test]
fn all_problems_are_reported_at_once_with_their_place() {
    let world = World::new();
    let text = r#"{
  "project": "demo",
  "description": "d",
  "userStories": [
    {"id": "US-001", "title": "a", "description": "", "criteria": ["x"], "passes": false, "depends_on": ["US-02"]},
    {"id": "us-001", "title": "b", "description": "", "criteria": ["x"], "passes": "no"},
    {"id": "US-002", "title": "c", "description": "", "criteria": ["x"], "passes": false, "depends_on": ["US-003"]},
    {"id": "US-003", "title": "d", "description": "", "criteria": ["x"], "passes": false, "depends_on": ["US-002"]}
  ]
}
"#;
    world.write("PRD.json", text);
    for words in [vec!["check"], vec!["run", "--agent", "mock"], vec!["run", "--dry-run"]] {
        let said = world.ralph(&words);
        assert_eq!(said.code, 1, "{words:?}");
        let told = format!("{}{}", said.out, said.err);
        for text in [
            "PRD.json:5:",
            "did you mean `US-002`?",
            "PRD.json:6:",
            "differs only by case",
            "`US-002` → `US-003` → `US-002`",
        ] {
            assert!(told.contains(text), "{words:?}: {text} is not in\n{told}");
        }
    }
    assert_eq!(world.read("PRD.json"), text);
    assert!(!world.path(".ralph").exists());
    assert_eq!(world.git(&["for-each-ref", "refs/ralph"]), "");
}

#[test]
fn unusable_files_have_different_errors() {
    let world = World::new();
    world.write("folder/x", "");
    world.write("empty.json", "");
    world.write("no-json", "hello");
    std::fs::write(world.path("latin1"), b"{\"project\": \"caf\xe9\"}").unwrap();
    std::fs::write(world.path("huge"), vec![b' '; 8 * 1024 * 1024 + 1]).unwrap();
    world.write("deep", &"[".repeat(100_000));
    for (file, told) in [
        ("missing.json", "ralph init"),
        ("folder", "is a folder"),
        ("empty.json", "empty"),
        ("no-json", "1:1"),
        ("latin1", "UTF-8"),
        ("huge", "8 MB"),
        ("deep", "64"),
    ] {
        let said = world.ralph(&["check", file]);
        assert_eq!(said.code, 1, "{file}");
        let all = format!("{}{}", said.out, said.err);
        assert!(all.contains(told), "{file}: {all}");
    }
}

#[test]
fn doubts_fail_only_when_asked_to() {
    let world = World::new();
    world.write("PRD.json", &Prd::stories(2).story(r#""dependson": []"#).text());
    let said = world.ralph(&["check"]);
    assert_eq!(said.code, 0);
    assert!(said.out.contains("warning: PRD.json:"), "{}", said.out);
    assert!(said.out.contains("depends_on"), "{}", said.out);
    assert_eq!(world.ralph(&["check", "--strict"]).code, 1);
}

#[test]
fn more_stories_than_the_limit_allows_is_a_doubt() {
    let world = World::new();
    world.write("PRD.json", &Prd::stories(51).text());
    let said = world.ralph(&["check", "--strict"]);
    assert_eq!(said.code, 1);
    assert!(
        said.out.contains(
            "51 stories are open, but a run stops after 50 iterations (`max_iterations`)"
        ),
        "{}",
        said.out
    );
    world.write("ralph.toml", "max_iterations = 60\n");
    let said = world.ralph(&["check", "--strict"]);
    assert_eq!((said.code, said.out.as_str()), (0, "PRD.json: ok, 51 stories, 51 open\n"));
}

#[test]
fn a_backlog_of_another_repository_is_checked_with_the_settings_there() {
    let (world, elsewhere) = (World::new(), World::without_repository());
    world.write("PRD.json", &Prd::stories(2).text());
    world.write("ralph.toml", "max_iterations = 1\n");
    let said = elsewhere.ralph(&["check", world.path("PRD.json").to_str().unwrap()]);
    assert!(
        said.out
            .contains("2 stories are open, but a run stops after 1 iteration (`max_iterations`)"),
        "{}",
        said.out
    );
}
