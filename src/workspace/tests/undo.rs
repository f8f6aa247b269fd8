use std::path::PathBuf;

use crate::model::Base;
use crate::workspace::{ClosedStory, GitError, Replacement, UndoRequest, Undone, WorkTree};

use super::sandbox::{CommitRequest, Sandbox, story};

fn close(tree: &WorkTree, base: &Base, name: &str, more: &str) {
    let message = format!("{name}: x\n\nRalph-Story: {name}\nRalph-Backlog: PRD.json\n{more}");
    let request = CommitRequest { base: Some(base), message: &message, ..CommitRequest::default() };
    request.commit(tree).unwrap();
}

fn closing(tree: &WorkTree, name: &str) -> ClosedStory {
    tree.newest_closing(&story(name), "PRD.json").unwrap().unwrap()
}

fn undo(tree: &WorkTree, name: &str, replaced: &[(PathBuf, Vec<u8>)]) -> Result<Undone, GitError> {
    let closing = closing(tree, name);
    let message = format!("undo\n\nRalph-Undone: {}\n", closing.commit);
    let replaced = replaced.iter().map(|(path, bytes)| Replacement::new(path, bytes));
    let replaced: Vec<_> = replaced.collect();
    tree.undo(&UndoRequest { closing: &closing, replaced: &replaced, message: &message })
}

#[test]
fn a_storys_changes_go_and_all_others_stay() {
    let repo = Sandbox::new();
    repo.write("PRD.json", "0\n").write("mine", "uncommitted\n");
    repo.git(["add", "PRD.json"]);
    repo.git(["commit", "-qm", "plan"]);
    let tree = repo.open();
    let base = tree.base().unwrap();
    let began = repo.head();
    repo.write("a", "a1\n").git(["commit", "-qam", "by the agent itself"]);
    repo.write("new/x", "x\n").delete("b").write("PRD.json", "1\n");
    close(&tree, &base, "S-1", &format!("Ralph-Base: {began}\n"));
    let base = tree.base().unwrap();
    repo.write("docs/c", "c2\n").write("PRD.json", "2\n");
    close(&tree, &base, "S-2", "");

    let replaced = [(PathBuf::from("PRD.json"), b"2, but S-1 is open\n".to_vec())];
    let done = undo(&tree, "S-1", &replaced).unwrap();
    assert_eq!((done.commit, done.files), (repo.head(), 3));
    assert_eq!(repo.last_changes(), "M\tPRD.json\nM\ta\nA\tb\nD\tnew/x\n");
    assert_eq!(
        (repo.read("a"), repo.read("b"), repo.read("docs/c")),
        ("a0\n".into(), "b0\n".into(), "c2\n".into())
    );
    assert!(!repo.exists("new") && repo.read("mine") == "uncommitted\n");
    repo.write("PRD.json", "2, but S-1 is open\n");
    assert_eq!(repo.status(), "?? mine\n");
    assert!(closing(&tree, "S-1").is_undone && !closing(&tree, "S-2").is_undone);
    repo.assert_sound();
}

#[test]
fn conflicts_and_uncommitted_work_change_nothing() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a1\n").write("b", "b1\n");
    close(&tree, &base, "S-1", "");
    repo.write("a", "a2\n").commit_all("builds on it");
    let (head, status) = (repo.head(), repo.status());
    let refused = undo(&tree, "S-1", &[]).unwrap_err();
    assert!(matches!(&refused, GitError::UndoConflicts(paths) if paths == &["a"]), "{refused}");
    assert_eq!((repo.head(), repo.status(), repo.read("b")), (head, status, "b1\n".into()));

    repo.write("a", "a1\n").commit_all("and back");
    repo.write("b", "mine\n");
    let head = repo.head();
    let refused = undo(&tree, "S-1", &[]).unwrap_err();
    assert!(matches!(&refused, GitError::UncommittedInTheWay(p) if p == &["b"]), "{refused}");
    assert_eq!(
        (repo.head(), repo.read("b"), repo.read("a")),
        (head, "mine\n".into(), "a1\n".into())
    );
}

#[test]
fn the_first_commit_of_all_can_be_taken_back() {
    let repo = Sandbox::unborn();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("x", "x\n");
    close(&tree, &base, "S-1", "");
    undo(&tree, "S-1", &[]).unwrap();
    assert_eq!((repo.git(["ls-files"]), repo.status()), (String::new(), String::new()));
    assert!(!repo.exists("x"));
}
