//! The human's ignored files, deleted, emptied and replaced.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use crate::model::{IgnoredLimits, Violation};
use crate::workspace::{Guard, GuardPart};

use super::guard::{armed, guarded, repair};
use super::sandbox::Sandbox;

const RULES: &str = ".env*\nsecrets/\nlocal/\nnode_modules/\ntarget/\ntmp/\n*.lock\n*.log\n*-journal\nmany/\n*.key\n";

/// With ignored files of every kind.
fn sandbox() -> Sandbox {
    let repo = Sandbox::new();
    repo.write(".gitignore", RULES).commit_all("rules");
    repo.write(".env", "KEY=1\n").write("docs/.env.local", "KEY=2\n");
    repo.write("secrets/deep/a", "a\n").write("secrets/empty", "").link(".env.link", "a");
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(repo.path(".env"), mode).unwrap();
    // Of tools.
    repo.write("target/debug/x", "x\n").write("x.lock", "1\n").write("db-journal", "hot\n");
    repo.write("server.log", "log\n").write("tmp/notes", "mine\n");
    for number in 0..300 {
        repo.write(format!("many/{number}"), "x\n");
    }
    repo
}

const IGNORED: [GuardPart; 1] = [GuardPart::Ignored];

fn lost(found: &[Violation]) -> Vec<&str> {
    match found {
        [] => Vec::new(),
        [Violation::IgnoredFiles { lost, blocked, .. }] if blocked.is_empty() => {
            lost.iter().map(String::as_str).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_that_are_gone_empty_or_no_files_any_more_are_back() {
    type Act = fn(&Sandbox);
    let acts: [(&str, Act, &[&str]); 10] = [
        ("nothing", |_| {}, &[]),
        ("deleted", |s| _ = s.delete(".env").delete(".env.link"), &[".env", ".env.link"]),
        ("with its folder", |s| _ = s.delete("secrets"), &["secrets/deep/a", "secrets/empty"]),
        ("emptied", |s| _ = s.write("docs/.env.local", ""), &["docs/.env.local"]),
        ("a folder now", |s| _ = s.delete(".env").write(".env/x", "x\n"), &[".env"]),
        ("a link now", |s| _ = s.delete(".env").link(".env", "b"), &[".env"]),
        ("a pipe now", |s| _ = s.delete(".env").fifo(".env"), &[".env"]),
        (
            "what tools wrote",
            |s| {
                s.delete("target").delete("x.lock").delete("db-journal").delete("many");
            },
            &[],
        ),
        ("small ones", |s| _ = s.delete("tmp").delete("server.log"), &["server.log", "tmp/notes"]),
        ("changed, and a new one", |s| _ = s.write(".env", "KEY=3\n").write("new.key", "k\n"), &[]),
    ];
    let repo = sandbox();
    let mode = || repo.path(".env").metadata().unwrap().permissions().mode() & 0o777;
    for (case, act, expected) in acts {
        let tree = repo.open();
        let guard = armed(&repo, &tree);
        act(&repo);
        let found = repair(&guard, &tree, &IGNORED);
        assert_eq!(lost(&found), expected, "{case}");
        assert_eq!(repair(&guard, &tree, &IGNORED), [], "{case}");
        if case != "changed, and a new one" {
            let read = |path: &str| repo.read(path);
            assert_eq!(
                (read(".env"), read("docs/.env.local"), read("secrets/deep/a"), mode()),
                ("KEY=1\n".into(), "KEY=2\n".into(), "a\n".into(), 0o600),
                "{case}"
            );
            assert_eq!(fs::read_link(repo.path(".env.link")).unwrap().to_str(), Some("a"));
        }
    }
    assert_eq!(repo.read(".git/ralph/changed/attempt/.env/x"), "x\n", "the other version is kept");
    let versions = fs::read_dir(repo.path(".git/ralph/ignored/.env")).unwrap();
    let first =
        versions.flatten().find(|file| fs::read_to_string(file.path()).unwrap() == "KEY=1\n");
    let first = first.expect("the earlier version").metadata().unwrap();
    assert_eq!(first.permissions().mode() & 0o777, 0o600, "it may be a password");
}

#[test]
fn the_next_process_restores_what_a_dead_one_could_not() {
    let repo = sandbox();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let stored = armed(&repo, &tree).stored().unwrap().to_owned();
    repo.git(["clean", "-fdxq"]);
    let tree = repo.open();
    let guard = Guard::recovered(&tree, guarded(&base), Some(&stored));
    let found = repair(&guard, &tree, GuardPart::held_after_crash());
    assert_eq!(lost(&found).len(), 7);
    assert_eq!(repo.read(".env"), "KEY=1\n");
    // Copies that were changed are not put back.
    for version in fs::read_dir(repo.path(".git/ralph/ignored/.env")).unwrap().flatten() {
        fs::write(version.path(), "EVIL=1\n").unwrap();
    }
    repo.delete(".env");
    let found = repair(&guard, &tree, &IGNORED);
    assert!(matches!(&found[..], [Violation::IgnoredFiles { count: 0, .. }]), "{found:?}");
    assert!(!repo.exists(".env"));
}

#[test]
fn a_file_whose_place_is_taken_is_named_and_nothing_is_written_through_a_link() {
    let repo = sandbox();
    let outside = repo.beside("outside");
    fs::create_dir(&outside).unwrap();
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.delete("secrets");
    symlink(&outside, repo.path("secrets")).unwrap();
    let found = repair(&guard, &tree, &IGNORED);
    assert!(
        matches!(&found[..], [Violation::IgnoredFiles { count: 0, blocked, .. }]
            if blocked == &["secrets/deep/a", "secrets/empty"]),
        "{found:?}"
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn limits_decide_what_is_kept() {
    let repo = sandbox();
    repo.write("secrets/large", "x".repeat(100)).write("secrets/larger", "x".repeat(200));
    let kept = |file, total| {
        let tree = repo.open();
        tree.limit_ignored(IgnoredLimits { file, total });
        let guard = armed(&repo, &tree);
        let (large, larger) = (repo.read("secrets/large"), repo.read("secrets/larger"));
        repo.delete("secrets");
        repair(&guard, &tree, &IGNORED);
        let found = ["secrets/deep/a", "secrets/large", "secrets/larger"].map(|p| repo.exists(p));
        repo.write("secrets/large", large).write("secrets/larger", larger);
        repo.write("secrets/deep/a", "a\n").write("secrets/empty", "");
        found
    };
    assert_eq!(kept(None, None), [true, true, true]);
    assert_eq!(kept(Some(150), None), [true, true, false]);
    assert_eq!(kept(None, Some(150)), [true, true, false], "small ones first");
    assert_eq!(kept(None, Some(0)), [false, false, false]);
}

#[test]
fn files_of_other_repositories_are_theirs() {
    let repo = sandbox();
    for folder in ["secrets/inner", "other"] {
        repo.git(["init", "-q", folder]);
        repo.write(format!("{folder}/.env"), "KEY=4\n");
    }
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.delete("secrets/inner").delete("other");
    assert_eq!(repair(&guard, &tree, &IGNORED), []);
}

#[test]
fn a_tool_that_deletes_a_file_again_and_again_is_told_of_once() {
    let repo = sandbox();
    let tree = repo.open();
    for expected in [vec![".env"], vec![]] {
        let guard = armed(&repo, &tree);
        repo.delete(".env");
        assert_eq!(lost(&repair(&guard, &tree, &IGNORED)), expected);
        assert_eq!(repo.read(".env"), "KEY=1\n");
    }
}

#[test]
fn what_was_held_when_the_story_began_stays_held() {
    let repo = sandbox();
    let tree = repo.open();
    tree.note_beside().unwrap();
    armed(&repo, &tree);
    repo.write(".gitignore", "nothing\n");
    for number in 0..300 {
        repo.write(format!("secrets/{number}"), "x\n");
    }
    let guard = armed(&repo, &tree);
    repo.delete(".env").delete("secrets");
    assert_eq!(lost(&repair(&guard, &tree, &IGNORED)), [".env", "secrets/deep/a", "secrets/empty"]);
}

#[test]
fn many_ignored_files_beside_others_are_all_held() {
    let repo = sandbox();
    for number in 0..201 {
        repo.write(format!("docs/{number}.key"), "x\n");
    }
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.delete("docs/.env.local").delete("docs/7.key");
    assert_eq!(lost(&repair(&guard, &tree, &IGNORED)), ["docs/.env.local", "docs/7.key"]);
}

/// A look reads only what changed since the one before.
#[test]
fn each_look_knows_the_newest_version() {
    let repo = sandbox();
    let tree = repo.open();
    armed(&repo, &tree);
    // What is younger than a moment is not believed.
    let young = |path: &str| {
        let found = fs::metadata(repo.path(path)).unwrap();
        found.modified().unwrap().elapsed().unwrap_or_default() < Duration::from_millis(40)
    };
    while [".env", "docs", ".gitignore"].into_iter().any(young) {}
    armed(&repo, &tree);
    repo.write(".env", "KEY=5\n").write("docs/new.key", "new\n");
    let guard = armed(&repo, &tree);
    repo.delete(".env").delete("docs/new.key");
    assert_eq!(lost(&repair(&guard, &tree, &IGNORED)), [".env", "docs/new.key"]);
    assert_eq!((repo.read(".env"), repo.read("docs/new.key")), ("KEY=5\n".into(), "new\n".into()));
    repo.write(".gitignore", "nothing\n");
    let guard = armed(&repo, &tree);
    repo.delete(".env");
    assert_eq!(repair(&guard, &tree, &IGNORED), [], "it is no ignored file any more");
}
