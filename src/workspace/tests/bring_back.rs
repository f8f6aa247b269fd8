use crate::workspace::{BroughtBack, GitError, WorkTree};

use super::sandbox::{Sandbox, close, story};

/// `a` with an edit of the agent in its first line, set aside.
fn set_aside(repo: &Sandbox) -> (WorkTree, String) {
    let lines: String = (0..20).map(|n| format!("line {n}\n")).collect();
    repo.write("a", &lines).commit_all("lines");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", lines.replacen("line 0", "line zero", 1)).write("new", "n\n");
    let kept = tree.set_aside(&story("S"), 1, &base, &[]).unwrap().unwrap();
    (tree, kept)
}

#[test]
fn merges_with_what_was_committed_meanwhile() {
    let repo = Sandbox::new();
    let (tree, kept) = set_aside(&repo);
    let base = tree.base().unwrap();
    repo.write("a", repo.read("a").replace("line 19", "line nineteen")).write("b", "b1\n");
    close(&tree, &base);
    let head = repo.head();
    assert_eq!(tree.bring_back(&kept, &[]).unwrap(), BroughtBack::Clean);
    let text = repo.read("a");
    assert!(text.starts_with("line zero\n") && text.ends_with("line nineteen\n"), "{text}");
    assert_eq!((repo.head(), repo.status()), (head, " M a\n?? new\n".into()));
    assert_ne!(repo.git(["for-each-ref", &kept]), "");
}

#[test]
fn with_conflicts_nothing_is_touched() {
    let repo = Sandbox::new();
    let (tree, kept) = set_aside(&repo);
    repo.write("a", repo.read("a").replacen("line 0", "line null", 1));
    let status = repo.status();
    let result = tree.bring_back(&kept, &[]).unwrap();
    assert_eq!(result, BroughtBack::Conflicts(vec!["a".into()]));
    assert_eq!(repo.status(), status);
    assert!(repo.read("a").starts_with("line null\n") && !repo.exists("new"));
}

#[test]
fn an_ignored_file_is_not_overwritten() {
    let repo = Sandbox::new();
    let (tree, kept) = set_aside(&repo);
    repo.write(".git/info/exclude", "new\n").write("new", "precious\n");
    let result = tree.bring_back(&kept, &[]).unwrap();
    assert_eq!(result, BroughtBack::Conflicts(vec!["new".into()]));
    assert_eq!(repo.read("new"), "precious\n");
}

#[test]
fn refuses_what_was_not_set_aside() {
    let repo = Sandbox::new();
    for name in ["refs/ralph/attempts/S/1", "refs/heads/main"] {
        let result = repo.open().bring_back(name, &[]);
        assert!(matches!(result, Err(GitError::NotSetAside(_))), "{name}");
    }
}
