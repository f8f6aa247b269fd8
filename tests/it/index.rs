//! What agents do to git's index.

use crate::support::world::{Ends, Said, until};
use crate::support::{Prd, World};

/// The user has a staged and an unstaged edit, and the agent runs this before its work.
fn world(command: &str, end: &str) -> World {
    let steps = format!("{{ run = '''{command}; echo w > work''' }}, {end}");
    let script = format!("[default]\nsteps = [{steps}]\n");
    let world = World::scripted(&Prd::stories(1), &script);
    world.write("b.txt", "b\n");
    world.git(&["add", "b.txt"]);
    world.git(&["commit", "-qm", "b"]);
    world.write("README.md", "staged\n");
    world.git(&["add", "README.md"]);
    world.write("README.md", "staged, and edited\n");
    world.write("b.txt", "edited\n");
    world
}

const BEFORE: &str = "MM README.md\n M b.txt\n";

#[test]
fn what_the_user_staged_stays_staged() {
    let gone = "which the agent removed or broke";
    for (command, said) in [
        ("rm .git/index", gone),
        ("rm .git/index; mkfifo .git/index", gone),
        ("echo garbage > .git/index", gone),
        ("git rm -rq --cached -f .", "where the agent changed it: PRD.json, README.md, b.txt"),
        ("git add -A", "where the agent changed it: README.md, b.txt"),
    ] {
        let world = world(command, "\"complete\"");
        let ended = world.run(&["--allow-dirty"]);
        assert_eq!(ended.code, 0, "{command}: {}", ended.err);
        let line = format!("restored git's index {said}").replace("index which", "index, which");
        assert_eq!(ended.err.matches(&line).count(), 1, "{command}: {}", ended.err);
        assert_eq!(world.status(), BEFORE, "{command}");
        assert_eq!(world.git(&["show", ":README.md"]), "staged\n");
        let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
        assert_eq!(files, "PRD.json\nwork\n", "{command}");
    }
}

#[test]
fn after_a_kill_the_next_start_does_not_wait_for_a_pipe() {
    let world = world("rm .git/index; mkfifo .git/index; echo y > ../here", "\"hang\"");
    let mut child = world.start(&["--allow-dirty"]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    let script = "[default]\nsteps = [{ run = \"echo x > x\" }, \"complete\"]\n";
    std::fs::write(world.script(), script).unwrap();
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.status(), BEFORE, "{}", said.err);
    assert!(said.err.contains("restored git's index, which the agent removed"), "{}", said.err);
}

/// What a killed agent or gate did to the entries.
const TOUCHED: [&str; 5] = [
    "git rm -rq --cached -f .",
    "git read-tree --empty",
    "git add -A",
    "git reset -q; git gc -q --prune=now",
    "git update-index --split-index",
];

fn killed(world: &World) -> Said {
    let mut child = world.start(&["--allow-dirty"]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    let script = "[default]\nsteps = [{ run = \"echo w > work\" }, \"complete\"]\n";
    std::fs::write(world.script(), script).unwrap();
    world.run(&["--allow-dirty"])
}

fn with_gate(act: &str, gate: &str) -> World {
    let world = world(act, "\"complete\"");
    world.write("ralph.toml", &format!("verify = ['''{gate}''']\n"));
    world.git(&["add", "ralph.toml"]);
    world.git(&["commit", "-qm", "settings", "ralph.toml"]);
    world
}

fn is_as_before(world: &World, said: &Said, command: &str) {
    assert_eq!(said.code, 0, "{command}: {}", said.err);
    assert_eq!(world.status(), BEFORE, "{command}: {}", said.err);
    assert_eq!(world.git(&["show", ":README.md"]), "staged\n", "{command}");
    let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files, "PRD.json\nwork\n", "{command}");
}

#[test]
fn what_the_user_staged_stays_staged_after_a_kill_too() {
    for command in TOUCHED {
        let world = world(&format!("{command}; echo y > ../here"), "\"hang\"");
        let said = killed(&world);
        is_as_before(&world, &said, command);
    }
    for when in ["test -e work", "true"] {
        for command in TOUCHED {
            let gate = format!(
                "{when} || exit 0; test -e ../here && exit 0; {command}; echo y > ../here; sleep 1000"
            );
            let world = with_gate("true", &gate);
            let said = killed(&world);
            is_as_before(&world, &said, &gate);
        }
    }
}

#[test]
fn a_copy_of_the_index_that_cannot_be_read_counts_as_none() {
    for spoil in ["echo garbage > .git/ralph/index", "rm .git/ralph/index; mkfifo .git/ralph/index"]
    {
        let world = world(&format!("{spoil}; rm .git/index"), "\"complete\"");
        let said = world.run(&["--allow-dirty"]);
        assert_eq!(said.code, 0, "{spoil}: {}", said.err);
        assert_eq!(world.read("README.md"), "staged, and edited\n");
        let is_gone = |line: &str| line.starts_with('D');
        assert!(!world.status().lines().any(is_gone), "{spoil}: {}{}", world.status(), said.err);
    }
}

#[test]
fn what_the_user_staged_survives_a_roll_back_and_a_gates_commit() {
    let once = "test -e ../once || { touch ../once; ";
    for (act, gate) in [
        (format!("{once} git reset -q --hard HEAD~1; }}"), "true".to_owned()),
        ("true".to_owned(), format!("test ! -e work || {once} git add -A; git commit -qm own; }}")),
    ] {
        let world = with_gate(&act, &gate);
        let said = world.run(&["--allow-dirty"]);
        is_as_before(&world, &said, &format!("{act} {gate}"));
    }
}
