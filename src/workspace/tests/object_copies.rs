//! Objects that something deletes while they have a second name.

use std::collections::BTreeSet;
use std::fs;

use crate::workspace::GuardPart;

use super::guard::{armed, repair};
use super::sandbox::Sandbox;

fn packs(repo: &Sandbox) -> BTreeSet<String> {
    let names = fs::read_dir(repo.path(".git/objects/pack")).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".pack")).collect()
}

#[test]
fn packs_that_git_replaced_itself_stay_away() {
    let repo = Sandbox::new();
    repo.git(["gc", "-q"]);
    repo.write("a", "a1\n").commit_all("second");
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.git(["gc", "-q"]);
    let after = packs(&repo);
    guard.return_objects(&tree).unwrap();
    assert_eq!(repair(&guard, &tree, GuardPart::after_attempt()), []);
    assert_eq!(packs(&repo), after);
    armed(&repo, &tree);
    let held = fs::read_dir(repo.path(".git/ralph/objects/pack")).unwrap().count();
    assert_eq!(held, 2, "a pack and its index");
    repo.assert_sound();
}

#[test]
fn objects_and_packs_that_are_gone_come_back() {
    for is_packed in [false, true] {
        let repo = Sandbox::new();
        repo.write("a", "a1\n").git(["stash", "-q"]);
        if is_packed {
            repo.git(["gc", "-q"]);
        }
        let tree = repo.open();
        let guard = armed(&repo, &tree);
        repo.delete(".git/objects");
        guard.return_objects(&tree).unwrap();
        assert_eq!(repo.git(["show", "stash@{0}:a"]), "a1\n", "packed: {is_packed}");
        repo.assert_sound();
    }
}
