//! Agents that leave the run's branch, rewrite it, or leave a merge or rebase behind: the branch, the
//! tree and the user's files are put back, and the run goes on.

use crate::support::world::{Ends, Said, until};
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

/// What leaves no mark of the agent's in the reflog, or breaks the files.
const UNMARKED: [(&str, &str); 11] = [
    ("unmarked detach", "env -u GIT_REFLOG_ACTION git checkout -q --detach HEAD~1"),
    ("unmarked amend", "git add own; env -u GIT_REFLOG_ACTION git commit -q --amend -m amended"),
    ("unmarked reset", "env -u GIT_REFLOG_ACTION git reset -q --hard HEAD~1"),
    ("deleted", "git checkout -q --detach; git branch -qD work"),
    ("update-ref -d", "git update-ref -d refs/heads/work"),
    ("symbolic-ref", "git symbolic-ref HEAD refs/heads/nowhere"),
    ("HEAD garbage", "echo garbage > .git/HEAD"),
    ("HEAD empty", ": > .git/HEAD"),
    ("HEAD gone", "rm .git/HEAD"),
    ("branch garbage", "echo garbage > .git/refs/heads/work"),
    ("branch empty", ": > .git/refs/heads/work"),
];

/// The first attempt's files may be the next one's start.
fn is_back(world: &World, name: &str, said: &Said) {
    assert_eq!(said.code, 0, "{name}: {}", said.err);
    assert_eq!(world.git(&["branch", "--show-current"]), "work\n", "{name}: {}", said.err);
    let subjects = world.subjects();
    assert_eq!(subjects, ["US-001: Story 1", "newest", "backlog", "first"], "{name}: {}", said.err);
    assert_eq!(world.read("f"), "1\n", "{name}");
    assert_eq!(world.read("notes.txt"), "mine\n", "{name}");
    assert_eq!(world.passing(), ["US-001"], "{name}: {}", said.err);
}

fn kill_when_here(world: &World) {
    let mut child = world.start(&[]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
}

#[test]
fn after_a_kill_whatever_the_reflog_says() {
    for (name, command) in UNMARKED {
        let run = format!("{{ run = '''echo o > own; {command}; echo y > ../here''' }}");
        let world = world(&format!("{run}, \"hang\""), &closes(""));
        kill_when_here(&world);
        let said = world.run(&[]);
        is_back(&world, name, &said);
    }
}

#[test]
fn after_a_kill_in_gates_or_the_baseline_whatever_the_reflog_says() {
    for (when, claims) in [("test -e x", true), ("true", false)] {
        for (name, command) in UNMARKED {
            let once = format!("{when} || exit 0; test -e ../here && exit 0");
            let gate = format!("{once}; echo o > own; {command}; echo y > ../here; sleep 600");
            let world = world("{ run = \"echo x > x\" }, \"complete\"", "\"complete\"");
            world.write("ralph.toml", &format!("verify = ['''{gate}''']\n"));
            world.git(&["add", "ralph.toml"]);
            world.git(&["commit", "-q", "--amend", "--no-edit"]);
            kill_when_here(&world);
            let said = world.run(&[]);
            is_back(&world, &format!("{name}, {when}"), &said);
            assert!(!claims || world.iteration_files("prompt.md").len() == 1, "{name}");
        }
    }
}

#[test]
fn heads_that_the_agent_broke_are_mended_during_the_run() {
    for (name, command) in &UNMARKED[6..] {
        let steps = format!("{{ run = '''echo x > x; {command}''' }}, \"complete\"");
        let world = world(&steps, &closes(""));
        let said = world.run(&[]);
        is_back(&world, name, &said);
    }
}
