use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::workspace::locks::Writer;
use crate::workspace::{GitError, WorkTree};

use super::sandbox::{GitAtWork, Sandbox, close, try_close};

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
    let other = tree.new_commit(&tree.tree_now().unwrap(), &[], "x", None).unwrap();
    assert!(matches!(tree.move_branch(Some(first), Some(other), "x"), Err(GitError::HeadMoved(_))));
    assert_eq!(repo.head(), second);
}

/// Of a process before the system was started the last time.
const NOTE: &str = ".git/ralph/writing-7-1-before";

/// As a driver leaves it that is killed while it holds the lock.
fn cut_off(repo: &Sandbox, lock: &str) -> WorkTree {
    repo.write(NOTE, repo.path(lock).to_str().unwrap()).write(lock, "");
    repo.open()
}

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
        tree.with_lock(&lock, || Ok(fs::read_to_string(repo.path(own_note())).unwrap())).unwrap();
    assert_eq!(noted, lock.to_str().unwrap());
    assert!(!repo.exists(own_note()));
    tree.with_lock(&lock, || Err::<(), _>(GitError::NothingChanged)).unwrap_err();
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
    let waited = tree.with_lock(&lock, || -> Result<(), GitError> { unreachable!("it is held") });
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
    tree.with_lock(&lock, link).unwrap();
    assert!(named.exists() && !lock.exists());

    let taken_by_somebody_else = || {
        fs::write(&lock, "").unwrap();
        Ok(())
    };
    tree.with_lock(&lock, taken_by_somebody_else).unwrap();
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
    for name in ["a", "outside.lock", ".git/description", ".git/config.new"] {
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
    repo.open().end_attempt().unwrap();
    repo.write(LOCKS[0], "");
    assert_eq!(repo.open().remove_own_locks().unwrap(), NONE, "no attempt is under way");
}

#[test]
fn what_an_agent_left_that_ended_by_itself_stays() {
    let repo = under_way();
    repo.write(LOCKS[1], "");
    let tree = repo.open();
    tree.end_attempt().unwrap();
    assert_eq!(tree.remove_own_locks().unwrap(), NONE, "it is over");
    assert!(repo.exists(LOCKS[1]));
}

#[test]
fn what_was_there_before_the_attempt_stays() {
    let repo = under_way();
    repo.write(LOCKS[1], "");
    let file = File::options().write(true).open(repo.path(LOCKS[1])).unwrap();
    let before = file.metadata().unwrap().modified().unwrap() - Duration::from_secs(3600);
    file.set_modified(before).unwrap();
    assert_eq!(repo.open().remove_own_locks().unwrap(), NONE);
    assert!(repo.exists(LOCKS[1]));
}

#[test]
#[cfg(target_os = "linux")]
fn with_a_git_process_at_work_they_stay() {
    let repo = under_way();
    repo.write(LOCKS[1], "");
    let _at_work = GitAtWork::start(repo.root());
    assert_eq!(repo.open().remove_own_locks().unwrap(), NONE);
    assert!(repo.exists(LOCKS[1]));
}

#[test]
#[cfg(target_os = "linux")]
fn a_lock_that_any_process_has_open_stays() {
    let repo = under_way();
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3>\"$0\"; echo; cat"]).arg(repo.path(LOCKS[1]));
    let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    holder.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let removed = repo.open().remove_own_locks().unwrap();
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(removed, NONE);
    assert!(repo.exists(LOCKS[1]));
}

#[test]
fn a_process_is_itself_as_long_as_it_lives() {
    let me = Writer::this_process();
    assert!(me.is_alive());
    assert_eq!(Writer::parse(&me.to_string()), Some(me.clone()));
    for bad in ["", "7", "7-", "7-x-boot", "x-7-boot"] {
        assert_eq!(Writer::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_process_that_ended_is_dead() {
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let child_as = |me: Writer| Writer { pid: child.id(), ..me.clone() };
    let started = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok();
    let started = started.and_then(|stat| stat.split(' ').nth(21)?.parse().ok());
    let writer =
        Writer { started: started.unwrap_or_default(), ..child_as(Writer::this_process().clone()) };
    assert!(writer.is_alive());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!writer.is_alive());
}

#[test]
#[cfg(target_os = "linux")]
fn a_number_that_somebody_else_got_is_not_the_same_process() {
    let me = Writer::this_process();
    assert!(!Writer { started: me.started + 1, ..me.clone() }.is_alive());
    assert!(!Writer { boot: "another start of the system".to_owned(), ..me.clone() }.is_alive());
}
