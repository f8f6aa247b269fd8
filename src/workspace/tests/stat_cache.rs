//! The memory of files that no index knows must never be noticed but by the clock.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use super::sandbox::Sandbox;

/// As if it had been written long ago.
fn age(repo: &Sandbox, path: &str, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::options().write(true).open(repo.path(path)).unwrap().set_modified(time).unwrap();
}

fn many(repo: &Sandbox) {
    for number in 0..100 {
        let name = format!("many/{number}");
        repo.write(&name, format!("{number}\n"));
        age(repo, &name, 100);
    }
}

fn by_git(repo: &Sandbox) -> String {
    repo.git(["add", "-A"]);
    let tree = repo.git(["write-tree"]).trim().to_owned();
    repo.git(["reset", "-q"]);
    tree
}

#[test]
fn untracked_files_are_remembered_and_every_change_is_seen() {
    let repo = Sandbox::new();
    many(&repo);
    let tree = repo.open();
    let first = tree.snapshot().unwrap();
    let memory = repo.path(".git/ralph/seen");
    assert_eq!(memory.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!((tree.snapshot().unwrap(), by_git(&repo)), (first.clone(), first));

    // The same size and the same time, as far as a program can set it.
    repo.write("many/7", "x\n");
    age(&repo, "many/7", 100);
    repo.delete("many/8").write("many/9", "longer than before\n").make_executable("many/10");
    repo.delete("many/11").link("many/11", "12");
    repo.write(".gitignore", "many/1?\n");
    assert_eq!(tree.snapshot().unwrap(), by_git(&repo));
    repo.delete(".gitignore");
    repo.git(["add", "many/20"]);
    repo.write("many/20", "edited on\n");
    assert_eq!(tree.snapshot().unwrap(), by_git(&repo));
}

#[test]
fn what_is_remembered_is_not_read_again() {
    let repo = Sandbox::new();
    many(&repo);
    let tree = repo.open();
    let first = tree.snapshot().unwrap();
    // Nobody but the superuser can be kept from reading a file, so the memory itself is asked.
    let known = git2::Index::open(&repo.path(".git/ralph/seen")).unwrap();
    assert_eq!(known.len(), 100);
    let mut lie = git2::Index::open(&repo.path(".git/ralph/seen")).unwrap();
    let mut entry = known.get_path("many/1".as_ref(), 0).unwrap();
    entry.id = known.get_path("many/2".as_ref(), 0).unwrap().id;
    lie.add(&entry).unwrap();
    lie.write().unwrap();
    assert_ne!(tree.snapshot().unwrap(), first, "the memory was used");
}

#[test]
fn what_was_just_written_is_not_remembered() {
    let repo = Sandbox::new();
    many(&repo);
    repo.write("many/fresh", "f\n");
    repo.open().snapshot().unwrap();
    let known = git2::Index::open(&repo.path(".git/ralph/seen")).unwrap();
    assert_eq!(known.len(), 100);
}

#[test]
fn a_broken_memory_or_a_lost_object_costs_nothing_but_time() {
    let repo = Sandbox::new();
    many(&repo);
    let first = repo.open().snapshot().unwrap();
    repo.git(["gc", "-q", "--prune=now"]);
    assert_eq!(repo.open().snapshot().unwrap(), first, "the objects are written again");
    repo.git(["cat-file", "-e", &format!("{first}:many/50")]);
    for broken in [&b""[..], b"DIRC", b"garbage that is no index at all"] {
        fs::write(repo.path(".git/ralph/seen"), broken).unwrap();
        assert_eq!(repo.open().snapshot().unwrap(), first);
    }
}
