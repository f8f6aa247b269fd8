use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::workspace::{FileLocation, GitError, Head, WorkTree};

use super::sandbox::Sandbox;

#[test]
fn finds_the_repository_from_a_folder_inside() {
    let repo = Sandbox::new();
    let tree = WorkTree::open(&repo.path("docs")).unwrap();
    assert_eq!(tree.root(), repo.root());
    assert_eq!(tree.git_dir(), repo.path(".git"));
    assert_eq!(tree.common_dir(), repo.path(".git"));
    assert_eq!(tree.branch().unwrap(), Head::Branch { name: "main".into(), unborn: false });
}

#[test]
fn a_branch_without_commits_is_fine() {
    let repo = Sandbox::unborn();
    let tree = repo.open();
    assert_eq!(tree.branch().unwrap(), Head::Branch { name: "main".into(), unborn: true });
    assert_eq!(tree.base().unwrap().commit, None);
}

#[test]
fn refuses_what_is_no_work_tree() {
    let nothing = Sandbox::empty();
    assert!(matches!(nothing.refusal(), GitError::NotARepository(_)));
    nothing.git(["init", "-q", "--bare", "."]);
    assert!(matches!(nothing.refusal(), GitError::Bare(_)));
}

#[test]
fn refuses_formats_that_cannot_be_read() {
    for option in ["--object-format=sha256", "--ref-format=reftable"] {
        let repo = Sandbox::empty();
        repo.git(["init", "-q", option]);
        assert!(matches!(repo.refusal(), GitError::Format { .. }), "{option}");
    }
    let split = Sandbox::new();
    split.git(["update-index", "--split-index"]);
    assert!(matches!(split.refusal(), GitError::Format { .. }));
}

#[test]
fn refuses_a_merge_a_rebase_and_unmerged_files() {
    let repo = Sandbox::new();
    repo.git(["switch", "-q", "-c", "other"]);
    repo.write("a", "theirs\n").commit_all("theirs");
    repo.git(["switch", "-q", "main"]);
    repo.write("a", "ours\n").commit_all("ours");
    repo.git_fails(["merge", "other"]);
    assert!(matches!(repo.refusal(), GitError::InProgress { what: "merge" }));
    fs::remove_file(repo.path(".git/MERGE_HEAD")).unwrap();
    match repo.refusal() {
        GitError::Unmerged(paths) => assert_eq!(paths, ["a"]),
        other => panic!("{other}"),
    }
    repo.git(["reset", "-q", "--hard"]);
    repo.git_fails(["rebase", "other"]);
    assert!(matches!(repo.refusal(), GitError::InProgress { what: "rebase" }));
    repo.git(["rebase", "--abort"]);
    repo.git_fails(["cherry-pick", "other"]);
    assert!(matches!(repo.refusal(), GitError::InProgress { what: "cherry-pick" }));
}

#[test]
fn refuses_to_commit_without_an_identity() {
    let repo = Sandbox::new();
    repo.git(["config", "--unset", "user.email"]);
    assert!(matches!(repo.refusal(), GitError::NoIdentity));
}

/// As `git init --separate-git-dir` does it; git names no work tree in the configuration.
#[test]
fn a_git_folder_somewhere_else_does_not_move_the_work_tree() {
    let repo = Sandbox::new();
    let git = repo.beside("elsewhere").join("git");
    fs::create_dir(repo.beside("elsewhere")).unwrap();
    fs::rename(repo.path(".git"), &git).unwrap();
    repo.write(".git", format!("gitdir: {}\n", git.display()));
    let below = repo.write("below/b", "b\n").path("below");
    for start in [repo.root().to_owned(), below] {
        let tree = WorkTree::look(&start).unwrap();
        assert_eq!(tree.root(), fs::canonicalize(repo.root()).unwrap());
        assert_eq!(tree.git_dir, fs::canonicalize(&git).unwrap());
    }
}

#[test]
fn every_refusal_says_what_to_do() {
    let text = GitError::NoIdentity.to_string();
    assert!(text.contains("git config user.name"), "{text}");
    let text = GitError::InProgress { what: "rebase" }.to_string();
    assert!(text.contains("git rebase --abort"), "{text}");
}

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

#[test]
fn tells_where_a_path_stands() {
    let repo = Sandbox::new();
    repo.write(".gitignore", "*.log\nout/\n").write("tracked.log", "t\n");
    repo.git(["add", "-f", "tracked.log"]);
    repo.git(["init", "-q", "nested"]);
    repo.link("link", "docs/c").link("away", "/etc/hostname");
    let tree = repo.open();
    let inside = |path: &str| FileLocation::Inside(PathBuf::from(path));
    let ignored = |path: &str| FileLocation::Ignored(PathBuf::from(path));
    let rows = [
        ("a", inside("a")),
        ("docs/../a", inside("a")),
        ("docs/not-yet", inside("docs/not-yet")),
        ("link", inside("docs/c")),
        ("tracked.log", inside("tracked.log")),
        ("x.log", ignored("x.log")),
        ("out/PRD.json", ignored("out/PRD.json")),
        (".ralph/x", ignored(".ralph/x")),
        ("away", FileLocation::Outside),
        ("../beside", FileLocation::Outside),
        (".git/config", FileLocation::Outside),
        ("nested/PRD.json", FileLocation::Outside),
        ("", FileLocation::Outside),
    ];
    for (path, place) in rows {
        assert_eq!(tree.locate(&repo.path(path)).unwrap(), place, "{path}");
    }
}
