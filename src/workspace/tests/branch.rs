use std::fs;

use crate::workspace::{GitError, Head, Switched, Unshelved, WorkTree};

use super::sandbox::{Sandbox, close, story};

fn on(name: &str, unborn: bool) -> Head {
    Head::Branch { name: name.into(), unborn }
}

#[test]
fn makes_a_branch_at_head_and_keeps_everything_uncommitted() {
    let repo = Sandbox::new();
    repo.write("a", "edited\n").write("u", "u\n");
    let status = repo.status();
    let mut tree = repo.open();
    assert_eq!(tree.switch_to("ralph/x").unwrap(), Switched::Created);
    assert_eq!(tree.switch_to("ralph/x").unwrap(), Switched::AlreadyThere);
    assert_eq!(tree.branch().unwrap(), on("ralph/x", false));
    assert_eq!(repo.status(), status);
    let main = repo.git(["rev-parse", "main"]);
    close(&tree, &tree.base().unwrap());
    assert_eq!(repo.git(["rev-parse", "main"]), main);
    assert_eq!(repo.git(["rev-parse", "ralph/x^"]), main);
}

#[test]
fn switches_to_an_existing_branch() {
    let repo = Sandbox::new();
    repo.git(["switch", "-q", "-c", "other"]);
    repo.write("a", "other\n").write("only", "o\n").commit_all("other");
    repo.git(["switch", "-q", "main"]);
    repo.write("b", "edited\n");
    let mut tree = repo.open();
    assert_eq!(tree.switch_to("other").unwrap(), Switched::Existing);
    assert_eq!((repo.read("a"), repo.read("b")), ("other\n".into(), "edited\n".into()));
    assert_eq!(repo.status(), " M b\n");
}

#[test]
fn refuses_to_overwrite_edits() {
    let repo = Sandbox::new();
    repo.git(["switch", "-q", "-c", "other"]);
    repo.write("a", "other\n").write("u", "other\n").commit_all("other");
    repo.git(["switch", "-q", "main"]);
    for path in ["a", "u"] {
        repo.write(path, "mine\n");
        let mut tree = repo.open();
        match tree.switch_to("other") {
            Err(GitError::WouldOverwrite { paths, .. }) => assert_eq!(paths, [path]),
            other => panic!("{other:?}"),
        }
        assert_eq!(tree.branch().unwrap(), on("main", false));
        assert_eq!(repo.read(path), "mine\n");
        repo.git(["checkout", "-q", "-f"]);
        repo.git(["clean", "-qfd"]);
    }
    repo.write(".git/info/exclude", "u\n").write("u", "ignored but mine\n");
    assert!(matches!(repo.open().switch_to("other"), Err(GitError::WouldOverwrite { .. })));
}

#[test]
fn refuses_names_that_git_refuses() {
    let repo = Sandbox::new();
    for name in ["", "a b", "-x", "a..b", "x.lock", "HEAD", "a/", "@{1}"] {
        let result = repo.open().switch_to(name);
        assert!(matches!(result, Err(GitError::BadBranchName(_))), "{name}: {result:?}");
    }
    assert!(repo.open().switch_to("main/below").is_err());
    assert_eq!(repo.open().branch().unwrap(), on("main", false));
}

#[test]
fn without_commits_head_names_the_new_branch() {
    let repo = Sandbox::unborn();
    repo.write("a", "a\n");
    let mut tree = repo.open();
    assert_eq!(tree.switch_to("work").unwrap(), Switched::Created);
    assert_eq!(tree.branch().unwrap(), on("work", true));
    close(&tree, &tree.base().unwrap());
    assert_eq!(repo.git(["branch", "--format=%(refname:short)"]), "work\n");
}

#[test]
fn from_a_detached_head() {
    let repo = Sandbox::new();
    repo.git(["switch", "-q", "--detach"]);
    let mut tree = repo.open();
    assert_eq!(tree.branch().unwrap(), Head::Detached);
    assert_eq!(tree.switch_to("work").unwrap(), Switched::Created);
    assert_eq!(tree.branch().unwrap(), on("work", false));
}

#[test]
fn refuses_a_branch_of_another_work_tree() {
    let repo = Sandbox::new();
    let other = repo.beside("linked");
    repo.git(["worktree", "add", "-q", "-b", "taken", other.to_str().unwrap()]);
    fs::write(other.join("a"), "edited\n").unwrap();
    let result = repo.open().switch_to("taken");
    assert!(matches!(result, Err(GitError::CheckedOutElsewhere { .. })), "{result:?}");
    assert_eq!(repo.open().branch().unwrap(), on("main", false));
}

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
    let kept = tree.shelve(&story("S"), 1, &base, &[]).unwrap().unwrap();
    assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "a0\n");
    assert_eq!(tree.unshelve(&kept, &[]).unwrap(), Unshelved::Clean);
    let closed = close(&tree, &base);
    assert_eq!(repo.git(["rev-parse", "linked"]).trim(), closed.commit);
    assert_eq!(repo.git(["-C", path, "status", "--porcelain"]), "");
    assert_eq!((repo.head(), repo.status()), (main, String::new()));
    assert!(!repo.exists(".git/refs/worktree"));
    let shared = repo.git(["for-each-ref", "--format=%(refname)", "refs/ralph"]);
    assert_eq!(shared, "refs/ralph/attempts/S/1\n");
}
