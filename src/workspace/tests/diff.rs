use std::path::PathBuf;

use crate::model::{Changes, FileChange, Gate};

use super::sandbox::Sandbox;

fn altered(repo: &Sandbox, named: &[&str], patterns: &[&str], change: impl Fn()) -> Vec<String> {
    let tree = repo.open();
    let base = tree.base().unwrap();
    tree.believe_index().unwrap();
    change();
    let gates: Vec<Gate> = named.iter().map(|name| Gate::shell(&format!("sh {name}"))).collect();
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    let altered = tree.changed_files(&base, &gates, &patterns).unwrap();
    altered.iter().map(|one| format!("{} {}", one.path.display(), one.diff)).collect()
}

#[test]
fn a_named_file_that_changed_or_went_is_shown_with_its_diff() {
    let repo = Sandbox::new();
    let changed = altered(&repo, &["a", "b", "docs/c", "new"], &[], || {
        repo.write("a", "a1\n").delete("b").write("new", "n\n");
    });
    assert_eq!(changed.len(), 2, "{changed:?}");
    assert!(changed[0].starts_with("a ") && changed[0].contains("-a0\n+a1\n"), "{changed:?}");
    assert!(changed[1].starts_with("b ") && changed[1].contains("-b0\n"), "{changed:?}");
}

#[test]
fn patterns_match_what_is_new_too_and_nothing_else() {
    let repo = Sandbox::new();
    let changed = altered(&repo, &[], &["docs/**", "*.lock"], || {
        repo.write("a", "a1\n").write("docs/deep/new", "n\n").write("x.lock", "l\n");
    });
    let paths: Vec<&str> = changed.iter().filter_map(|one| one.split(' ').next()).collect();
    assert_eq!(paths, ["docs/deep/new", "x.lock"]);
}

#[test]
fn line_endings_alone_are_no_change() {
    let repo = Sandbox::new();
    let changed = altered(&repo, &["a"], &[], || {
        repo.write("a", "a0\r\n");
    });
    assert_eq!(changed, [""; 0]);
}

#[test]
fn a_definition_counts_if_the_command_could_run_before() {
    let repo = Sandbox::new();
    repo.write("package.json", r#"{"scripts":{"test":"jest"},"private":true}"#);
    repo.write("tests/test_a.py", "").write("makefile", "all:\n").commit_all("json");
    let tree = repo.open();
    let base = tree.base().unwrap();
    let commands = ["make", "just", "npm test", "pytest", "cargo test"];
    let gates: Vec<Gate> = commands.into_iter().map(Gate::shell).collect();
    let changed = |patterns: &[&str]| -> Vec<PathBuf> {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let found = tree.changed_files(&base, &gates, &patterns).unwrap();
        found.into_iter().map(|one| one.path).collect()
    };
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    repo.write("GNUmakefile", "x\n").write("justfile", "x\n").write(".cargo/config.toml", "x\n");
    repo.write("package.json", r#"{"scripts":{"test":"jest"}}"#);
    assert_eq!(changed(&[]), paths(&["GNUmakefile"]), "just and cargo could not run");
    assert_eq!(changed(&["*.json"]), paths(&["GNUmakefile", "package.json"]));
    repo.write("package.json", r#"{"scripts":{"test":"true"}}"#).delete("makefile");
    repo.write("tests/conftest.py", "x\n").write("new/conftest.py", "x\n");
    let all = ["GNUmakefile", "makefile", "new/conftest.py", "package.json", "tests/conftest.py"];
    assert_eq!(changed(&[]), paths(&all));
    // Hidden from git's eyes, but not from pytest's.
    repo.write(".gitignore", "conftest.py\n");
    assert!(changed(&[]).contains(&PathBuf::from("tests/conftest.py")));
}

/// What its command needs besides may be nowhere, or not be known.
#[test]
fn a_definition_that_was_there_counts_whatever_else_is() {
    let repo = Sandbox::new();
    repo.write("tests/unit/conftest.py", "").write(".cargo/config", "").commit_all("settings");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("tests/unit/conftest.py", "x\n").write(".cargo/config.toml", "x\n");
    let gates = ["pytest", "cargo test"].map(Gate::shell);
    let found = tree.changed_files(&base, &gates, &[]).unwrap();
    let paths: Vec<_> = found.iter().map(|one| one.path.to_str().unwrap()).collect();
    assert_eq!(paths, [".cargo/config.toml", "tests/unit/conftest.py"]);
}

#[test]
fn a_link_is_compared_as_what_it_is() {
    let repo = Sandbox::new();
    repo.write("scripts/check.sh", "false\n").link("bin", "scripts").link("check", "a");
    repo.commit_all("links");
    assert_eq!(altered(&repo, &["bin/check.sh", "check"], &[], || {}), [""; 0]);
    let changed = altered(&repo, &["bin/check.sh", "check"], &[], || {
        repo.delete("check").write("check", "true\n").write("scripts/check.sh", "true\n");
    });
    let paths: Vec<&str> = changed.iter().filter_map(|one| one.split(' ').next()).collect();
    assert_eq!(paths, ["check", "scripts/check.sh"], "{changed:?}");
}

/// The index says of the new file that it is the old one, and an object has another content.
#[test]
fn what_an_agent_forges_is_not_believed() {
    let repo = Sandbox::new();
    let [old_a, old_b] = ["HEAD:a", "HEAD:b"].map(|name| repo.git(["rev-parse", name]));
    let changed = altered(&repo, &["a"], &["b"], || {
        repo.write("a", "forged\n").write("b", "forged too\n").git(["add", "b"]);
        let new = repo.git(["hash-object", "b"]);
        let path = repo.path(".git/index");
        let mut index = std::fs::read(&path).unwrap();
        let bytes = |id: &str| git2::Oid::from_str(id.trim()).unwrap().as_bytes().to_owned();
        let at = index.windows(20).position(|id| id == bytes(&new)).unwrap();
        index.splice(at..at + 20, bytes(&old_b));
        let end = index.len() - 20;
        index.truncate(end);
        index.extend(sha1_of(&repo, &index));
        std::fs::write(&path, &index).unwrap();
        let (folder, name) = old_a.trim().split_at(2);
        let object = repo.path(format!(".git/objects/{folder}/{name}"));
        let other = repo.git(["hash-object", "-w", "a"]);
        let (folder, name) = other.trim().split_at(2);
        let other = repo.path(format!(".git/objects/{folder}/{name}"));
        std::fs::remove_file(&object).unwrap();
        std::fs::copy(other, &object).unwrap();
    });
    let paths: Vec<&str> = changed.iter().filter_map(|one| one.split(' ').next()).collect();
    assert_eq!(paths, ["a", "b"], "{changed:?}");
    assert!(changed[0].contains("damaged"), "{changed:?}");
}

fn sha1_of(repo: &Sandbox, bytes: &[u8]) -> Vec<u8> {
    repo.write("../bytes", bytes);
    let sum = std::process::Command::new("sha1sum").arg(repo.path("../bytes")).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let id = sum.split(' ').next().unwrap();
    git2::Oid::from_str(id).unwrap().as_bytes().to_owned()
}

fn file(path: &str, added: usize, removed: usize) -> FileChange {
    FileChange { path: path.to_owned(), added, removed }
}

#[test]
fn each_file_is_listed_with_its_lines() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    assert_eq!(tree.summary(&base, &base).unwrap(), Changes::default());
    repo.write("a", "a0\na1\na2\n").delete("b").write("docs/new", "n\n").write("bin", [0, 1, 2]);
    let files = tree.summary(&base, &tree.base().unwrap()).unwrap().files;
    assert_eq!(
        files,
        [file("a", 2, 0), file("b", 0, 1), file("bin", 0, 0), file("docs/new", 1, 0)]
    );
}

#[test]
fn of_many_files_some_are_named_and_all_are_counted() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    (0..50).for_each(|number| {
        repo.write(format!("new/{number:02}"), "x\n");
    });
    let changes = tree.summary(&base, &tree.base().unwrap()).unwrap();
    assert_eq!((changes.files.len(), changes.more), (20, 30));
    assert_eq!(changes.files[0], file("new/00", 1, 0));
}

#[test]
fn a_hash_is_gits_own() {
    let repo = Sandbox::new();
    repo.write("text", "hello\n");
    let theirs = repo.git(["hash-object", "text"]);
    assert_eq!(crate::workspace::hash(b"hello\n").as_deref(), Some(theirs.trim()));
}
