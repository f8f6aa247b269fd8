//! Changes of what counts as done: out of the tree until the human decides.

use std::fs;

use ralph::model::{EscalationKind, Event};

use crate::support::pty::Terminal;
use crate::support::world::until;
use crate::support::{Prd, World};

/// The first story's attempt makes its work easier on the way, and claims it.
const EASIER: &str = r#"
    [[story.US-001.attempts]]
    steps = [{ run = "sed -i '0,/it is done/s//nothing/' PRD.json; echo work > work.txt" }, "complete"]
    [[story.US-001.attempts]]
    steps = ["complete"]
"#;

fn changed_criteria() -> World {
    World::scripted(&Prd::stories(2), EASIER)
}

fn asked(world: &World) -> Terminal {
    let terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text("[a]");
    terminal
}

/// The other version of the backlog, and the one from before it.
fn kept(world: &World) -> (String, String) {
    let held = world.journal().into_iter().find_map(|recorded| match recorded.event {
        Event::ChangesHeld { changes, .. } => changes.into_iter().next(),
        _ => None,
    });
    let held = held.expect("a held change");
    let read = |path: Option<String>| fs::read_to_string(world.path(&path.unwrap())).unwrap();
    (read(held.changed), read(held.before))
}

#[test]
fn a_changed_criterion_is_in_no_commit_before_the_human_decides() {
    let world = changed_criteria();
    let mut terminal = asked(&world);
    let screen = terminal.await_text("✓ Task US-002 complete");
    assert!(screen.contains("its criteria changed"), "{screen}");
    assert!(screen.contains("❯ [r] restore the original"), "{screen}");
    let meanwhile = world.git(&["show", "HEAD:PRD.json"]);
    assert!(!meanwhile.contains("nothing") && !world.read("PRD.json").contains("nothing"));
    let (changed, before) = kept(&world);
    assert!(changed.contains("nothing") && !before.contains("nothing"));
    // What Enter chooses.
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.passing(), ["US-001", "US-002"]);
    assert_eq!(world.iteration_files("prompt.md").len(), 2, "its claim stands: {screen}");
    assert!(!world.git(&["log", "-p", "--format="]).contains("nothing"));
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\nwork.txt\n");
    assert_eq!(world.status(), "");
}

#[test]
fn an_accepted_change_is_in_the_storys_commit() {
    let world = changed_criteria();
    let mut terminal = asked(&world);
    terminal.await_text("✓ Task US-002 complete");
    terminal.press("y");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.subjects(), ["US-001: Story 1", "US-002: Story 2", "backlog", "first"]);
    assert!(!world.git(&["show", "HEAD~1:PRD.json"]).contains("nothing"));
    let closed = world.git(&["show", "HEAD:PRD.json"]);
    assert_eq!(closed.matches("nothing").count(), 1, "{closed}");
    assert_eq!(world.read("PRD.json"), closed);
    assert_eq!(world.passing(), ["US-001", "US-002"]);
}

#[test]
fn what_the_human_edited_meanwhile_stays_when_the_change_is_accepted() {
    for (edit, fits) in [("s/Story 2/Better 2/", true), ("0,/it is done/s//it is perfect/", false)]
    {
        let world = changed_criteria();
        let mut terminal = asked(&world);
        terminal.await_text("✓ Task US-002 complete");
        let edited = world.command("sed").args(["-i", edit, "PRD.json"]).status().unwrap();
        assert!(edited.success());
        terminal.press("y");
        if !fits {
            terminal.await_text("the accepted change does not fit any more");
            terminal.await_text("❯ [r]");
            terminal.press("r");
        }
        let (code, screen) = terminal.finish();
        assert_eq!(code, 0, "{edit}: {screen}");
        let now = world.read("PRD.json");
        let is_there = |text: &str| now.contains(text);
        assert_eq!([is_there("Better 2"), is_there("nothing")], [fits, fits], "{edit}: {now}");
        assert_eq!(is_there("it is perfect"), !fits, "{edit}: {now}");
    }
}

#[test]
fn whatever_decides_what_counts_as_done_is_asked_about_also_without_a_claim() {
    for (edit, told) in [
        ("s/it is done/nothing/", "its criteria changed; the criteria of US-002 changed"),
        (r#"s/"verify": \\["false"\\]/"verify": \\[\\]/"#, "the gates of US-002 changed"),
        (r#"s/"US-002"/"US-003"/"#, "US-002 disappeared from the backlog"),
        (r#"s/"id": "US-002",/& "priority": 1,/"#, "the priority of US-002 changed"),
        (r#"s/"id": "US-001",/& "depends_on": ["US-002"],/"#, "its dependencies changed"),
        (r#"s/"id": "US-001",/& "max_attempts": 9,/"#, "its max_attempts changed"),
    ] {
        let prd = Prd::stories(1).story(r#""verify": ["false"]"#);
        let run = format!("sed -i '{edit}' PRD.json; echo x > x.txt");
        let script =
            format!("[story.US-001]\nsteps = [{{ run = '''{}''' }}]\n", run.replace("\\\\", "\\"));
        let world = World::scripted(&prd, &script);
        let text = world.read("PRD.json");
        let said = world.run(&["--story", "US-001"]);
        assert_eq!(said.code, 4, "{edit}: {}", said.err);
        assert!(said.err.contains(told), "{edit}: {}", said.err);
        assert_eq!(world.read("PRD.json"), text, "{edit}");
        assert_eq!(world.iteration_files("prompt.md").len(), 1, "{edit}");
    }
}

#[test]
fn what_gates_change_of_it_is_asked_about_too() {
    let world = World::with(&Prd::stories(1));
    let gate = "[ -z \"$RALPH_STORY\" ] || sed -i s/done/nothing/ PRD.json";
    world.write("ralph.toml", &format!("verify = ['{gate}']\n"));
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "gate"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("its criteria changed"), "{}", said.err);
    assert!(!world.read("PRD.json").contains("nothing"));
    assert_eq!(world.passing(), [""; 0]);
}

#[test]
fn a_change_that_waits_for_the_human_outlives_a_killed_run() {
    let world = changed_criteria();
    let raised = |event: &Event| {
        let Event::QuestionRaised { question, .. } = event else { return false };
        question.kind == EscalationKind::Change
    };
    world.kill_run_at(raised);
    until("the original", || (!world.read("PRD.json").contains("nothing")).then_some(()));
    let (changed, before) = kept(&world);
    assert!(changed.contains("nothing") && !before.contains("nothing"));
    let mut terminal = asked(&world);
    let screen = terminal.await_text("✓ Task US-002 complete");
    assert!(screen.contains("its criteria changed"), "{screen}");
    terminal.press("y");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert!(world.git(&["show", "HEAD:PRD.json"]).contains("nothing"));
    assert!(!world.git(&["show", "HEAD~1:PRD.json"]).contains("nothing"));
}
