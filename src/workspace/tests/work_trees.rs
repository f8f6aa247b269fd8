use std::fs;

use crate::workspace::{BroughtBack, Head, WorkTree};

use super::sandbox::{Sandbox, close, story};

#[test]
fn a_linked_work_tree_has_a_branch_and_index_of_its_own() {
    let repo = Sandbox::new();
    let folder = repo.beside("linked");
    let path = folder.to_str().unwrap();
    repo.git(["worktree", "add", "-q", "-b", "linked", path]);
    let main = repo.head();
    let tree = WorkTree::open(&folder).unwrap();
    assert_eq!(tree.branch().unwrap(), Head::Branch { name: "linked".into(), unborn: false });
    assert_eq!(tree.root(), folder);
    assert_eq!(tree.common_dir(), repo.path(".git"));
    assert_eq!(tree.git_dir(), repo.path(".git/worktrees/linked"));

    let base = tree.base().unwrap();
    tree.hold(&base).unwrap();
    fs::write(folder.join("a"), "a1\n").unwrap();
    let kept = tree.set_aside(&story("S"), 1, &base, &[]).unwrap().unwrap();
    assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "a0\n");
    assert_eq!(tree.bring_back(&kept, &[]).unwrap(), BroughtBack::Clean);
    let closed = close(&tree, &base);
    assert_eq!(repo.git(["rev-parse", "linked"]).trim(), closed.commit);
    assert_eq!(repo.git(["-C", path, "status", "--porcelain"]), "");
    assert_eq!((repo.head(), repo.status()), (main, String::new()));
    assert!(!repo.exists(".git/refs/worktree"));
    let shared = repo.git(["for-each-ref", "--format=%(refname)", "refs/ralph"]);
    assert_eq!(shared, "refs/ralph/attempts/S/1\n");
}
