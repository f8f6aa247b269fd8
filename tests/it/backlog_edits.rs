//! PRD.json belongs to the human, also while a run is under way.

use std::os::unix::fs::{PermissionsExt, symlink};

use ralph::model::{Event, Recorded};
use serde_json::json;

use crate::support::pty::Terminal;
use crate::support::world::{Ends, until};
use crate::support::{Prd, World};

/// Where this is not to be said, another test asks for it.
pub const MARKS_REVERTED: &str = "reverted the marks of ";

/// Runs a shell command in the middle of the first story.
fn while_running(prd: &Prd, command: &str) -> (World, crate::support::world::Said) {
    let script = format!(
        "[story.US-001]\nsteps = [{{ run = '''{command}''' }}, {{ run = \"echo work >> $RALPH_STORY.txt\" }}, \"complete\"]\n"
    );
    let world = World::scripted(prd, &script);
    let said = world.run(&[]);
    (world, said)
}

#[test]
fn only_the_bytes_of_the_marks_change() {
    let odd = "\u{feff}{ \"userStories\" : [\r\n\t{\"passes\":false ,\"id\":\"A\", \"x\": [1.10, 1e2, \"\\u00e9\"],\r\n\t \"criteria\":[], \"title\":\"T\", \"description\":\"\", \"depends_on\": []}\r\n],\"description\":\"\",\"project\":\"p\" ,\"big\": 123456789012345678901234567890}";
    let world = World::new();
    world.write("PRD.json", odd);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("PRD.json"), odd.replace("\"passes\":false", "\"passes\":true"));
    assert_eq!(world.git(&["show", "HEAD:PRD.json"]), world.read("PRD.json"));
}

#[test]
fn mode_and_symlink_stay() {
    let world = World::new();
    world.write("plans/real.json", &Prd::stories(1).text());
    std::fs::set_permissions(world.path("plans/real.json"), PermissionsExt::from_mode(0o640))
        .unwrap();
    symlink("plans/real.json", world.path("PRD.json")).unwrap();
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "backlog"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(world.path("PRD.json").is_symlink());
    let mode = world.path("plans/real.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(world.read("plans/real.json").contains("\"passes\": true"));
    assert_eq!(world.status(), "", "the target is committed, not the link");
}

#[test]
fn a_story_added_during_a_run_is_worked_on() {
    let more = Prd::stories(3).text();
    let world = World::with(&Prd::stories(2));
    std::fs::write(world.path("../more.json"), &more).unwrap();
    std::fs::write(
        world.script(),
        "[story.US-001]\nsteps = [{ run = \"cp ../more.json PRD.json\" }, { run = \"echo work >> $RALPH_STORY.txt\" }, \"complete\"]\n",
    )
    .unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-002", "US-003"]);
}

#[test]
fn a_story_that_the_human_removes_during_a_run_is_not_done() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [{ escalate = { type = "stuck", summary = "Which?", question = "Which one?" } }]
        [[story.US-001.attempts]]
        steps = [{ run = "echo work >> $RALPH_STORY.txt" }, "complete"]
    "#;
    let prd = Prd::stories(1).story(r#""depends_on": ["US-001"]"#);
    let world = World::scripted(&prd, script);
    let mut terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text("[a]");
    world.write("PRD.json", &Prd::stories(1).text());
    terminal.await_text("US-002 disappeared from the backlog");
    terminal.press("r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 4, "{screen}");
    assert_eq!(world.passing(), ["US-001"]);
    assert!(screen.contains("US-002 was removed from the backlog during the run"), "{screen}");
    assert!(screen.contains("Put the story back"), "{screen}");
    // What the human leaves out between two runs is left out.
    assert_eq!(world.run(&[]).code, 0);
}

#[test]
fn a_changed_title_of_another_story_is_taken_up() {
    let (world, said) = while_running(&Prd::stories(2), "sed -i 's/Story 2/Better 2/' PRD.json");
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects()[0], "US-002: Better 2");
}

#[test]
fn marks_set_by_the_agent_are_reverted_and_reported() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [{ run = "sed -i 's/\"passes\": false/\"passes\": true/' PRD.json" }]
        [[story.US-001.attempts]]
        steps = [{ run = "echo work >> $RALPH_STORY.txt" }, "complete"]
    "#;
    let world = World::scripted(&Prd::stories(2), script);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains(&format!("{MARKS_REVERTED}US-001, US-002")), "{}", said.err);
    let mut told = world.notices();
    told[0].as_object_mut().unwrap().remove("at").unwrap();
    let reverted = json!({ "kind": "marks_put_back", "stories": ["US-001", "US-002"] });
    assert_eq!(told, [reverted]);
    assert_eq!(world.subjects(), ["US-002: Story 2", "US-001: Story 1", "backlog", "first"]);
}

#[test]
fn what_an_attempt_or_a_gate_puts_in_its_place_is_put_back_at_once() {
    // The attempt replaces it while claiming its story, and so does the gate of the next one.
    let gate = "case $RALPH_STORY in US-002) rm PRD.json; mkfifo PRD.json;; esac";
    let script = r#"
        [story.US-001]
        steps = [{ run = "echo '{' > PRD.json; echo x > x.txt" }, "complete"]
    "#;
    let world = World::scripted(&Prd::stories(3), script);
    let settings = format!("verify = [{{ run = \"{gate}\", each_story = false }}]\n");
    world.write("ralph.toml", &settings);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "gate"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.err.matches("restored the backlog").count(), 2, "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-002", "US-003"]);
    let changed = world.path(".git/ralph/changed");
    let kept =
        std::fs::read_dir(changed).unwrap().map(|kept| kept.unwrap().path().join("PRD.json"));
    let kept: Vec<_> = kept.map(|kept| kept.symlink_metadata().unwrap().is_file()).collect();
    assert_eq!(kept.iter().filter(|is_file| **is_file).count(), 1, "{kept:?}");
    assert_eq!(kept.len(), 2);
}

#[test]
fn outside_the_repository_or_ignored_it_is_written_but_not_committed() {
    let world = World::new();
    world.write("../outside.json", &Prd::stories(1).text());
    let said = world.run(&["../outside.json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.err.matches("outside the repository").count(), 1, "{}", said.err);
    assert!(world.read("../outside.json").contains("\"passes\": true"));
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "mock/US-001.md\n");

    world.write(".gitignore", "PRD.json\n");
    world.write("PRD.json", &Prd::stories(1).text());
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.err.matches("ignored by git").count(), 1, "{}", said.err);
    assert_eq!(world.passing(), ["US-001"]);
    assert!(!world.git(&["ls-files"]).contains("PRD.json"));
}

/// How often the driver has looked around, by the file that it writes then.
fn two_looks(world: &World) {
    let when = || {
        let text = std::fs::read_to_string(world.path(".ralph/status.json")).ok()?;
        let status: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(status["updated_at"].to_string())
    };
    for _ in 0..2 {
        let before = when();
        until("the driver to look around", || (when()? != before.clone()?).then_some(()));
    }
}

const WAITS: &str = "touch ../here; until [ -e ../go ]; do sleep 0.02; done";

#[test]
fn marks_that_stand_in_the_file_while_an_agent_works_are_not_the_humans() {
    let flips = r#"sed -i 's/"passes": false/"passes": true/' PRD.json"#;
    let script = format!(
        "[story.US-001]\nsteps = [{{ run = '''{flips}; {WAITS}; echo w > w.txt''' }}, \"complete\"]\n"
    );
    let world = World::scripted(&Prd::stories(2), &script);
    let child = world.start(&[]);
    until("the agent", || world.path("../here").exists().then_some(()));
    two_looks(&world);
    world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains(MARKS_REVERTED), "{}", said.err);
    assert_eq!(world.subjects(), ["US-002: Story 2", "US-001: Story 1", "backlog", "first"]);
    let seen = |one: &Recorded| matches!(&one.event, Event::MarksSeen { passing, .. } if !passing.is_empty());
    assert!(!world.journal().iter().any(seen), "{}", said.err);
}

#[test]
fn a_humans_mark_outlives_an_agent_that_writes_its_old_copy_of_the_file() {
    let script = format!(
        "[story.US-001]\nsteps = [{{ run = \"cp PRD.json ../old; {WAITS}; cp ../old PRD.json; echo w > w.txt\" }}, \"complete\"]\n"
    );
    let world = World::scripted(&Prd::stories(3), &script);
    let child = world.start(&[]);
    until("the agent", || world.path("../here").exists().then_some(()));
    assert_eq!(world.ralph(&["mark", "US-002", "skip"]).code, 0);
    until("the mark", || world.read("PRD.json").contains("\"skipped\": true").then_some(()));
    world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-003"]);
    let prd: serde_json::Value = serde_json::from_str(&world.read("PRD.json")).unwrap();
    assert_eq!(prd["userStories"][1]["skipped"], true);
    assert_eq!(world.iteration_files("prompt.md").len(), 2, "{}", said.err);
}
