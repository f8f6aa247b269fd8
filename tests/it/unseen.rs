//! Work that no commit gets is not there for the gates.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::world::{Ends, Runs, until};
use crate::support::{Prd, World};

/// With an ignored file and an untracked one of the user's.
fn world(gate: &str, act: &str) -> World {
    let prd = Prd::stories(0).story(&format!("\"verify\": [\"{gate}\"]"));
    let script = format!("[default]\nsteps = [{{ run = '''{act}''' }}, \"complete\"]\n");
    let world = World::scripted(&prd, &script);
    world.write(".gitignore", "*.local\nlib2/\nnode_modules/\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "rules"]);
    world.write("own.local", "ignored\n");
    world.write("deep/mine.txt", "untracked\n");
    world
}

#[test]
fn a_gate_does_not_see_what_no_commit_has() {
    for (gate, act, named) in [
        (
            "test -e dist/app.js",
            "mkdir dist; echo x > dist/app.js; echo dist/ >> .gitignore",
            "dist",
        ),
        ("test -e f.txt", "echo '*' > .gitignore; echo x > f.txt", "f.txt"),
        ("test -e sub/f", "mkdir sub; git -C sub init -q; echo x > sub/f; echo y > g", "sub"),
        ("test -d empty/er", "mkdir -p empty/er; echo y > g", "empty"),
        ("test -e src/lib2/f", "mkdir -p src/lib2; echo x > src/lib2/f; echo y > g", "src/lib2/f"),
        ("test -e new.local", "echo x > new.local", "new.local"),
        ("test -e site.key", "echo x > site.key; echo y > g", "site.key"),
    ] {
        let world = world(gate, act);
        let said = world.run(&["--allow-dirty", "--max-iterations", "2"]);
        assert!(world.passing().is_empty(), "{gate}: {}", said.err);
        assert!(world.command("sh").args(["-c", gate]).said().code == 0, "{gate}: all is back");
        assert!(!world.path(".git/ralph/unseen").exists(), "{gate}");
        let line = format!("because no commit would have them: {named}\n");
        assert!(world.prompt(2).contains(&line), "{gate}: {}", world.prompt(2));
        assert_eq!(world.read("own.local") + &world.read("deep/mine.txt"), "ignored\nuntracked\n");
    }
}

#[test]
fn a_gate_sees_the_users_files_and_what_tools_fill() {
    let gate = "cat own.local deep/mine.txt node_modules/x/f a/b && test -d known";
    let act = "mkdir -p node_modules/x a; echo x > node_modules/x/f; echo y > a/b";
    let world = world(gate, act);
    fs::create_dir(world.path("known")).unwrap();
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.passing(), ["US-001"]);
}

#[test]
fn what_a_gate_makes_in_its_place_stays_and_the_other_is_kept() {
    let gate = "echo gate > new.local; ln -s /tmp lib2; test -e g";
    let act = "echo agent > new.local; mkdir lib2; echo f > lib2/f; echo y > g";
    let world = world(gate, act);
    symlink("nowhere", world.path("old.local")).unwrap();
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("new.local"), "gate\n");
    assert_eq!(world.read(".git/ralph/changed/replaced/new.local"), "agent\n");
    assert!(said.err.contains("moved `new.local` away"), "{}", said.err);
    assert!(!world.path("/tmp/f").exists(), "nothing is written through a link");
}

#[test]
fn what_was_away_when_the_driver_was_killed_is_back() {
    let gate =
        "test -e new.local || { test ! -e ../here || exit 1; echo x > ../here; exec sleep 1000; }";
    let world = world(gate, "mkdir -p sub/empty; echo agent > new.local; echo y > g");
    let mut child = world.start(&["--allow-dirty"]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    assert!(!world.path("new.local").exists(), "it was away");
    let said = world.run(&["--allow-dirty", "--max-iterations", "2"]);
    assert_eq!(world.read("new.local"), "agent\n", "{}", said.err);
    assert!(world.path("sub/empty").is_dir(), "{}", said.err);
    assert!(!world.path(".git/ralph/unseen").exists());
}
