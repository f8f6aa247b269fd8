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

/// Whatever an agent or a gate does to the rules.
#[test]
fn what_was_ignored_when_the_story_began_is_in_no_commit_and_no_object() {
    let commit = "git add -f .env conf; git commit -qm all";
    for (act, gate) in [
        ("rm .gitignore", "true"),
        ("echo other > .gitignore", "true"),
        ("echo '!.env' >> .gitignore; git add -A", "true"),
        ("git mv .gitignore rules", "true"),
        (commit, "true"),
        ("rm .gitignore; git add -A; git commit -qm all; git rm -q --cached .env", "true"),
        (":", "rm -f .gitignore"),
    ] {
        let script = "[default]\nsteps = [{ run = \"sh ../act; echo w > w.txt\" }, \"complete\"]\n";
        let world = world(script);
        fs::write(world.path("../act"), act).unwrap();
        world.write("ralph.toml", &format!("verify = [\"{gate}\"]\n"));
        world.write(".gitignore", ".env\nnode_modules/\nconf/\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "rules and a gate"]);
        world.write("conf/db", "a password\n");
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{act}: {}", said.err);
        let committed = world.git(&["log", "--all", "--format=", "--name-only"]);
        for private in [".env", "conf/db", "node_modules"] {
            assert!(!committed.contains(private), "{act}, {gate}: {committed}");
        }
        let staged = world.git(&["ls-files", ".env", "conf", "node_modules"]);
        assert_eq!(staged, "", "{act}");
        let said_all = said.err.contains(".env was not committed: git ignored it")
            && said.err.contains("conf/db was not committed");
        assert!(act == ":" || act.contains("!.env") || said_all, "{act}: {}", said.err);
        let objects = world.git(&["cat-file", "--batch-check", "--batch-all-objects"]);
        let blobs = objects.lines().filter_map(|line| line.split_once(" blob "));
        let mut texts = blobs.map(|(blob, _)| world.git(&["cat-file", "-p", blob]));
        let is_there = texts.any(|text| text == "a password\n");
        assert!(act.contains("git add") || !is_there, "{act}, {gate}");
        assert_eq!(world.read("conf/db") + &world.read(".env"), "a password\nPORT=1\n");
    }
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

/// Whatever rule ignores it: these decide what a gate runs, and no commit has them.
#[test]
fn what_a_gate_runs_of_an_ignored_folder_is_put_back() {
    for (gate, path) in [
        (". .venv/bin/activate && test -e w.txt", ".venv/bin/activate"),
        ("./node_modules/.bin/jest", "node_modules/jest/bin/jest.js"),
        ("sh tools/check.sh", "tools/check.sh"),
        ("make() { test -e w.txt; }; make", "Makefile"),
    ] {
        let act = format!("mkdir -p sub; echo x > w.txt; echo true > {path}");
        let script = format!("[default]\nsteps = [{{ run = '{act}' }}, \"complete\"]\n");
        let world = World::scripted(&Prd::stories(1), &script);
        world.write("ralph.toml", &format!("verify = [\"{gate}\"]\n"));
        world.write(".gitignore", ".venv\nnode_modules/\ntools/*\nMakefile\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "rules"]);
        let text = "#!/bin/sh\ntest -e w.txt\n";
        world.write(path, text);
        fs::set_permissions(world.path(path), fs::Permissions::from_mode(0o755)).unwrap();
        if gate.contains("jest") {
            fs::create_dir_all(world.path("node_modules/.bin")).unwrap();
            let link = world.path("node_modules/.bin/jest");
            std::os::unix::fs::symlink("../jest/bin/jest.js", link).unwrap();
        }
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{gate}: {}", said.err);
        assert_eq!(world.read(path), text, "{gate}: {}", said.err);
        assert!(said.err.contains(path), "{gate}: {}", said.err);
    }
}

#[test]
fn what_a_build_makes_anew_is_not_put_back() {
    let act = "echo x > w.txt; echo true > target/app";
    let script = format!("[default]\nsteps = [{{ run = '{act}' }}, \"complete\"]\n");
    let world = World::scripted(&Prd::stories(1), &script);
    world.write("ralph.toml", "verify = [\"./target/app\"]\n");
    world.write(".gitignore", "target/\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "rules"]);
    world.write("target/app", "#!/bin/sh\nfalse\n");
    fs::set_permissions(world.path("target/app"), fs::Permissions::from_mode(0o755)).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("target/app"), "true\n", "{}", said.err);
}

/// An ignored script of a gate that a story brought is held from the next story on.
#[test]
fn a_gates_program_that_one_story_brought_is_no_later_ones_to_change() {
    let jest = "node_modules/.bin/jest";
    let brings = format!(
        "mkdir -p node_modules/.bin; echo 'test -e $RALPH_STORY.txt' > {jest}; chmod +x {jest}; echo w > US-001.txt"
    );
    let script = format!(
        "[story.US-001]\nsteps = [{{ run = \"{brings}\" }}, \"complete\"]\n\
         [story.US-002]\nsteps = [{{ run = \"echo 'exit 0' > {jest}; echo w > other\" }}, \"complete\"]\n"
    );
    let world = World::scripted(&Prd::stories(2), &script);
    world.write(".gitignore", "node_modules/\n");
    world.write("ralph.toml", &format!("verify = [\"./{jest}\"]\nmax_attempts = 1\n"));
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), ["US-001"], "{}", said.err);
    assert_eq!(world.read(jest), "test -e $RALPH_STORY.txt\n");
}
