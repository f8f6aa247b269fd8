//! Agents that leave the run's branch, rewrite it, or leave a merge or rebase behind: the branch, the
//! tree and the user's files are put back, and the run goes on.

use crate::support::world::{Ends, until};
use crate::support::{Prd, World};

/// What an agent does to HEAD, with a name.
const MOVES: [(&str, &str); 9] = [
    ("detached", "git checkout -q --detach; git add own; git commit -qm own"),
    ("branch", "git switch -qc topic; git add own; git commit -qm own"),
    ("elsewhere", "git switch -qc topic HEAD~2 -f; git add own; git commit -qm own"),
    ("orphan", "git checkout -q --orphan lost; git commit -qm own"),
    ("reset", "git reset -q --hard HEAD~2; echo o > own"),
    ("amended", "git add own; git commit -q --amend -m amended"),
    (
        "rebase",
        "git switch -qc topic HEAD~1; echo 2 > f; git add f; git commit -qm own; git rebase -q work",
    ),
    (
        "merge",
        "git switch -qc topic HEAD~1; echo 2 > f; git add f; git commit -qm own; \
               git switch -q work; git merge -q topic",
    ),
    ("bisect", "git bisect start; git bisect bad; git bisect good HEAD~2"),
];

/// `f` comes with the newest commit, and the user has an untracked file and an edit.
fn world(steps: &str, next: &str) -> World {
    let attempt = |steps: &str| format!("[[story.US-001.attempts]]\nsteps = [{steps}]\n");
    let script = format!("{}{}", attempt(steps), attempt(next));
    let world = World::scripted(&Prd::stories(1), &script);
    world.write("f", "1\n");
    world.git(&["add", "f"]);
    world.git(&["commit", "-qm", "newest"]);
    world.write("notes.txt", "mine\n");
    world
}

fn closes(first: &str) -> String {
    format!("{{ run = \"{first}echo x > x\" }}, \"complete\"")
}

fn is_whole(world: &World, name: &str, said: &str) {
    assert_eq!(world.git(&["branch", "--show-current"]), "work\n", "{name}: {said}");
    let subjects = world.subjects();
    let expected = ["US-001: Story 1", "newest", "backlog", "first"];
    let without_own: Vec<&str> =
        subjects.iter().map(String::as_str).filter(|subject| *subject != "own").collect();
    assert_eq!(without_own, expected, "{name}: {said}");
    assert_eq!(world.passing(), ["US-001"], "{name}: {said}");
    assert_eq!(
        (world.read("f"), world.read("notes.txt")),
        ("1\n".into(), "mine\n".into()),
        "{name}"
    );
    let left = world.status();
    let left: Vec<&str> = left.lines().filter(|line| *line != "?? notes.txt").collect();
    assert_eq!(left, [""; 0], "{name}: {said}");
    for leftover in ["MERGE_HEAD", "rebase-merge", "BISECT_LOG"] {
        assert!(!world.path(".git").join(leftover).exists(), "{name}: {leftover}\n{said}");
    }
    let commits = world.git(&["log", "--all", "--format=%H"]);
    let has_own = |commit: &str| {
        let files = world.git(&["ls-tree", "--name-only", commit]);
        files.lines().any(|file| file == "own")
    };
    assert!(commits.lines().any(has_own), "{name}: its work is lost\n{said}");
}

#[test]
fn after_the_agent_ended() {
    for (name, command) in MOVES {
        let steps = format!("{{ run = '''echo o > own; {command}; true''' }}");
        // A merge may go on in the next attempt.
        let world = world(&steps, &closes("git merge --abort; "));
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{name}: {}", said.err);
        is_whole(&world, name, &said.err);
    }
}

#[test]
fn after_a_kill() {
    for (name, command) in MOVES {
        let run = format!("{{ run = '''echo o > own; {command}; echo y > ../here''' }}");
        let world = world(&format!("{run}, \"hang\""), &closes(""));
        let mut child = world.start(&[]);
        world.await_file("../here");
        child.kill().unwrap();
        child.code();
        until("every process to be gone", || world.processes().is_empty().then_some(()));
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{name}: {}", said.err);
        is_whole(&world, name, &said.err);
    }
}

#[test]
fn after_a_kill_in_gates() {
    for (name, command) in MOVES {
        let once = "test -e x || exit 0; test -e ../here && exit 0";
        let gate = format!("{once}; echo o > own; {command}; echo y > ../here; sleep 600");
        let world = world("{ run = \"echo x > x\" }, \"complete\"", "\"complete\"");
        world.write("ralph.toml", &format!("verify = ['''{gate}''']\n"));
        world.git(&["add", "ralph.toml"]);
        world.git(&["commit", "-q", "--amend", "--no-edit"]);
        let mut child = world.start(&[]);
        world.await_file("../here");
        child.kill().unwrap();
        child.code();
        until("every process to be gone", || world.processes().is_empty().then_some(()));
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{name}: {}", said.err);
        is_whole(&world, name, &said.err);
        assert_eq!(world.iteration_files("prompt.md").len(), 1, "{name}: the claim stands");
    }
}
