use crate::model::{Changes, FileChange};

use super::sandbox::Sandbox;

fn file(path: &str, added: usize, removed: usize) -> FileChange {
    FileChange { path: path.to_owned(), added, removed }
}

#[test]
fn each_file_is_told_with_its_lines() {
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
