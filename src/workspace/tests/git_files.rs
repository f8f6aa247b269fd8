//! Pipes, links and gigabytes where git has its files: nothing waits for them, reads them whole or
//! writes through them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::workspace::GitError;

use super::sandbox::{Sandbox, close};

const GIGABYTES: u64 = 10 << 30;
const NAMES: [&str; 7] = [
    "HEAD",
    "index",
    "packed-refs",
    "logs/HEAD",
    "logs/refs/heads/main",
    "ralph/seen",
    "ralph/numbers",
];

fn sandbox() -> Sandbox {
    let repo = Sandbox::new();
    let tree = repo.open();
    tree.checkpoint("one").unwrap();
    repo.git(["pack-refs", "--all"]);
    repo.write(repo.beside("theirs"), "theirs\n");
    repo
}

fn plant(repo: &Sandbox, name: &str, what: &str) {
    let path = repo.path(".git").join(name);
    let _ = fs::remove_file(&path);
    match what {
        "pipe" => drop(repo.fifo(&path)),
        "gigabytes" => File::create(&path).unwrap().set_len(GIGABYTES).unwrap(),
        _ => std::os::unix::fs::symlink(repo.beside("theirs"), &path).unwrap(),
    }
}

#[test]
fn at_the_start_they_are_refused_by_name() {
    for name in NAMES.into_iter().chain(["config", "info/exclude"]) {
        for what in ["pipe", "gigabytes", "link"] {
            let is_read_only = name == "config" || name.starts_with("info");
            // A log of a branch is only looked at when it is written.
            if name.starts_with("logs/refs") || (is_read_only && what == "link") {
                continue;
            }
            let repo = sandbox();
            plant(&repo, name, what);
            let refused = repo.refusal();
            assert!(matches!(refused, GitError::OddFile { .. }), "{name} {what}: {refused}");
            assert!(refused.to_string().contains(name), "{refused}");
            assert_eq!(repo.read(repo.beside("theirs")), "theirs\n", "{name}");
        }
    }
}

#[test]
fn during_a_run_they_make_room() {
    for name in NAMES {
        for what in ["pipe", "gigabytes", "link"] {
            let case = format!("{name} {what}");
            if name.starts_with("logs/refs") && what != "link" {
                continue;
            }
            let repo = sandbox();
            let mut tree = repo.open();
            tree.serve("run-1", "PRD.json");
            let base = tree.base().unwrap();
            repo.write("a", "a1\n");
            plant(&repo, name, what);
            if name == "packed-refs" {
                // The guard knows the refs: here only nothing may block.
                tree.mend_git_files().unwrap();
                repo.git(["update-ref", "refs/heads/main", base.commit.as_deref().unwrap()]);
            }
            tree.mend_git_files().unwrap();
            if name == "index" {
                repo.git(["reset", "-q"]);
            }
            tree.checkpoint("two").unwrap();
            close(&tree, &base);
            assert_eq!(repo.git(["show", "HEAD:a"]), "a1\n", "{case}");
            assert_eq!(repo.read(repo.beside("theirs")), "theirs\n", "{case}");
            let moved = tree.moved_away();
            assert_eq!(moved[0].path, Path::new(".git").join(name), "{case}");
            assert!(fs::symlink_metadata(&moved[0].kept).is_ok(), "{case}");
        }
    }
}

#[test]
fn pipes_among_the_rules_are_moved_away() {
    let repo = Sandbox::new();
    repo.write("docs/.gitignore", "*.log\n").commit_all("rules");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.delete("docs/.gitignore").write("docs/c", "c1\n").write("deep/er/x", "x\n");
    let places = [".gitignore", "docs/.gitignore", "docs/.gitattributes", "deep/er/.gitignore"];
    for place in places {
        repo.fifo(place);
    }
    fs::create_dir(repo.path(".ralph")).unwrap();
    repo.fifo(".ralph/.gitignore").fifo("deep/pipe").link("deep/.gitignore", "pipe");
    assert!(!tree.difference_since(&base).unwrap().paths.is_empty());
    close(&tree, &base);
    let mut moved: Vec<PathBuf> = tree.moved_away().into_iter().map(|one| one.path).collect();
    moved.sort();
    let expected = [
        ".gitignore",
        ".ralph/.gitignore",
        "deep/.gitignore",
        "deep/er/.gitignore",
        "docs/.gitattributes",
        "docs/.gitignore",
    ];
    assert_eq!(moved, expected.map(PathBuf::from));
    assert_eq!(repo.git(["ls-tree", "-r", "--name-only", "HEAD"]), "a\nb\ndeep/er/x\ndocs/c\n");
}

#[test]
fn a_file_of_gigabytes_is_not_read() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    File::create(repo.path("large")).unwrap().set_len(GIGABYTES).unwrap();
    File::options().write(true).open(repo.path("b")).unwrap().set_len(GIGABYTES).unwrap();
    repo.write("a", "a1\n");
    let closed = close(&tree, &base);
    let left_out: Vec<_> = closed.left_out.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(left_out, ["b", "large"]);
    assert_eq!(repo.last_changes(), "M\ta\n");
}
