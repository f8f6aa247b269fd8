use std::fs;
use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::workspace::holders::Writer;
use crate::workspace::{GitError, WorkTree};

use super::sandbox::{GitAtWork, Sandbox};

/// Of a process before the system was started the last time.
const NOTE: &str = ".git/ralph/writing-7-1-before";

/// As a driver leaves it that is killed while it holds the lock.
fn cut_off(repo: &Sandbox, lock: &str) -> WorkTree {
    repo.write(NOTE, repo.path(lock).to_str().unwrap()).write(lock, "");
    repo.open()
}

const NONE: [std::path::PathBuf; 0] = [];

fn own_note() -> String {
    format!(".git/ralph/writing-{}", Writer::this_process())
}

fn shift(repo: &Sandbox, name: &str, by: impl Fn(SystemTime) -> SystemTime) {
    let file = File::options().write(true).open(repo.path(name)).unwrap();
    file.set_modified(by(file.metadata().unwrap().modified().unwrap())).unwrap();
}

#[test]
fn the_lock_of_a_killed_driver_is_removed_and_named() {
    for lock in [".git/index.lock", ".git/refs/heads/main.lock", ".git/refs/ralph/x/1.lock"] {
        let repo = Sandbox::new();
        let tree = cut_off(&repo, lock);
        assert_eq!(tree.remove_own_locks().unwrap(), [repo.path(lock)]);
        assert!(!repo.exists(lock) && !repo.exists(NOTE));
        assert_eq!(tree.remove_own_locks().unwrap(), NONE);
    }
}

#[test]
fn a_lock_is_noted_until_the_work_is_done_or_failed() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let lock = repo.path(".git/index.lock");
    let noted =
        tree.locking(&lock, || Ok(fs::read_to_string(repo.path(own_note())).unwrap())).unwrap();
    assert_eq!(noted, lock.to_str().unwrap());
    assert!(!repo.exists(own_note()));
    tree.locking(&lock, || Err::<(), _>(GitError::NothingChanged)).unwrap_err();
    assert!(!repo.exists(own_note()));
}

#[test]
fn a_lock_that_somebody_else_left_stays() {
    let hour = Duration::from_secs(3600);
    let repo = Sandbox::new();
    let tree = cut_off(&repo, ".git/index.lock");
    shift(&repo, ".git/index.lock", |time| time - hour);
    assert_eq!(tree.remove_own_locks().unwrap(), NONE, "it was there before");
    assert!(repo.exists(".git/index.lock"));

    let repo = Sandbox::new();
    let tree = cut_off(&repo, ".git/index.lock");
    shift(&repo, ".git/index.lock", |time| time + hour);
    assert_eq!(tree.remove_own_locks().unwrap(), NONE, "it came long after");
    assert!(repo.exists(".git/index.lock"));

    let repo = Sandbox::new();
    let tree = cut_off(&repo, ".git/index.lock");
    repo.write(".git/HEAD.lock", "");
    assert_eq!(tree.remove_own_locks().unwrap(), [repo.path(".git/index.lock")]);
    assert!(repo.exists(".git/HEAD.lock"), "it is not the noted one");

    let repo = Sandbox::new();
    let tree = repo.open();
    repo.write(".git/index.lock", "");
    assert_eq!(tree.remove_own_locks().unwrap(), NONE, "nothing was cut off");
    assert!(repo.exists(".git/index.lock"));
}

#[test]
fn while_somebody_elses_lock_is_waited_for_nothing_is_noted() {
    let repo = Sandbox::new();
    let mut tree = repo.open();
    tree.lock_patience = Duration::from_millis(20);
    repo.write(".git/index.lock", "");
    let lock = repo.path(".git/index.lock");
    let waited = tree.locking(&lock, || -> Result<(), GitError> { unreachable!("it is held") });
    assert!(matches!(waited, Err(GitError::Locked(_))), "{waited:?}");
    assert!(!repo.exists(own_note()));
    assert!(repo.exists(".git/index.lock"));
}

#[test]
fn a_lock_that_became_the_file_itself_is_not_left_behind() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let (lock, named) = (repo.path(".git/refs/new.lock"), repo.path(".git/refs/new"));
    let link = || {
        fs::write(&lock, "x").unwrap();
        fs::hard_link(&lock, &named).unwrap();
        Ok(())
    };
    tree.locking(&lock, link).unwrap();
    assert!(named.exists() && !lock.exists());

    let taken_by_somebody_else = || {
        fs::write(&lock, "").unwrap();
        Ok(())
    };
    tree.locking(&lock, taken_by_somebody_else).unwrap();
    assert!(lock.exists());
}

#[test]
fn the_lock_of_a_process_that_lives_stays() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let lock = ".git/index.lock";
    repo.write(own_note(), repo.path(lock).to_str().unwrap()).write(lock, "");
    assert_eq!(tree.remove_own_locks().unwrap(), NONE);
    assert!(repo.exists(lock) && repo.exists(own_note()));
}

#[test]
fn a_note_that_was_cut_off_itself_goes() {
    let repo = Sandbox::new();
    repo.write(NOTE, "");
    assert_eq!(repo.open().remove_own_locks().unwrap(), NONE);
    assert!(!repo.exists(NOTE));
}

#[test]
fn a_note_about_anything_but_a_lock_of_this_repository_is_not_believed() {
    for name in ["a", "outside.lock", ".git/description"] {
        let repo = Sandbox::new();
        let tree = cut_off(&repo, name);
        assert_eq!(tree.remove_own_locks().unwrap(), NONE, "{name}");
        assert!(repo.exists(name), "{name}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn with_a_git_process_at_work_nothing_is_removed() {
    let repo = Sandbox::new();
    let mut tree = cut_off(&repo, ".git/index.lock");
    tree.lock_patience = Duration::from_millis(50);
    let at_work = GitAtWork::start(tree.root());
    let found = tree.remove_own_locks();
    assert!(matches!(found, Err(GitError::Locked(_))), "{found:?}");
    assert!(repo.exists(".git/index.lock"));
    drop(at_work);
    assert_eq!(tree.remove_own_locks().unwrap(), [repo.path(".git/index.lock")]);
}
