//! Whatever an agent lets git's garbage collection delete, what the user needs comes back.

use std::fs;

use crate::support::{Prd, World};

use super::hostile::kill_when_here;

/// No ref leads to anything but the branch, and all else is deleted.
const COLLECT: &str = "git clean -fdq; git stash clear; git branch -qD other; \
    rm -rf .git/refs/ralph .git/refs/worktree; sed -i '/ralph/d' .git/packed-refs 2>/dev/null; \
    git reflog expire --expire=now --all; git gc -q --prune=now";

fn world(then: &str) -> World {
    let script = format!(
        "[[story.US-001.attempts]]\nsteps = [{{ run = '''{COLLECT}''' }}, {then}]\n\
         [default]\nsteps = [{{ write = \"work.txt\", text = \"work\\n\" }}, \"complete\"]\n"
    );
    let world = World::scripted(&Prd::stories(1), &script);
    world.git(&["switch", "-qc", "other"]);
    world.write("only.txt", "only here\n");
    world.git(&["add", "only.txt"]);
    world.git(&["commit", "-qm", "only here"]);
    world.git(&["switch", "-q", "work"]);
    world.write("README.md", "stashed\n");
    world.git(&["stash", "push", "-q", "-m", "mine"]);
    world.write("mine.txt", "mine\n");
    world.write("notes/deep.txt", "deep\n");
    world
}

fn is_whole(world: &World, err: &str) {
    assert_eq!(world.read("mine.txt"), "mine\n", "{err}");
    assert_eq!(world.read("notes/deep.txt"), "deep\n", "{err}");
    assert_eq!(world.git(&["show", "stash@{0}:README.md"]), "stashed\n", "{err}");
    assert_eq!(world.git(&["show", "other:only.txt"]), "only here\n", "{err}");
    assert_eq!(world.git(&["fsck", "--strict", "--no-dangling"]), "");
}

#[test]
fn what_the_user_needs_survives_a_collection_of_all_garbage() {
    for is_packed in [false, true] {
        let world = world("{ write = \"work.txt\", text = \"work\\n\" }, \"complete\"");
        if is_packed {
            world.git(&["gc", "-q"]);
        }
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{}", said.err);
        is_whole(&world, &said.err);
        let kept = world.git(&["for-each-ref", "--format=%(refname)", "refs/ralph/snapshots"]);
        assert!(kept.ends_with("/1\n"), "{kept}");
        assert_eq!(world.ralph(&["restore", "1", "mine.txt"]).code, 0);
    }
}

#[test]
fn it_survives_if_the_driver_is_killed_then() {
    let world = world("{ run = \"echo y > ../here\" }, \"hang\"");
    kill_when_here(&world);
    assert!(!world.path("mine.txt").exists());
    fs::remove_file(world.script()).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    is_whole(&world, &said.err);
}
