use std::path::PathBuf;
use std::time::Duration;

use crate::workspace::GitError;

use super::sandbox::Sandbox;

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}

#[test]
fn tells_edits_from_untracked_files() {
    let repo = Sandbox::new();
    let tree = repo.open();
    assert_eq!(tree.uncommitted(&[]).unwrap(), crate::workspace::Uncommitted::default());
    repo.write("a", "a1\n").delete("b").write("u", "u\n").write("PRD.json", "{}");
    repo.write("staged", "s\n").git(["add", "staged"]);
    repo.write("folder/x", "x\n").write("folder/y", "y\n").write(".ralph/z", "z\n");
    let found = tree.uncommitted(&paths(&["PRD.json"])).unwrap();
    assert_eq!(found.edited, paths(&["a", "b", "staged"]));
    assert_eq!(found.untracked, paths(&["folder/", "u"]));
}

#[test]
fn a_sparse_checkout_misses_nothing() {
    let repo = Sandbox::new();
    repo.git(["sparse-checkout", "set", "--no-sparse-index", "other"]);
    assert!(!repo.exists("docs/c"));
    let tree = repo.open();
    assert_eq!(tree.uncommitted(&[]).unwrap().edited, paths(&[]));
    assert!(tree.surroundings().unwrap().is_sparse);
}

#[test]
fn hooks_are_programs_in_the_folder_that_git_uses() {
    let repo = Sandbox::new();
    let hooks = || repo.open().surroundings().unwrap().hooks;
    repo.write(".git/hooks/commit-msg", "not a program");
    assert_eq!(hooks(), paths(&[]));
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\n").make_executable(".git/hooks/pre-commit");
    assert_eq!(hooks(), paths(&[".git/hooks/pre-commit"]));
    repo.write("tools/commit-msg", "#!/bin/sh\n").make_executable("tools/commit-msg");
    repo.git(["config", "core.hooksPath", "tools"]);
    assert_eq!(hooks(), paths(&["tools/commit-msg"]));
}

#[test]
fn attributes_count_when_somebody_said_what_they_do() {
    let repo = Sandbox::new();
    repo.write("sub/.gitattributes", "# *.c filter=c\n*.bin filter=strip diff=strip -text\n");
    repo.commit_all("attributes");
    let found = || repo.open().surroundings().unwrap().attributes;
    assert!(found().is_empty());
    repo.git(["config", "filter.strip.clean", "cat"]);
    repo.write(".git/info/attributes", "*.u16 working-tree-encoding=UTF-16\n");
    let words: Vec<String> = found().into_iter().collect();
    assert_eq!(words, ["filter=strip", "working-tree-encoding=UTF-16"]);
}

#[test]
fn submodules_are_found() {
    let other = Sandbox::new();
    let repo = Sandbox::new();
    assert!(repo.open().surroundings().unwrap().submodules.is_empty());
    let from = other.root().to_str().unwrap();
    repo.git(["-c", "protocol.file.allow=always", "submodule", "add", "-q", from, "lib"]);
    repo.commit_all("submodule");
    let tree = repo.open();
    assert_eq!(tree.surroundings().unwrap().submodules, paths(&["lib"]));
    repo.write("lib/a", "work inside\n");
    assert_eq!(tree.uncommitted(&[]).unwrap().edited, paths(&[]));
}

#[test]
fn an_index_that_somebody_holds_is_waited_for_and_named() {
    let repo = Sandbox::new();
    let mut tree = repo.open();
    tree.require_unlocked().unwrap();
    tree.lock_patience = Duration::from_millis(30);
    repo.write(".git/index.lock", "");
    match tree.require_unlocked() {
        Err(GitError::Locked(file)) => assert_eq!(file, repo.path(".git/index.lock")),
        other => panic!("{other:?}"),
    }
    assert!(repo.exists(".git/index.lock"));
}
