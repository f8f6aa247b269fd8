//! Questions, when nobody is there or the human decided before.

use crate::support::{Prd, World};

/// Asks at the first attempt, breaks something, and completes at the second.
pub const ASKS: &str = r#"
    [[story.US-001.attempts]]
    steps = [
      { write = "broken.txt", text = "half a thought" },
      { run = "echo changed >> README.md; git commit -qam 'a commit of its own'" },
      { escalate = { type = "stuck", summary = "Which database?", context = "I tried both.", options = ["Use SQLite", "Use Postgres"], question = "Which one do you want?" } },
    ]
    [[story.US-001.attempts]]
    steps = ["complete"]
"#;

#[test]
fn without_a_terminal_the_story_is_parked_and_the_others_continue() {
    let world = World::scripted(&Prd::stories(2).story(r#""depends_on": ["US-001"]"#), ASKS);
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), ["US-002"]);
    for text in [
        "Which database?",
        "Which one do you want?",
        "Use SQLite",
        "US-003 waits for US-001, which is parked",
        "`ralph run` in a terminal",
    ] {
        assert!(said.err.contains(text), "{text} is not in\n{}", said.err);
    }
}

#[test]
fn no_story_carries_the_wreckage_of_a_parked_one() {
    let world = World::scripted(&Prd::stories(2), ASKS);
    assert_eq!(world.run(&[]).code, 4);
    assert_eq!(world.subjects(), ["US-002: Story 2", "backlog", "first"]);
    let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files, "PRD.json\nmock/US-002.md\n");
    assert_eq!(world.status(), "");
    assert_eq!(world.read("README.md"), "hello\n");
    let kept = "refs/ralph/attempts/US-001/1";
    assert_eq!(world.git(&["show", &format!("{kept}:broken.txt")]), "half a thought");
    assert_eq!(world.git(&["show", &format!("{kept}:README.md")]), "hello\nchanged\n");
}

#[test]
fn a_human_can_decide_before_the_run() {
    let world = World::scripted(&Prd::stories(2), ASKS);
    let said = world.run(&["--on-escalation", "skip"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-002: Story 2", "US-001: skipped", "backlog", "first"]);
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD~1"]), "PRD.json\n");
    assert!(world.read("PRD.json").contains("\"skipped\": true"));
    assert_eq!(world.status(), "");

    let world = World::scripted(&Prd::stories(2), ASKS);
    assert_eq!(world.run(&["--on-escalation", "abort"]).code, 5);
    assert_eq!(world.passing(), [""; 0]);

    let world = World::scripted(&Prd::stories(2), ASKS);
    assert_eq!(world.run(&["--on-escalation", "park"]).code, 4);
    assert_eq!(world.passing(), ["US-002"]);
}

#[test]
fn an_escalation_beats_a_claim() {
    let script = r#"
        [story.US-001]
        steps = [
          { run = "echo work >> work.txt" },
          "complete",
          { escalate = { type = "deviation", summary = "Wait.", question = "Really?" } },
          "complete",
        ]
    "#;
    let world = World::scripted(&Prd::stories(1), script);
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("Wait."), "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
    assert_eq!(world.iteration_files("prompt.md").len(), 1);
    world.heard_no_claim();
}

#[test]
fn status_shows_the_question_that_waits() {
    let world = World::scripted(&Prd::stories(2), ASKS);
    assert_eq!(world.run(&[]).code, 4);
    let said = world.ralph(&["status"]);
    assert_eq!(said.code, 0);
    assert!(said.out.contains("1/2 complete"), "{}", said.out);
    assert!(said.out.contains("US-001 asks: Which database?"), "{}", said.out);
    let json: serde_json::Value =
        serde_json::from_str(&world.ralph(&["status", "--json"]).out).unwrap();
    assert_eq!(json["stories"][0]["state"], "parked");
    assert_eq!(json["stories"][0]["question"]["options"][1], "Use Postgres");
    assert_eq!(json["stories"][1]["state"], "passes");
    assert_eq!(json["stop"]["reason"], "nothing_to_select");
}
