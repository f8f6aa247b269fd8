//! PRD.json is the human's only as it was before anything untrusted ran, however that ends.

use crate::support::world::{Ends, Said, until};
use crate::support::{Prd, World};

/// What changes it, and how.
const EDITS: [(&str, &str); 6] = [
    ("marks", r#"s/"passes": false/"passes": true/"#),
    ("ids", r#"s/"US-002"/"US-009"/"#),
    ("criteria", "s/it is done/nothing/"),
    ("verify", r#"s/"test -e work.txt"/"true"/"#),
    ("order", r#"s/"US-001"/"X"/; s/"US-002"/"US-001"/; s/"X"/"US-002"/"#),
    ("project", r#"s/"demo"/"another"/"#),
];

fn backlog() -> Prd {
    Prd::stories(2).story(r#""verify": ["test -e work.txt"]"#)
}

/// The attempt's first step, then its work.
fn scripted(step: &str) -> World {
    let script = format!(
        "[default]\nsteps = [{{ run = '''{step}''' }}, {{ run = \"echo w >> work.txt\" }}, \"complete\"]\n"
    );
    World::scripted(&backlog(), &script)
}

fn gated(step: &str) -> World {
    let world = scripted("true");
    world.write(
        "ralph.toml",
        &format!("verify = ['''[ -z \"$RALPH_STORY\" ] || {{ {step}; }}''']\n"),
    );
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "gate"]);
    world
}

/// Once, and then either goes on or waits to be killed.
fn step(edit: &str, waits: bool) -> String {
    let wait = if waits { "; sleep 1000" } else { "" };
    format!("[ -e ../here ] || {{ sed -i '{edit}' PRD.json; touch ../here{wait}; }}")
}

fn killed(world: &World) -> Said {
    let mut child = world.start(&[]);
    until("the edit", || world.path("../here").exists().then_some(()));
    child.kill().unwrap();
    child.code();
    world.run(&[])
}

/// Nothing of the edit counts: marks are reverted, and everything else is the human's to decide.
fn check(case: &str, world: &World, said: &Said) {
    let text = world.read("PRD.json");
    for other in ["US-009", "nothing", "\"true\"", "another"] {
        assert!(!text.contains(other), "{case}: {text}\n{}", said.err);
    }
    let at = |id: &str| text.find(id).unwrap();
    assert!(at("US-001") < at("US-002") && at("US-002") < at("US-003"), "{case}: {text}");
    let is_asked = !case.contains("marks");
    assert_eq!(said.code, if is_asked { 4 } else { 0 }, "{case}: {}", said.err);
    assert_eq!(said.err.contains("changed what counts as done"), is_asked, "{case}: {}", said.err);
    let subjects = world.subjects().join("\n");
    for story in world.passing() {
        assert!(subjects.contains(&format!("{story}: ")), "{case}: {story} in {subjects}");
    }
}

#[test]
fn what_an_attempt_changes_of_it_never_counts() {
    for (what, edit) in EDITS {
        let world = scripted(&step(edit, false));
        check(&format!("attempt, {what}"), &world, &world.run(&[]));
    }
}

#[test]
fn what_a_gate_changes_of_it_never_counts() {
    for (what, edit) in EDITS {
        let world = gated(&step(edit, false));
        check(&format!("gate, {what}"), &world, &world.run(&[]));
    }
}

#[test]
fn what_an_attempt_changed_before_a_kill_never_counts() {
    for (what, edit) in EDITS {
        let world = scripted(&step(edit, true));
        check(&format!("attempt, {what}"), &world, &killed(&world));
    }
}

#[test]
fn what_a_gate_changed_before_a_kill_never_counts() {
    for (what, edit) in EDITS {
        let world = gated(&step(edit, true));
        check(&format!("gate, {what}"), &world, &killed(&world));
    }
}

#[test]
fn what_is_left_in_its_place_by_a_kill_is_put_back_first() {
    for (case, edit) in [
        ("broken", "echo { > PRD.json"),
        ("gone", "rm PRD.json"),
        ("pipe", "rm PRD.json; mkfifo PRD.json"),
        ("link", "cp PRD.json ../mine.json; rm PRD.json; ln -s ../mine.json PRD.json"),
    ] {
        let step = format!("[ -e ../here ] || {{ {edit}; touch ../here; sleep 1000; }}");
        let world = scripted(&step);
        let said = killed(&world);
        assert_eq!(said.code, 0, "{case}: {}", said.err);
        assert!(said.err.contains("restored the backlog"), "{case}: {}", said.err);
        assert!(!world.path("PRD.json").is_symlink(), "{case}");
        assert_eq!(world.passing().len(), 3, "{case}: {}", said.err);
        if case == "link" {
            assert!(!world.read("../mine.json").contains("\"passes\": true"), "{case}");
        }
    }
}

/// It looks like another backlog then, which has no history.
#[test]
fn a_folder_of_it_that_a_kill_left_as_a_link_is_put_back_first() {
    for ignored in [false, true] {
        let step = "[ -e ../here ] || { mv docs ../docs; ln -s ../docs docs; \
                    sed -i 's/\"passes\": false/\"passes\": true/' docs/PRD.json; touch ../here; sleep 1000; }";
        let world = scripted(step);
        let folder = world.path("docs");
        std::fs::create_dir(&folder).unwrap();
        std::fs::rename(world.path("PRD.json"), folder.join("PRD.json")).unwrap();
        world.write(".gitignore", if ignored { "docs\n" } else { "" });
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "docs"]);
        let mut child = world.start(&["docs/PRD.json"]);
        until("the edit", || world.path("../here").exists().then_some(()));
        child.kill().unwrap();
        child.code();
        let said = world.run(&["docs/PRD.json"]);
        assert_eq!(said.code, 0, "{ignored}: {}", said.err);
        assert!(said.err.contains("restored the backlog"), "{ignored}: {}", said.err);
        assert!(!folder.is_symlink() && folder.join("PRD.json").exists(), "{ignored}");
        let closed = world.subjects().iter().filter(|subject| subject.starts_with("US-")).count();
        assert_eq!(closed, 3, "{ignored}: {}", said.err);
    }
}
