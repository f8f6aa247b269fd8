use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::workspace::WorkTree;

use super::sandbox::{Sandbox, close};

#[test]
fn is_gits_own_tree_and_touches_nothing() {
    let repo = Sandbox::new();
    repo.write("a", "a1\n").write("new", "n\n").delete("b").write(".gitignore", "*.log\n");
    repo.write("x.log", "log\n").write("forced.log", "f\n");
    repo.git(["add", "-f", "forced.log"]);
    let index = fs::read(repo.path(".git/index")).unwrap();
    let (head, status) = (repo.head(), repo.status());
    let snapshot = repo.open().base().unwrap().tree;
    assert_eq!(fs::read(repo.path(".git/index")).unwrap(), index);
    assert_eq!((repo.head(), repo.status()), (head, status));
    repo.git(["add", "-A"]);
    assert_eq!(repo.git(["write-tree"]).trim(), snapshot);
}

#[test]
fn two_snapshots_in_a_row_see_what_happened_between() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let first = tree.base().unwrap().tree;
    repo.write("a", "a1\n");
    let second = tree.base().unwrap().tree;
    repo.write("a", "a0\n");
    assert_ne!(first, second);
    assert_eq!(tree.base().unwrap().tree, first);
}

/// Path, content, mode and size of every entry of the index that the handle has in memory.
fn in_memory(tree: &WorkTree) -> Vec<(Vec<u8>, String, u32, u32)> {
    let index = tree.repo.index().unwrap();
    index.iter().map(|e| (e.path, e.id.to_string(), e.mode, e.file_size)).collect()
}

#[test]
fn a_scan_leaves_the_index_in_memory_as_it_is_on_disk() {
    let repo = Sandbox::new();
    repo.write("staged", "s\n").write("deep/er", "d\n").link("link", "a").commit_all("more");
    repo.write("staged", "s1\n").write("added", "x\n").git(["add", "staged", "added"]);
    repo.write("staged", "s2\n").write("a", "a1\n").write("new", "n\n").delete("b").delete("link");
    // A folder becomes a file and a file a folder: adding one takes the other out of an index.
    repo.delete("deep").write("deep", "file\n").delete("docs/c").write("docs/c/d", "d\n");
    let tree = repo.open();
    let before: Vec<_> = tree.fresh_index().map(|_| in_memory(&tree)).unwrap();
    let first = tree.base().unwrap().tree;
    assert!(!tree.index_is_modified.get(), "nothing has to be read again");
    let ids = |entries: &[(Vec<u8>, String, u32, u32)]| {
        entries.iter().map(|e| (e.0.clone(), e.1.clone(), e.2)).collect::<Vec<_>>()
    };
    assert_eq!(ids(&in_memory(&tree)), ids(&before));
    assert_eq!(tree.base().unwrap().tree, first);
}

#[test]
fn an_edit_that_only_the_content_shows_is_not_lost_with_the_next_index() {
    let repo = Sandbox::new();
    repo.git(["config", "core.trustctime", "false"]);
    let then = SystemTime::now() - Duration::from_secs(3600);
    let date_back = |path: &str| {
        let file = File::options().write(true).open(repo.path(path)).unwrap();
        file.set_modified(then).unwrap();
    };
    date_back("a");
    repo.git(["update-index", "--refresh"]);
    repo.write("a", "a1\n");
    date_back("a");
    date_back(".git/index");
    let tree = repo.open();
    tree.base().unwrap();
    tree.update_index(&[("b".into(), None)]).unwrap();
    assert_eq!(repo.git(["status", "--porcelain", "a"]), " M a\n");
}

#[test]
fn leaves_out_the_drivers_own_folder() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write(".ralph/state", "s\n").write("docs/.ralph/kept", "k\n");
    close(&tree, &base);
    assert_eq!(repo.last_changes(), "A\tdocs/.ralph/kept\n");
    let base = tree.base().unwrap();
    repo.git(["add", "-f", ".ralph"]);
    assert_eq!(tree.base().unwrap(), base);
    repo.write(".ralph/state", "t\n");
    assert_eq!(tree.base().unwrap(), base);
    close(&tree, &base);
    assert_eq!(repo.last_changes(), "");
}

#[test]
fn changes_since_a_state_are_paths_and_commits() {
    let repo = Sandbox::new();
    let tree = repo.open();
    repo.write("before", "b\n");
    let base = tree.base().unwrap();
    assert!(tree.difference_since(&base).unwrap().is_empty());
    repo.write("new", "n\n").write("before", "c\n");
    let edited = tree.difference_since(&base).unwrap();
    assert_eq!(edited.paths, [Path::new("before"), Path::new("new")]);
    assert!(!edited.committed && !edited.is_empty());
    repo.git(["add", "before", "new"]);
    repo.git(["commit", "-qm", "x"]);
    let committed = tree.difference_since(&base).unwrap();
    assert_eq!((committed.committed, committed.paths), (true, edited.paths));
    let base = tree.base().unwrap();
    repo.git(["commit", "-q", "--allow-empty", "-m", "y"]);
    assert!(!tree.difference_since(&base).unwrap().is_empty());
}

#[test]
fn leaves_out_nested_repositories() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    for name in ["nested", "deep/er/nested"] {
        repo.git(["init", "-q", name]);
        repo.write(format!("{name}/x"), "x\n");
    }
    repo.git(["-C", "nested", "add", "-A"]);
    repo.git(["-C", "nested", "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "n"]);
    repo.write("deep/file", "f\n");
    close(&tree, &base);
    assert_eq!(repo.last_changes(), "A\tdeep/file\n");
    assert!(repo.exists("nested/x") && repo.exists("deep/er/nested/x"));
}

#[test]
fn a_sparse_checkout_is_not_a_deletion() {
    let repo = Sandbox::new();
    repo.write("kept/x", "x\n").commit_all("more");
    repo.git(["sparse-checkout", "set", "kept"]);
    assert!(!repo.exists("docs/c"));
    let tree = repo.open();
    let base = tree.base().unwrap();
    assert_eq!(base.tree, repo.git(["rev-parse", "HEAD^{tree}"]).trim());
    repo.write("kept/x", "x1\n");
    close(&tree, &base);
    assert_eq!(repo.last_changes(), "M\tkept/x\n");
    assert_eq!(repo.status(), "");
    assert_eq!(repo.committed("docs/c").unwrap(), "c0\n");
}

#[test]
fn a_held_base_outlives_the_garbage_collection() {
    let repo = Sandbox::new();
    repo.write("a", "uncommitted\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    tree.hold(&base).unwrap();
    repo.git(["gc", "-q", "--prune=now"]);
    repo.write("b", "b1\n");
    // Opened anew: the old handle remembers objects that are gone.
    close(&repo.open(), &base);
    assert_eq!(repo.last_changes(), "M\tb\n");
}

#[test]
fn a_scratch_repository_has_everything_and_an_identity() {
    let repo = Sandbox::empty();
    repo.write("PRD.json", "{}").write("src/x", "x\n").write(".ralph/state", "s\n");
    let tree = crate::workspace::init_scratch(repo.root()).unwrap();
    assert_eq!(repo.git(["ls-tree", "-r", "--name-only", "HEAD"]), "PRD.json\nsrc/x\n");
    let base = tree.base().unwrap();
    repo.write("src/x", "x1\n");
    close(&tree, &base);
    assert_eq!(repo.git(["log", "--format=%an %s"]), "ralph close\nralph The files as they were\n");
}

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

/// As soon as no file is so new that it could change without a trace.
fn settled(tree: &WorkTree) -> String {
    loop {
        let found = tree.base().unwrap().tree;
        if tree.known.borrow().others.len() >= 100 {
            return found;
        }
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
    let first = settled(&tree);
    assert_eq!((tree.base().unwrap().tree, by_git(&repo)), (first.clone(), first));

    // The same size and the same time, as far as a program can set it.
    repo.write("many/7", "x\n");
    age(&repo, "many/7", 100);
    repo.delete("many/8").write("many/9", "longer than before\n").make_executable("many/10");
    repo.delete("many/11").link("many/11", "12");
    repo.write(".gitignore", "many/1?\n");
    assert_eq!(tree.base().unwrap().tree, by_git(&repo));
    repo.delete(".gitignore");
    repo.git(["add", "many/20"]);
    repo.write("many/20", "edited on\n");
    assert_eq!(tree.base().unwrap().tree, by_git(&repo));
}

#[test]
fn what_is_remembered_is_not_read_again() {
    let repo = Sandbox::new();
    many(&repo);
    let tree = repo.open();
    let first = settled(&tree);
    // Nobody but the superuser can be kept from reading a file, so the memory itself is changed.
    {
        let others = &mut tree.known.borrow_mut().others;
        assert_eq!(others.len(), 100);
        let other = others[Path::new("many/2")].id;
        others.get_mut(Path::new("many/1")).unwrap().id = other;
    }
    assert_ne!(tree.base().unwrap().tree, first, "the memory was used");
}

#[test]
fn what_was_just_written_is_not_remembered() {
    let repo = Sandbox::new();
    many(&repo);
    let tree = repo.open();
    settled(&tree);
    repo.write("many/fresh", "f\n");
    // A program can set one of its times.
    repo.write("many/dated", "d\n");
    age(&repo, "many/dated", 100);
    tree.base().unwrap();
    let known = &tree.known.borrow().others;
    assert!(!known.contains_key(Path::new("many/fresh")));
    assert!(!known.contains_key(Path::new("many/dated")));
}

#[test]
fn a_lost_object_costs_nothing_but_time() {
    let repo = Sandbox::new();
    many(&repo);
    let tree = repo.open();
    let first = settled(&tree);
    repo.git(["gc", "-q", "--prune=now"]);
    assert_eq!(tree.base().unwrap().tree, first, "the objects are written again");
    repo.git(["cat-file", "-e", &format!("{first}:many/50")]);
}
