//! What agents do to git's index.

use crate::support::world::{Ends, until};
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
