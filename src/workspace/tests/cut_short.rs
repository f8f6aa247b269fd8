use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use super::sandbox::{GitAtWork, Sandbox};

const LOCKS: [&str; 3] = [".git/config.lock", ".git/index.lock", ".git/refs/heads/topic/x.lock"];
const NONE: [PathBuf; 0] = [];

fn under_way() -> Sandbox {
    let repo = Sandbox::new();
    repo.open().begin_attempt().unwrap();
    repo
}

#[test]
fn what_came_during_an_attempt_that_was_cut_short_is_removed() {
    let repo = under_way();
    for lock in LOCKS {
        repo.write(lock, "");
    }
    let expected: Vec<PathBuf> = LOCKS.iter().map(|lock| repo.path(lock)).collect();
    // As the next process does it, after a kill.
    assert_eq!(repo.open().remove_own_locks().unwrap(), expected);
    assert!(LOCKS.iter().all(|lock| !repo.exists(lock)));
    repo.write(LOCKS[0], "");
    assert_eq!(repo.open().remove_own_locks().unwrap(), NONE, "no attempt is under way");
}

#[test]
fn what_an_agent_left_that_ended_by_itself_stays() {
    let repo = under_way();
    repo.write(LOCKS[1], "");
    let tree = repo.open();
    assert_eq!(tree.end_attempt(false).unwrap(), NONE);
    assert_eq!(tree.end_attempt(true).unwrap(), NONE, "it is over");
    assert!(repo.exists(LOCKS[1]));
}

#[test]
fn what_was_there_before_the_attempt_stays() {
    let repo = under_way();
    repo.write(LOCKS[1], "");
    let file = File::options().write(true).open(repo.path(LOCKS[1])).unwrap();
    let before = file.metadata().unwrap().modified().unwrap() - Duration::from_secs(3600);
    file.set_modified(before).unwrap();
    assert_eq!(repo.open().end_attempt(true).unwrap(), NONE);
    assert!(repo.exists(LOCKS[1]));
}

#[test]
#[cfg(target_os = "linux")]
fn with_a_git_process_at_work_they_stay() {
    let repo = under_way();
    repo.write(LOCKS[1], "");
    let _at_work = GitAtWork::start(repo.root());
    assert_eq!(repo.open().end_attempt(true).unwrap(), NONE);
    assert!(repo.exists(LOCKS[1]));
}
