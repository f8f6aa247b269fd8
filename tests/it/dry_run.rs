//! The whole loop without touching anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::escalation::ASKS;
use crate::support::{Prd, World};

/// Every file below a folder with its bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.insert(path.clone(), fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}

#[test]
fn it_reaches_every_story_and_changes_nothing() {
    let prd = Prd::stories(3).story(r#""depends_on": ["US-003"], "priority": 1"#);
    let world = World::with(&prd);
    world.write("ralph.toml", "max_iterations = 1\n[agent]\ncommand = \"touch ../ran\"\n");
    let before = contents(&world.root().join(".."));
    let said = world.ralph(&["run", "--dry-run"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(
        said.out,
        "Dry run: no files were changed.\nOrder: US-001 → US-002 → US-003 → US-004\n"
    );
    assert!(contents(&world.root().join("..")) == before, "something changed");
}

#[test]
fn it_works_outside_a_repository() {
    let world = World::without_repository();
    world.write("PRD.json", &Prd::stories(2).text());
    let said = world.ralph(&["run", "PRD.json", "--dry-run"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("Final: 2/2 complete"), "{}", said.err);
}

#[test]
fn it_says_what_would_be_asked() {
    let world = World::scripted(&Prd::stories(2), ASKS);
    let script = world.script();
    let said = world.ralph(&["run", "--dry-run", "--mock-script", script.to_str().unwrap()]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.out.contains("Would ask about US-001: Which database?"), "{}", said.out);
    assert!(said.out.contains("Order: US-002"), "{}", said.out);
}

#[test]
fn it_has_no_limit_of_iterations() {
    let world = World::with(&Prd::stories(60));
    let said = world.ralph(&["run", "--dry-run", "--quiet"]);
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn the_examples_do_what_they_show() {
    let world = World::without_repository();
    world.write("PRD.json", include_str!("../../PRD.example.json"));
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for (name, code, shows) in [
        ("success", 0, &["Order: US-001 → US-002"][..]),
        ("escalation", 4, &["Would ask about US-002: There is a cache already"]),
        (
            "stuck",
            4,
            &[
                "Would ask about US-002: not complete after 10 attempts",
                "about US-003: the same error 3 times",
            ],
        ),
        ("mixed-day", 4, &["Would ask about US-002: No test data", "Order: US-001 → US-003"]),
    ] {
        let script = examples.join(format!("{name}.toml"));
        let said = world.ralph(&["run", "--dry-run", "--mock-script", script.to_str().unwrap()]);
        assert_eq!(said.code, code, "{name}: {}", said.err);
        for text in shows {
            assert!(said.out.contains(text), "{name}: {text} is not in\n{}", said.out);
        }
    }
}

#[test]
fn a_bad_script_is_refused_before_anything_runs() {
    let world = World::scripted(&Prd::stories(1), "[story.US-001]\nsteps = [{ sya = \"x\" }]\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("script.toml:2:"), "{}", said.err);
    assert!(said.err.contains("did you mean `say`?"), "{}", said.err);
    assert_eq!(world.subjects(), ["backlog", "first"]);
}
