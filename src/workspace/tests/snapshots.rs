use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use crate::workspace::{GitError, Keeping, SnapshotKind, SnapshotRef, WorkTree};

use super::sandbox::{Sandbox, story};

fn numbers(tree: &WorkTree) -> Vec<u64> {
    tree.snapshots().unwrap().iter().map(|kept| kept.number).collect()
}

fn snapshot(tree: &WorkTree, n: u32) -> SnapshotRef {
    let base = tree.base().unwrap();
    let name = tree.snapshot_name(n).unwrap();
    let kept = tree.keep_snapshot(&name, &story("US-1"), 4, &base).unwrap();
    tree.find_snapshot(kept.number).unwrap()
}

#[test]
fn a_snapshot_touches_nothing_and_says_what_it_is() {
    let repo = Sandbox::new();
    repo.write("a", "a1\n").write("new", "n\n").write(".gitignore", "*.log\n").write("x.log", "x");
    repo.git(["add", "a"]);
    let mut tree = repo.open();
    tree.serve("run-1", "plans/PRD.json");
    let index = fs::read(repo.path(".git/index")).unwrap();
    let (head, status) = (repo.head(), repo.status());
    let kept = snapshot(&tree, 1);
    assert_eq!(fs::read(repo.path(".git/index")).unwrap(), index);
    assert_eq!((repo.head(), repo.status()), (head.clone(), status));

    assert_eq!(kept.reference, "refs/ralph/snapshots/run-1/1");
    assert_eq!((kept.number, kept.kind, kept.iteration), (1, SnapshotKind::Snapshot, Some(4)));
    assert_eq!(
        (kept.run.as_deref(), kept.backlog.as_deref()),
        (Some("run-1"), Some("plans/PRD.json"))
    );
    assert_eq!(kept.story, Some(story("US-1")));
    let files = repo.git(["ls-tree", "-r", "--name-only", &kept.reference]);
    assert_eq!(files, ".gitignore\na\nb\ndocs/c\nnew\n");
    assert_eq!(repo.git(["show", &format!("{}:a", kept.reference)]), "a1\n");
    assert_eq!(repo.git(["rev-parse", &format!("{}^", kept.reference)]).trim(), head);
    assert_eq!(tree.files_of(&kept).unwrap(), 3);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["gc", "-q", "--prune=now"]);
    assert_eq!(repo.git(["show", &format!("{}:new", kept.reference)]), "n\n");
    repo.assert_sound();
}

#[test]
fn a_name_that_is_taken_is_not_overwritten() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let first = snapshot(&tree, 1);
    repo.write("a", "a1\n");
    let second = snapshot(&tree, 1);
    assert_eq!(
        (first.reference.as_str(), second.reference.as_str()),
        ("refs/ralph/snapshots/none/1", "refs/ralph/snapshots/none/2")
    );
    assert_eq!(numbers(&tree), [1, 2]);
}

#[test]
fn many_at_once_get_numbers_of_their_own() {
    let repo = Sandbox::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let tree = repo.open();
                for _ in 0..5 {
                    tree.checkpoint("one of many").unwrap();
                }
            });
        }
    });
    assert_eq!(numbers(&repo.open()), (1..=20).collect::<Vec<u64>>());
}

#[test]
fn numbers_continue_whatever_happened_to_the_note_of_the_newest() {
    let repo = Sandbox::new();
    let tree = repo.open();
    tree.checkpoint("one").unwrap();
    let note = repo.path(".git/ralph/numbers");
    fs::remove_file(&note).unwrap();
    tree.checkpoint("two").unwrap();
    for broken in [&b""[..], b"many\n", b"\xff\xff"] {
        fs::write(&note, broken).unwrap();
        tree.checkpoint("more").unwrap();
    }
    // A power cut may take the note's last bytes and leave the refs.
    fs::write(&note, "1\n").unwrap();
    repo.open().checkpoint("six").unwrap();
    assert_eq!(numbers(&tree), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_lock_of_a_killed_process_blocks_nothing() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write(".git/refs/ralph/snapshots/none/1.lock", "");
    repo.write(".git/refs/ralph/attempts/S/1.lock", "").write("a", "a1\n");
    assert_eq!(snapshot(&tree, 1).reference, "refs/ralph/snapshots/none/2");
    let (kept, _) = tree.keep_attempt(&story("S"), 1, 1, &base).unwrap().unwrap();
    assert_eq!(kept.reference, "refs/ralph/attempts/S/2");
}

#[test]
fn an_unknown_number_names_the_nearest() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let error = tree.find_snapshot(7).unwrap_err().to_string();
    assert!(error.contains("snapshot 7") && !error.contains("did you mean"), "{error}");
    tree.checkpoint("one").unwrap();
    tree.checkpoint("two").unwrap();
    let error = tree.find_snapshot(7).unwrap_err().to_string();
    assert!(error.ends_with(" (did you mean `2`?); `ralph log` lists the snapshots"), "{error}");
}

#[test]
fn a_failed_attempts_work_is_kept_and_stays() {
    let repo = Sandbox::new();
    repo.write("mine", "m\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    assert_eq!(tree.keep_attempt(&story("S"), 1, 1, &base).unwrap(), None);
    repo.write("a", "a1\n").git(["commit", "-qam", "by the agent"]);
    repo.write("new", "1\n2\n");
    let (status, head) = (repo.status(), repo.head());
    let (kept, stat) = tree.keep_attempt(&story("S"), 1, 1, &base).unwrap().unwrap();
    assert_eq!(kept.reference, "refs/ralph/attempts/S/1");
    assert_eq!(stat.to_string(), "2 files, +3 -1");
    assert_eq!((repo.status(), repo.head()), (status, head.clone()));
    assert_eq!(repo.git(["rev-parse", "refs/ralph/attempts/S/1^1"]).trim(), head);
    let patch = tree.diff_of(&tree.find_snapshot(kept.number).unwrap()).unwrap();
    let patch = String::from_utf8(patch).unwrap();
    assert!(patch.contains("-a0\n+a1\n") && patch.contains("+++ b/new"), "{patch}");
    assert!(!patch.contains("mine"), "{patch}");
    // Setting aside takes another number, because that work is something else.
    let refused = tree.shelve(&story("S"), 1, &base, &[]);
    assert!(matches!(refused, Err(GitError::RefTaken(_))));
    let aside = tree.shelve(&story("S"), 2, &base, &[]).unwrap();
    assert_eq!(aside.as_deref(), Some("refs/ralph/attempts/S/2"));
}

#[test]
fn the_branch_an_agent_left_behind_is_kept_with_its_work() {
    let repo = Sandbox::new();
    repo.git(["branch", "old"]);
    let tree = repo.open();
    let base = tree.base().unwrap();
    let own = repo.write("a", "a1\n").commit_all("by the agent, at home");
    repo.git(["switch", "-q", "old"]);
    let kept = tree.shelve(&story("S"), 1, &base, &[]).unwrap().unwrap();
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["gc", "-q", "--prune=now"]);
    assert!(repo.git(["rev-list", &kept]).contains(&own));
    assert_eq!(repo.git(["show", &format!("{own}:a")]), "a1\n");
}

#[test]
fn files_come_back_and_what_was_there_can_be_had_again() {
    let repo = Sandbox::new();
    repo.write("u", "u0\n").write("deep/x", "x0\n");
    let tree = repo.open();
    let then = tree.find_snapshot(tree.checkpoint("then").unwrap().number).unwrap();
    repo.write("a", "a9\n").delete("deep").delete("u").write("later", "l\n").write("u/in", "i\n");
    repo.git(["add", "a"]);
    let (head, staged) = (repo.head(), repo.git(["show", ":a"]));
    let done = tree.restore(&then, &[], &[]).unwrap().unwrap();
    assert_eq!(
        (repo.read("a"), repo.read("u"), repo.read("deep/x")),
        ("a0\n".into(), "u0\n".into(), "x0\n".into())
    );
    assert!(!repo.exists("later"));
    assert_eq!((repo.head(), repo.git(["show", ":a"])), (head, staged), "index and HEAD stay");
    assert_eq!(tree.restore(&then, &[], &[]).unwrap(), None, "nothing is left to do");

    let before = tree.find_snapshot(done.checkpoint.number).unwrap();
    tree.restore(&before, &[], &[]).unwrap().unwrap();
    assert_eq!(
        (repo.read("a"), repo.read("later"), repo.read("u/in")),
        ("a9\n".into(), "l\n".into(), "i\n".into())
    );
    assert!(!repo.exists("deep"));
}

#[test]
fn only_the_named_paths_come_back() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let then = tree.find_snapshot(tree.checkpoint("then").unwrap().number).unwrap();
    repo.write("a", "a1\n").write("b", "b1\n").write("docs/c", "c1\n").write("docs/d", "d\n");
    let done =
        tree.restore(&then, &[PathBuf::from("docs"), PathBuf::from("b")], &[]).unwrap().unwrap();
    assert_eq!(done.files, ["b", "docs/c", "docs/d"].map(PathBuf::from));
    assert_eq!(
        (repo.read("a"), repo.read("b"), repo.read("docs/c")),
        ("a1\n".into(), "b0\n".into(), "c0\n".into())
    );
    assert!(!repo.exists("docs/d"));
    let all = tree.restore(&then, &[], &[PathBuf::from("a")]).unwrap();
    assert_eq!(all, None, "all but the exception is as it was");
    let before = tree.snapshots().unwrap().len();
    let error = tree.restore(&then, &[PathBuf::from("doc/c")], &[]).unwrap_err().to_string();
    assert!(error.contains("did you mean `docs/c`?"), "{error}");
    assert_eq!(tree.snapshots().unwrap().len(), before);
}

#[test]
fn an_ignored_file_is_never_overwritten() {
    let repo = Sandbox::new();
    repo.write("secret", "kept\n");
    let tree = repo.open();
    let then = tree.find_snapshot(tree.checkpoint("then").unwrap().number).unwrap();
    repo.write(".gitignore", "secret\n").write("secret", "in no snapshot\n");
    let refused = tree.restore(&then, &[], &[]);
    assert!(matches!(refused, Err(GitError::IgnoredInTheWay(_))), "{refused:?}");
    assert_eq!(repo.read("secret"), "in no snapshot\n");
}

#[test]
fn names_that_are_not_utf8_come_back_too() {
    let repo = Sandbox::new();
    let name = Path::new(OsStr::from_bytes(b"caf\xe9"));
    repo.write(name, "c\n");
    let tree = repo.open();
    let then = tree.find_snapshot(tree.checkpoint("then").unwrap().number).unwrap();
    fs::remove_file(repo.path(name)).unwrap();
    assert!(tree.diff_of(&then).unwrap().windows(3).any(|bytes| bytes == b"+c\n"));
    let done = tree.restore(&then, &[name.to_owned()], &[]).unwrap().unwrap();
    assert_eq!(done.files, [name.to_owned()]);
    assert_eq!(repo.read(name), "c\n");
}

#[test]
fn pruning_leaves_other_backlogs_alone_and_the_rest_sound() {
    let repo = Sandbox::new();
    let mut tree = repo.open();
    for (run, backlog) in [("1", "a"), ("2", "b"), ("3", "a"), ("4", "a"), ("5", "a")] {
        tree.serve(run, backlog);
        repo.write("a", format!("run {run}\n"));
        snapshot(&tree, 1);
    }
    let keeping = Keeping { count: Some(1), days: None };
    let needed = BTreeSet::from(["refs/ralph/snapshots/3/1".to_owned()]);
    assert_eq!(tree.prune(keeping, &needed, 0).unwrap(), 1);
    let left = repo.git(["for-each-ref", "--format=%(refname)", "refs/ralph/snapshots"]);
    let left: Vec<&str> = left.lines().collect();
    assert_eq!(left, ["2", "3", "4", "5"].map(|run| format!("refs/ralph/snapshots/{run}/1")));
    repo.git(["pack-refs", "--all"]);
    assert_eq!(tree.prune(keeping, &BTreeSet::new(), 0).unwrap(), 1);
    assert_eq!(numbers(&tree), [2, 4, 5]);
    repo.assert_sound();
}

fn refs(repo: &Sandbox, folder: &str) -> Vec<String> {
    let listed = repo.git(["for-each-ref", "--format=%(objectname) %(refname)", folder]);
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn many_refs_are_packed_and_nothing_else_changes() {
    let repo = Sandbox::new();
    repo.git(["tag", "-a", "-m", "annotated", "v1"]);
    repo.git(["pack-refs", "--all"]);
    repo.git(["branch", "loose"]);
    let mut tree = repo.open();
    tree.serve("1", "a");
    for n in 1..=70 {
        repo.write("a", format!("{n}\n"));
        snapshot(&tree, n);
    }
    // One that somebody is just changing.
    repo.write(".git/refs/ralph/snapshots/1/5.lock", "");
    let before = refs(&repo, "refs");
    let keeping = Keeping { count: None, days: None };
    assert_eq!(tree.prune(keeping, &BTreeSet::new(), 0).unwrap(), 0);
    assert_eq!(refs(&repo, "refs"), before);
    assert!(repo.exists(".git/refs/heads/loose"), "branches are the user's");
    assert!(
        repo.exists(".git/refs/ralph/snapshots/1/5")
            && !repo.exists(".git/refs/ralph/snapshots/1/6")
    );
    assert_eq!(repo.git(["rev-parse", "v1^{commit}"]).trim(), repo.head());
    assert_eq!(numbers(&tree), (1..=70).collect::<Vec<u64>>());
    // The next one has a file of its own again, and a packed name is taken.
    assert_eq!(snapshot(&tree, 70).reference, "refs/ralph/snapshots/1/71");
    repo.git(["gc", "-q", "--prune=now"]);
    repo.assert_sound();
}

#[test]
fn a_list_is_right_without_its_catalog_and_with_a_broken_one() {
    let repo = Sandbox::new();
    let tree = repo.open();
    for _ in 0..3 {
        tree.checkpoint("one").unwrap();
    }
    let catalog = repo.path(".git/ralph/kept");
    let (kept, known) = (tree.snapshots().unwrap(), fs::read(&catalog).unwrap());
    assert_eq!(known.iter().filter(|byte| **byte == b'\n').count(), 3);
    for broken in [&b""[..], b"{}\nnot json\n", &known[..known.len() / 2]] {
        fs::write(&catalog, broken).unwrap();
        assert_eq!(repo.open().snapshots().unwrap(), kept);
        assert_eq!(repo.open().snapshots().unwrap(), kept);
    }
    // What is known of a commit is of no use without its ref.
    repo.git(["update-ref", "-d", "refs/ralph/checkpoints/2"]);
    assert_eq!(numbers(&repo.open()), [1, 3]);
}

#[test]
fn a_state_that_changed_since_it_was_listed_is_not_deleted() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let (head, other) = (repo.head(), repo.write("a", "a1\n").commit_all("second"));
    repo.git(["update-ref", "refs/ralph/checkpoints/1", &head]);
    repo.git(["update-ref", "refs/ralph/checkpoints/2", &head]);
    let gone = [("refs/ralph/checkpoints/1", &*other), ("refs/ralph/checkpoints/2", &*head)];
    let deleted = tree.pack_refs(&["refs/ralph/checkpoints"], &gone).unwrap();
    assert_eq!(deleted.into_iter().collect::<Vec<_>>(), ["refs/ralph/checkpoints/2"]);
    assert_eq!(refs(&repo, "refs/ralph"), [format!("{head} refs/ralph/checkpoints/1")]);
}
