//! Where a run stops by itself.

use crate::support::world::Runs;
use crate::support::{Prd, World};

const NEVER_DONE: &str = r#"
    [default]
    steps = [{ write = "n.txt", text = "${ITERATION}" }, { say = "Not yet." }]
"#;

#[test]
fn the_limit_of_iterations_warns_and_exits_3() {
    let world = World::scripted(&Prd::stories(2), NEVER_DONE);
    let said = world.run(&["--max-iterations", "4"]);
    assert_eq!(said.code, 3);
    assert!(said.err.contains("--max-iterations"), "{}", said.err);
    assert_eq!(world.read("n.txt"), "4");
}

#[test]
fn the_limit_comes_from_the_environment_too() {
    let world = World::scripted(&Prd::stories(1), NEVER_DONE);
    let mut command = world.run_command(&[]);
    let output = command.env("MAX_ITERATIONS", "2").said();
    assert_eq!(output.code, 3);
    assert_eq!(world.read("n.txt"), "2");
}

#[test]
fn a_story_completed_by_the_last_allowed_iteration_counts() {
    let world = World::with(&Prd::stories(2));
    assert_eq!(world.run(&["--max-iterations", "2"]).code, 0);
    assert_eq!(world.passing(), ["US-001", "US-002"]);
}

#[test]
fn once_is_one_iteration_and_the_next_run_continues() {
    let world = World::with(&Prd::stories(2));
    assert_eq!(world.run(&["--once"]).code, 3);
    assert_eq!(world.passing(), ["US-001"]);
    assert_eq!(world.run(&["--once"]).code, 0);
    assert_eq!(world.passing(), ["US-001", "US-002"]);
}

#[test]
fn one_story_can_be_named() {
    let prd = Prd::stories(2).story(r#""depends_on": ["US-001"]"#);
    let world = World::with(&prd);
    assert_eq!(world.run(&["--story", "US-002"]).code, 0);
    assert_eq!(world.passing(), ["US-002"]);
    let said = world.run(&["--story", "US-003"]);
    assert_eq!(said.code, 4);
    assert!(said.err.contains("US-003 waits for US-001, which is not done yet"), "{}", said.err);
    assert!(said.err.contains("without `--story`"), "{}", said.err);
    let said = world.run(&["--story", "US-004"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("no story `US-004`"), "{}", said.err);
}

#[test]
fn work_left_by_a_limit_continues_in_the_next_run() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [{ write = "half.txt", text = "half\n" }]
        [[story.US-001.attempts]]
        steps = ["complete"]
    "#;
    let world = World::scripted(&Prd::stories(1), script);
    assert_eq!(world.run(&["--once"]).code, 3);
    assert_eq!(world.status(), "?? half.txt\n");
    // A new run counts its attempts anew.
    std::fs::write(world.script(), "[default]\nsteps = [\"complete\"]\n").unwrap();
    assert_eq!(world.run(&[]).code, 0);
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\nhalf.txt\n");
}

#[test]
fn the_same_error_three_times_becomes_a_question() {
    let world =
        World::scripted(&Prd::stories(2), "[story.US-001]\nsteps = [{ fail = \"error\" }]\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), ["US-002"]);
    assert!(said.err.contains("the same error 3 times in a row"), "{}", said.err);
    let mut command = world.run_command(&["--story", "US-001"]);
    let output = command.env("STUCK_THRESHOLD", "1").said();
    assert_eq!(output.code, 4);
}
