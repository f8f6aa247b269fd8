use std::path::PathBuf;

use crate::model::{Changes, FileChange};

use super::sandbox::Sandbox;

fn altered(repo: &Sandbox, named: &[&str], patterns: &[&str], change: impl Fn()) -> Vec<String> {
    let tree = repo.open();
    let base = tree.base().unwrap();
    change();
    let named: Vec<PathBuf> = named.iter().map(PathBuf::from).collect();
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    let altered = tree.changed_files(&base, &named, &[], &patterns).unwrap();
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
fn a_group_counts_if_one_of_its_files_was_there() {
    let repo = Sandbox::new();
    repo.write("package.json", r#"{"scripts":{"test":"jest"},"private":true}"#).commit_all("json");
    let tree = repo.open();
    let base = tree.base().unwrap();
    let groups = [vec!["GNUmakefile", "a"], vec!["justfile", ".justfile"], vec!["package.json"]];
    let groups = groups.map(|group| group.into_iter().map(PathBuf::from).collect::<Vec<_>>());
    let changed = |patterns: &[&str]| -> Vec<PathBuf> {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let found = tree.changed_files(&base, &[], &groups, &patterns).unwrap();
        found.into_iter().map(|one| one.path).collect()
    };
    repo.write("GNUmakefile", "x\n").write("justfile", "x\n");
    repo.write("package.json", r#"{"scripts":{"test":"jest"}}"#);
    assert_eq!(changed(&[]), [PathBuf::from("GNUmakefile")], "the other group is new");
    assert_eq!(changed(&["*.json"]), ["GNUmakefile", "package.json"].map(PathBuf::from));
    repo.write("package.json", r#"{"scripts":{"test":"true"}}"#).delete("a");
    assert_eq!(changed(&[]), ["GNUmakefile", "a", "package.json"].map(PathBuf::from));
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
