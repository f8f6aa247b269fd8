//! Branches, tags and other refs, changed in every way and put back.

use std::fs;
use std::os::unix::fs::symlink;

use crate::model::Violation;
use crate::workspace::{Guard, GuardPart};

use super::guard::{armed, guarded, repair};
use super::sandbox::Sandbox;

/// With commits `first` and `second`, and refs of every kind.
fn sandbox() -> Sandbox {
    let repo = Sandbox::new();
    repo.write("a", "a1\n").commit_all("second");
    repo.git(["branch", "topic"]);
    repo.git(["branch", "old", "HEAD~1"]);
    repo.git(["branch", "deep/er", "HEAD"]);
    repo.git(["tag", "v1", "HEAD~1"]);
    repo.git(["tag", "-a", "-m", "signed off", "v2", "HEAD"]);
    repo.git(["tag", "file", "HEAD:a"]);
    repo.git(["symbolic-ref", "refs/heads/alias", "refs/heads/topic"]);
    repo.git(["notes", "add", "-m", "reviewed", "HEAD"]);
    repo.git(["update-ref", "refs/ralph/attempts/A/1", "HEAD"]);
    repo.git(["update-ref", "refs/remotes/origin/main", "HEAD"]);
    repo
}

const REFS: &str = "for-each-ref --format=%(refname)%09%(objectname)%09%(symref)%09%(*objectname)";

/// What git knows, without what the guard stores.
fn listed(repo: &Sandbox) -> Vec<String> {
    let all = repo.git(REFS.split(' '));
    let is_users = |line: &&str| {
        !["refs/ralph/changed/", "refs/worktree/"].iter().any(|own| line.starts_with(own))
    };
    all.lines().filter(is_users).map(str::to_owned).collect()
}

type Act = fn(&Sandbox);

/// What is done to refs, and what is put back.
const CHANGES: [(&str, Act, &[&str]); 16] = [
    ("a branch moved forward", |s| _ = s.git(["branch", "-f", "old", "HEAD"]), &["heads/old"]),
    (
        "the same without a log",
        |s| _ = s.git(["update-ref", "refs/heads/old", "HEAD"]),
        &["heads/old"],
    ),
    ("a deleted branch", |s| _ = s.git(["branch", "-qD", "topic"]), &["heads/topic"]),
    ("a deleted tag", |s| _ = s.git(["tag", "-d", "v2"]), &["tags/v2"]),
    ("a rewound branch", |s| _ = s.git(["branch", "-f", "topic", "HEAD~1"]), &["heads/topic"]),
    ("a moved tag", |s| _ = s.git(["tag", "-f", "v1", "HEAD"]), &["tags/v1"]),
    (
        "a branch forced elsewhere",
        |s| {
            let tree = s.git(["rev-parse", "HEAD^{tree}"]);
            let commit = s.git(["commit-tree", "-m", "rewritten", tree.trim()]);
            s.git(["branch", "-f", "topic", commit.trim()]);
        },
        &["heads/topic"],
    ),
    (
        "a moved alias",
        |s| _ = s.git(["symbolic-ref", "refs/heads/alias", "refs/heads/old"]),
        &["heads/alias"],
    ),
    (
        "a branch in its place",
        |s| {
            s.git(["branch", "-qD", "topic"]);
            s.git(["branch", "topic/sub", "HEAD~1"]);
        },
        &["heads/topic"],
    ),
    (
        "its folder is a branch",
        |s| {
            s.git(["branch", "-qD", "deep/er"]);
            s.git(["branch", "deep"]);
        },
        &["heads/deep/er"],
    ),
    ("a replacement", |s| _ = s.git(["replace", "HEAD", "HEAD~1"]), &["replace/"]),
    (
        "another note",
        |s| _ = s.git(["notes", "add", "-f", "-m", "bad", "HEAD"]),
        &["notes/commits"],
    ),
    (
        "lost work",
        |s| _ = s.git(["update-ref", "-d", "refs/ralph/attempts/A/1"]),
        &["ralph/attempts/A/1"],
    ),
    (
        "a pipe",
        |s| {
            s.git(["update-ref", "-d", "refs/heads/topic"]);
            s.fifo(".git/refs/heads/topic");
        },
        &["heads/topic"],
    ),
    ("no id", |s| _ = s.write(".git/refs/heads/topic", "nonsense\n"), &["heads/topic"]),
    (
        "an id without a line's end",
        |s| _ = s.write(".git/refs/heads/topic", s.git(["rev-parse", "HEAD~1"]).trim_end()),
        &["heads/topic"],
    ),
];

fn names(found: &[Violation]) -> Vec<&String> {
    let mut all = Vec::new();
    for violation in found {
        assert!(matches!(violation, Violation::Refs { .. }), "{violation:?}");
        if let Violation::Refs { names, .. } = violation {
            all.extend(names);
        }
    }
    all
}

#[test]
fn refs_that_were_deleted_or_moved_are_where_they_were() {
    for is_packed in [false, true] {
        let repo = sandbox();
        let before = listed(&repo);
        for (case, act, expected) in CHANGES {
            if is_packed {
                repo.git(["pack-refs", "--all"]);
            }
            let tree = repo.open();
            let guard = armed(&repo, &tree);
            act(&repo);
            let found = repair(&guard, &tree, &[GuardPart::Refs]);
            let found = names(&found);
            let is_it = |(name, start): (&&String, &&str)| name.starts_with(start);
            let all = found.len() == expected.len() && found.iter().zip(expected).all(is_it);
            assert!(all, "{case}: {found:?}");
            assert_eq!(listed(&repo), before, "{case}, packed: {is_packed}");
            assert_eq!(repair(&guard, &tree, &[GuardPart::Refs]), [], "{case}");
        }
        repo.assert_sound();
    }
}

#[test]
fn new_refs_and_moves_forward_are_left_alone() {
    let repo = sandbox();
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.git(["branch", "x"]);
    repo.git(["tag", "y"]);
    repo.git(["fetch", "-q", ".", "topic:old"]);
    repo.git(["update-ref", "-d", "refs/remotes/origin/main"]);
    repo.git(["commit", "-q", "--allow-empty", "-m", "own"]);
    let before = listed(&repo);
    assert_eq!(repair(&guard, &tree, &[GuardPart::Refs]), []);
    repo.git(["pack-refs", "--all"]);
    assert_eq!(repair(&guard, &tree, &[GuardPart::Refs]), []);
    assert_eq!(listed(&repo), before);
}

#[test]
fn a_folder_that_became_a_link_is_one_again() {
    let repo = sandbox();
    let before = listed(&repo);
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    fs::rename(repo.path(".git/refs/tags"), repo.beside("tags")).unwrap();
    symlink(repo.beside("tags"), repo.path(".git/refs/tags")).unwrap();
    repo.git(["tag", "-d", "v1"]);
    let found = repair(&guard, &tree, &[GuardPart::Refs]);
    assert_eq!(names(&found), ["tags", "tags/file", "tags/v1", "tags/v2"]);
    assert_eq!(listed(&repo), before);
    assert!(repo.beside("tags").join("v2").exists(), "what is outside stays");
}

#[test]
fn what_was_there_instead_is_kept() {
    let repo = sandbox();
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.git(["switch", "-q", "topic"]);
    repo.write("w", "work\n").git(["add", "w"]);
    repo.git(["commit", "-q", "--amend", "-m", "rewritten"]);
    let theirs = repo.head();
    let found = repair(&guard, &tree, &[GuardPart::Refs]);
    let kept = "refs/ralph/changed/attempt";
    assert!(
        matches!(&found[..], [Violation::Refs { kept: Some(k), .. }] if k == kept),
        "{found:?}"
    );
    let at = format!("{kept}/heads/topic/{theirs}");
    assert_eq!(repo.git(["rev-parse", &at]).trim(), theirs);
    assert_eq!(repo.head(), theirs, "HEAD stays where the work is");
    assert_eq!(repo.status(), "");
}

/// Git deletes objects that no ref leads to.
#[test]
fn refs_come_back_after_all_garbage_was_collected() {
    let repo = sandbox();
    repo.git(["switch", "-q", "--orphan", "else"]);
    let only_here = repo.commit_all("only here");
    repo.git(["tag", "-a", "-m", "inner", "inner"]);
    repo.git(["tag", "-a", "-m", "outer", "outer", "inner"]);
    repo.git(["switch", "-q", "main"]);
    let before = listed(&repo);
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.git(["branch", "-qD", "else", "old"]);
    repo.git(["tag", "-d", "inner", "outer", "v2", "file"]);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["gc", "-q", "--prune=now"]);
    let found = repair(&guard, &tree, &[GuardPart::Refs]);
    assert!(matches!(&found[..], [Violation::Refs { lost, .. }] if lost.is_empty()), "{found:?}");
    assert_eq!(listed(&repo), before);
    assert_eq!(repo.git(["rev-parse", "outer^{}"]).trim(), only_here);
    repo.assert_sound();
}

#[test]
fn a_ref_without_its_commit_is_named_and_not_restored() {
    let repo = sandbox();
    repo.git(["switch", "-q", "--orphan", "else"]);
    repo.commit_all("only here");
    repo.git(["switch", "-q", "main"]);
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.git(["branch", "-qD", "else", "topic"]);
    repo.delete(".git/refs/worktree");
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["gc", "-q", "--prune=now"]);
    let found = repair(&guard, &repo.open(), &[GuardPart::Refs]);
    assert!(
        matches!(&found[..], [Violation::Refs { names, lost, .. }]
            if names == &["heads/topic"] && lost == &["heads/else"]),
        "{found:?}"
    );
    repo.assert_sound();
}

#[test]
fn whatever_happened_to_the_file_of_packed_refs_its_refs_are_back() {
    let acts: [(&str, Act); 6] = [
        ("deleted", |s| _ = s.delete(".git/packed-refs")),
        ("emptied", |s| _ = s.write(".git/packed-refs", "")),
        ("cut", |s| {
            let text = s.read(".git/packed-refs");
            s.write(".git/packed-refs", text.get(..text.len() - 9).unwrap());
        }),
        ("nonsense", |s| _ = s.write(".git/packed-refs", "nonsense\n")),
        ("a pipe", |s| _ = s.delete(".git/packed-refs").fifo(".git/packed-refs")),
        ("huge", |s| {
            fs::File::create(s.path(".git/packed-refs")).unwrap().set_len(10 << 30).unwrap();
        }),
    ];
    for (case, act) in acts {
        let repo = sandbox();
        repo.git(["pack-refs", "--all"]);
        let own = repo.head();
        repo.write(".git/refs/heads/main", own + "\n");
        let before = listed(&repo);
        let tree = repo.open();
        let guard = armed(&repo, &tree);
        act(&repo);
        assert_eq!(repair(&guard, &tree, &[GuardPart::Refs]).len(), 1, "{case}");
        assert_eq!(listed(&repo), before, "{case}");
        repo.assert_sound();
    }
}

#[test]
fn branches_of_other_work_trees_are_somebody_elses() {
    let repo = sandbox();
    let other = repo.beside("other");
    repo.git(["worktree", "add", "-q", other.to_str().unwrap(), "topic"]);
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    let folder = other.to_str().unwrap();
    repo.git(["-C", folder, "reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(repair(&guard, &tree, &[GuardPart::Refs]), []);
    // Not of one that came meanwhile.
    let new = repo.beside("new");
    repo.git(["worktree", "add", "-q", new.to_str().unwrap(), "deep/er"]);
    repo.git(["-C", new.to_str().unwrap(), "reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(repair(&guard, &tree, &[GuardPart::Refs]).len(), 1);
}

#[test]
fn the_next_process_knows_the_refs_of_a_dead_one() {
    let repo = sandbox();
    let before = listed(&repo);
    let tree = repo.open();
    let base = tree.base().unwrap();
    let stored = armed(&repo, &tree).stored().unwrap().to_owned();
    let commit = repo.git(["rev-parse", "refs/worktree/ralph/refs"]);
    assert_eq!(armed(&repo, &tree).stored(), Some(&*stored), "nothing changed");
    assert_eq!(repo.git(["rev-parse", "refs/worktree/ralph/refs"]), commit);
    repo.git(["branch", "-qD", "topic"]);
    repo.git(["replace", "HEAD", "HEAD~1"]);
    let tree = repo.open();
    let guard = Guard::recovered(&tree, guarded(&base), Some(&stored));
    assert_eq!(repair(&guard, &tree, GuardPart::held_after_crash()).len(), 1);
    assert_eq!(listed(&repo), before);
    // Without the list nothing is known, and nothing is changed.
    repo.delete(".git/ralph/objects");
    repo.git(["update-ref", "-d", "refs/worktree/ralph/refs"]);
    repo.git(["gc", "-q", "--prune=now"]);
    repo.git(["replace", "HEAD", "HEAD~1"]);
    let guard = Guard::recovered(&repo.open(), guarded(&base), Some(&stored));
    assert_eq!(repair(&guard, &repo.open(), &[GuardPart::Refs]), []);
}

/// The journal must not grow with them.
#[test]
fn ten_thousand_tags_are_deleted_and_put_back() {
    let repo = sandbox();
    repo.git(["pack-refs", "--all"]);
    let (others, head) = (repo.read(".git/packed-refs"), repo.head());
    let tags: String = (0..10_000).map(|n| format!("{head} refs/tags/x{n}\n")).collect();
    repo.write(".git/packed-refs", others.replace("sorted", "") + &tags);
    let before = listed(&repo);
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.write(".git/packed-refs", &others);
    let found = repair(&guard, &tree, &[GuardPart::Refs]);
    assert!(
        matches!(&found[..], [Violation::Refs { names, count: 10_000, .. }] if names.len() < 100),
        "{found:?}"
    );
    assert_eq!(listed(&repo), before);
}
