use std::fs;

use crate::workspace::{GitError, Head, WorkTree};

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
fn refuses_to_commit_as_nobody() {
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
