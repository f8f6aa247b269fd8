//! A run in a linked work tree, whose agent changes where git finds its folders.

use std::fs;

use crate::support::world::{Ends, Said, until};
use crate::support::{Prd, World};

/// In `main/.git/worktrees/repo`.
const POINTERS: [&str; 2] = ["commondir", "gitdir"];
const EVIL: &str = r#"printf '#!/bin/sh\ntouch %s\n' "$PWD/../ran" > ../sign; chmod +x ../sign
    cp -r ../main/.git ../evil; git config -f ../evil/config gpg.program "$PWD/../sign"
    git config -f ../evil/config commit.gpgsign true; G=$(git rev-parse --absolute-git-dir)"#;

/// The root is a linked work tree of `main`.
fn linked(script: &str) -> World {
    let world = World::scripted(&Prd::stories(1), script);
    let main = world.root().with_file_name("main");
    fs::rename(world.root(), &main).unwrap();
    let add = "git switch -qc trunk && git worktree add -q ../repo work";
    let done = std::process::Command::new("sh").args(["-c", add]).current_dir(main).output();
    assert!(done.unwrap().status.success());
    world
}

fn pointers(world: &World) -> Vec<String> {
    let own = POINTERS.map(|name| format!("../main/.git/worktrees/repo/{name}"));
    let names = own.iter().map(String::as_str).chain([".git"]);
    names.map(|name| fs::read_to_string(world.path(name)).unwrap_or_default()).collect()
}

fn is_whole(world: &World, before: &[String], said: &Said) {
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(pointers(world), before, "{}", said.err);
    assert!(said.err.contains("restored git configuration or hooks"), "{}", said.err);
    assert!(!world.path("../ran").exists(), "the planted program ran: {}", said.err);
    assert_eq!(world.git(&["show", "work:w.txt"]), "w\n");
    assert_eq!(world.git(&["branch", "--show-current"]), "work\n");
}

const ACTS: [&str; 6] = [
    "echo 'gitdir: /nowhere' > .git",
    "rm .git",
    "rm .git; git init -q",
    "echo 'gitdir: ../evil' > .git",
    "echo \"$PWD/../evil\" > $G/commondir",
    "echo /nowhere/.git > $G/gitdir",
];

#[test]
fn what_says_where_gits_folders_are_is_put_back() {
    for act in ACTS {
        let script = format!(
            "[default]\nsteps = [{{ run = '''{EVIL}\n{act}; echo w > w.txt''' }}, \"complete\"]\n"
        );
        let world = linked(&script);
        let before = pointers(&world);
        let said = world.run(&[]);
        is_whole(&world, &before, &said);
    }
}

#[test]
fn it_is_put_back_after_a_kill() {
    for act in &ACTS[4..] {
        let script = format!(
            "[default]\nsteps = [{{ run = '''{EVIL}\n{act}; echo y > ../here''' }}, \"hang\"]\n"
        );
        let world = linked(&script);
        let before = pointers(&world);
        let mut child = world.start(&[]);
        world.await_file("../here");
        child.kill().unwrap();
        child.code();
        until("every process to be gone", || world.processes().is_empty().then_some(()));
        let rest = "[default]\nsteps = [{ write = \"w.txt\", text = \"w\\n\" }, \"complete\"]\n";
        fs::write(world.script(), rest).unwrap();
        let said = world.run(&[]);
        is_whole(&world, &before, &said);
    }
}
