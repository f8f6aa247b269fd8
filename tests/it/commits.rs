//! Which repositories are worked in, and what of the user's stays out of the commits.

use crate::support::world::Runs;
use crate::support::{Prd, World};

#[test]
fn what_is_no_place_to_commit_is_refused_with_the_remedy() {
    let nowhere = World::without_repository();
    nowhere.write("PRD.json", &Prd::stories(1).text());
    let said = nowhere.run(&[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("git init"), "{}", said.err);

    let bare = World::without_repository();
    bare.git(&["init", "-q", "--bare", "."]);
    bare.write("PRD.json", &Prd::stories(1).text());
    let said = bare.run(&[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("bare"), "{}", said.err);

    let nobody = World::with(&Prd::stories(1));
    nobody.git(&["config", "--unset", "user.name"]);
    nobody.git(&["config", "--unset", "user.email"]);
    let said = nobody.run(&[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("git config"), "{}", said.err);
    assert_eq!(nobody.subjects(), ["backlog", "first"]);
}

#[test]
fn an_unborn_branch_works() {
    let world = World::without_repository();
    world.git(&["init", "-q", "-b", "work"]);
    world.git(&["config", "user.name", "Tester"]);
    world.git(&["config", "user.email", "tester@example.org"]);
    world.write("PRD.json", &Prd::stories(2).text());
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-002: Story 2", "US-001: Story 1"]);
}

#[test]
fn main_is_named_and_a_branch_can_be_made() {
    let world = World::with(&Prd::stories(1));
    world.git(&["branch", "-qm", "main"]);
    let said = world.run(&["--branch", "feature/x"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["branch", "--show-current"]), "feature/x\n");
    assert_eq!(world.git(&["log", "--format=%s", "main"]), "backlog\nfirst\n");
    assert_eq!(world.subjects()[0], "US-001: Story 1");

    let world = World::with(&Prd::stories(1));
    world.git(&["branch", "-qm", "main"]);
    let said = world.run(&[]);
    assert!(said.err.contains("`main`") && said.err.contains("--branch"), "{}", said.err);
}

#[test]
fn a_detached_head_needs_a_branch() {
    let world = World::with(&Prd::stories(1));
    world.git(&["checkout", "-q", "--detach"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("--branch"), "{}", said.err);
    assert_eq!(world.run(&["--branch", "x"]).code, 0);
}

#[test]
fn what_the_user_had_before_stays_out_and_as_it_was() {
    let world = World::with(&Prd::stories(1));
    world.write("README.md", "hello\nmy edit\n");
    world.write("staged.txt", "staged\n");
    world.git(&["add", "staged.txt"]);
    world.write("notes.txt", "untracked\n");
    let before = world.status();
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.status(), before);
    let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files, "PRD.json\nmock/US-001.md\n");
}

/// So large that what is prepared for the commit while an agent works is ready too late.
#[test]
fn each_commit_has_the_marks_of_its_own_story() {
    let large = format!("\"notes\": \"{}\"", "abcdefgh ".repeat(600_000));
    let world = World::with(&Prd::stories(5).story(&large));
    let said = world.run(&["--max-iterations", "5"]);
    let commits = world.git(&["log", "--reverse", "--format=%H", "--grep=^US-"]);
    let text = |commit: &str| world.git(&["show", &format!("{commit}:PRD.json")]);
    let passing = commits.lines().map(|commit| text(commit).matches("\"passes\": true").count());
    assert_eq!(passing.collect::<Vec<_>>(), [1, 2, 3, 4, 5], "{}", said.err);
    assert_eq!(world.status(), "", "{}", said.err);
}

#[test]
fn a_linked_work_tree_has_a_run_of_its_own() {
    let world = World::with(&Prd::stories(1));
    world.git(&["worktree", "add", "-q", "../linked", "-b", "side"]);
    let linked = world.path("../linked");
    let mut command = world.run_command(&[]);
    let output = command.current_dir(&linked).said();
    assert_eq!(output.code, 0, "{}", output.err);
    assert_eq!(world.git(&["log", "-1", "--format=%s", "side"]), "US-001: Story 1\n");
    assert_eq!(world.passing(), [""; 0], "the main work tree is as it was");
    assert_eq!(world.run(&[]).code, 0);
}
