use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::workspace::GitError;

use super::sandbox::{Sandbox, close, try_close};

#[test]
fn a_locked_index_is_waited_for_then_named_and_never_deleted() {
    let repo = Sandbox::new();
    let mut tree = repo.open();
    tree.lock_patience = Duration::from_millis(50);
    let base = tree.base().unwrap();
    let head = repo.head();
    repo.write("a", "a1\n").write(".git/index.lock", "");
    let started = Instant::now();
    match try_close(&tree, &base) {
        Err(GitError::Locked(file)) => assert_eq!(file, repo.path(".git/index.lock")),
        other => panic!("{other:?}"),
    }
    assert!(started.elapsed() >= Duration::from_millis(50));
    assert!(repo.exists(".git/index.lock"));
    assert_eq!(repo.head(), head);
}

#[test]
fn a_lock_that_goes_away_costs_only_time() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a1\n").write(".git/index.lock", "");
    let lock = repo.path(".git/index.lock");
    let holder = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        fs::remove_file(lock).unwrap();
    });
    close(&tree, &base);
    holder.join().unwrap();
    assert_eq!(repo.status(), "");
}

#[test]
fn a_locked_branch_is_named() {
    let repo = Sandbox::new();
    let mut tree = repo.open();
    tree.lock_patience = Duration::from_millis(20);
    let base = tree.base().unwrap();
    repo.write(".git/refs/heads/main.lock", "");
    match try_close(&tree, &base) {
        Err(GitError::Locked(file)) => assert_eq!(file, repo.path(".git/refs/heads/main.lock")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_locked_base_is_named() {
    let repo = Sandbox::new();
    let mut tree = repo.open();
    tree.lock_patience = Duration::from_millis(20);
    repo.write("uncommitted", "x");
    let base = tree.base().unwrap();
    repo.write(".git/refs/worktree/ralph/base.lock", "");
    match tree.hold(&base) {
        Err(GitError::Locked(file)) => {
            assert_eq!(file, repo.path(".git/refs/worktree/ralph/base.lock"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_branch_that_was_moved_meanwhile_is_not_overwritten() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let first = git2::Oid::from_str(&repo.head()).unwrap();
    let second = repo.commit_all("by somebody else");
    for seen in [Some(first), None] {
        let moved = tree.move_branch(seen, Some(first), "test");
        let as_seen = seen == Some(first) && moved.is_ok();
        assert!(as_seen || matches!(moved, Err(GitError::HeadMoved(_))), "{moved:?}");
    }
    assert_eq!(repo.head(), second);
    let other = tree.new_commit(&tree.tree(&tree.snapshot().unwrap()).unwrap(), &[], "x").unwrap();
    assert!(matches!(tree.move_branch(Some(first), Some(other), "x"), Err(GitError::HeadMoved(_))));
    assert_eq!(repo.head(), second);
}
