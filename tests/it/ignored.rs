//! What agents and gates do to the user's ignored files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ralph::model::{Event, Recorded, Untrusted, Violation};

use crate::support::world::{Ends, until};
use crate::support::{Prd, World};

/// With `.env` and `node_modules`, both ignored.
fn world(script: &str) -> World {
    let world = World::scripted(&Prd::stories(1), script);
    world.write(".gitignore", ".env\nnode_modules/\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "rules"]);
    world.write(".env", "PORT=1\n");
    fs::set_permissions(world.path(".env"), fs::Permissions::from_mode(0o640)).unwrap();
    for number in 0..300 {
        world.write(&format!("node_modules/{number}.js"), "x\n");
    }
    world
}

fn is_back(world: &World, err: &str) {
    assert_eq!(world.read(".env"), "PORT=1\n", "{err}");
    let mode = world.path(".env").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(!world.path("node_modules").exists(), "it is the tools'");
    assert!(!world.path(".git/ralph/ignored/node_modules").exists());
    let committed = world.git(&["log", "--all", "--format=", "--name-only"]);
    assert!(!committed.contains(".env"), "{committed}");
}

fn restored(world: &World) -> Vec<Untrusted> {
    let journal = world.journal();
    let after = |one: &Recorded| match &one.event {
        Event::Repaired { after, violation: Violation::IgnoredFiles { lost, .. }, .. } => {
            assert_eq!(lost, &[".env"]);
            Some(*after)
        }
        _ => None,
    };
    journal.iter().filter_map(after).collect()
}

#[test]
fn what_git_clean_deletes_is_back_after_an_attempt() {
    let script =
        "[default]\nsteps = [{ run = \"git clean -fdxq; echo w > w.txt\" }, \"complete\"]\n";
    let world = world(script);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    is_back(&world, &said.err);
    let told = "restored ignored files that the agent deleted or emptied: .env";
    assert!(said.err.contains(told), "{}", said.err);
    assert_eq!(restored(&world), [Untrusted::Attempt]);
}

#[test]
fn what_a_gate_empties_is_back_after_it() {
    let steps = "[default]\nsteps = [{ write = \"w.txt\", text = \"w\\n\" }, \"complete\"]\n";
    let world = world(steps);
    world.write("ralph.toml", "verify = [\"test ! -e w.txt || : > .env\"]\n");
    world.git(&["add", "ralph.toml"]);
    world.git(&["commit", "-qm", "gate"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read(".env"), "PORT=1\n", "{}", said.err);
    assert_eq!(restored(&world), [Untrusted::Gates], "{}", said.err);
}

#[test]
fn what_was_deleted_before_the_driver_was_killed_is_back() {
    let act = "git clean -fdxq; echo y > ../here";
    let world = world(&format!("[default]\nsteps = [{{ run = \"{act}\" }}, \"hang\"]\n"));
    let mut child = world.start(&[]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    fs::remove_file(world.script()).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    is_back(&world, &said.err);
    assert_eq!(restored(&world), [Untrusted::Attempt]);
}
