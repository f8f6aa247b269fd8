//! New files that the human makes while an agent works. They cannot be told from the agent's: nothing
//! deletes them for good.

use crate::support::world::Ends;
use crate::support::{Prd, World};

/// The agent has begun, and works on once `../go` is there.
fn at_work(stories: usize, end: &str, args: &[&str]) -> (World, std::process::Child) {
    let wait = "echo a > own.txt; echo y > ../here; until [ -e ../go ]; do sleep 0.01; done";
    let steps = format!("{{ run = \"{wait}\" }}, {end}");
    let script = format!("[story.US-001]\nsteps = [{steps}]\n");
    let world = World::scripted(&Prd::stories(stories), &script);
    let child = world.start(args);
    world.await_file("../here");
    world.write("mine/new.txt", "mine\n");
    (world, child)
}

/// And one line says how they come back.
fn is_kept(world: &World, said: &str) {
    let refs = world.git(&["for-each-ref", "--format=%(refname)", "refs/ralph/attempts/US-001"]);
    let has_it = |name: &&str| {
        let tree = world.git(&["ls-tree", "-r", "--name-only", name]);
        tree.lines().any(|file| file == "mine/new.txt")
    };
    let name = refs.lines().find(has_it).expect(said);
    assert_eq!(world.git(&["show", &format!("{name}:mine/new.txt")]), "mine\n");
    assert!(said.contains(name), "{name}: {said}");
    let told = said.lines().find(|line| line.contains("new files left the tree with US-001"));
    let told = told.expect(said);
    assert!(told.contains("mine/new.txt"), "{told}");
    assert!(!world.path("mine/new.txt").exists(), "{said}");
    let command = format!("git restore --source={name} -- FILE");
    assert!(told.contains(&command), "{told}");
    world.git(&["restore", &format!("--source={name}"), "--", "mine/new.txt"]);
    assert_eq!(world.read("mine/new.txt"), "mine\n");
}

#[test]
fn a_shelved_story_keeps_them_at_its_ref() {
    let asks = "{ escalate = { type = \"stuck\", summary = \"s\", question = \"q\" } }";
    let (world, child) = at_work(2, asks, &[]);
    world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), ["US-002"], "{}", said.err);
    is_kept(&world, &said.err);
}

#[test]
fn a_skipped_story_keeps_them_at_its_ref() {
    let (world, child) = at_work(1, "{ run = \"true\" }", &[]);
    let text = world.read("PRD.json");
    let skipped = text.replacen("\"passes\": false", "\"passes\": false, \"skipped\": true", 1);
    assert_ne!(text, skipped);
    let marked = world.ralph(&["mark", "US-001", "skip"]);
    assert_eq!(marked.code, 0, "{}", marked.err);
    world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    is_kept(&world, &said.err);
}

#[test]
fn a_branch_that_is_rolled_back_keeps_them_at_its_ref() {
    let leaves = "{ run = \"git checkout -q --orphan lost; git commit -qm own\" }";
    let (world, child) = at_work(1, leaves, &["--max-iterations", "1"]);
    world.write("../go", "");
    let said = child.ended();
    is_kept(&world, &said.err);
}
