use std::path::PathBuf;

use crate::workspace::{GitError, Head, Unshelved, WorkTree};

use super::sandbox::{Sandbox, close, story};

#[test]
fn nothing_to_shelve() {
    let repo = Sandbox::new();
    repo.write("u", "u\n").write("PRD.json", "{}");
    let tree = repo.open();
    let base = tree.base().unwrap();
    assert_eq!(tree.shelve(&story("S"), 1, &base, &[]).unwrap(), None);
    repo.write("PRD.json", "edited by the human");
    let except = [PathBuf::from("PRD.json")];
    assert_eq!(tree.shelve(&story("S"), 1, &base, &except).unwrap(), None);
    assert_eq!(repo.read("PRD.json"), "edited by the human");
    assert_eq!(repo.git(["for-each-ref", "refs/ralph"]), "");
}

/// The user's uncommitted work of every kind.
fn users_work(repo: &Sandbox) {
    repo.write("a", "a by the user\n").write("u", "u by the user\n");
    repo.write("s", "s staged\n").write("b", "b staged\n");
    repo.git(["add", "s", "b"]);
    repo.write("b", "b edited on\n");
}

#[test]
fn everything_goes_back_to_the_base_and_comes_again() {
    let repo = Sandbox::new();
    users_work(&repo);
    let tree = repo.open();
    let base = tree.base().unwrap();
    let (head, status) = (repo.head(), repo.status());
    let staged = repo.git(["show", ":b"]);
    repo.write("docs/c", "c1\n");
    repo.git(["commit", "-q", "-m", "by the agent", "docs/c"]);
    let own = repo.head();
    repo.write("docs/c", "c2\n").write("deep/new", "n\n").write("a", "a by both\n").delete("u");
    repo.git(["add", "deep/new"]);
    let kept = tree.shelve(&story("US-1"), 2, &base, &[]).unwrap().unwrap();

    assert_eq!(kept, "refs/ralph/attempts/US-1/2");
    assert_eq!((repo.head(), repo.status()), (head, status));
    assert_eq!(tree.branch().unwrap(), Head::Branch { name: "main".into(), unborn: false });
    assert_eq!(tree.base().unwrap(), base);
    assert_eq!(
        (repo.read("a"), repo.read("u")),
        ("a by the user\n".into(), "u by the user\n".into())
    );
    assert_eq!(repo.git(["show", ":b"]), staged);
    assert!(!repo.exists("deep"));
    assert_eq!(repo.git(["rev-parse", &format!("{kept}^1")]).trim(), own);

    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["gc", "-q", "--prune=now"]);
    assert_eq!(tree.unshelve(&kept, &[]).unwrap(), Unshelved::Clean);
    assert_eq!((repo.read("docs/c"), repo.read("deep/new")), ("c2\n".into(), "n\n".into()));
    assert_eq!(repo.read("a"), "a by both\n");
    assert!(!repo.exists("u"));
    assert_eq!(repo.git(["show", ":b"]), staged);
    repo.assert_sound();
}

#[test]
fn a_commit_with_the_users_files_is_undone_too() {
    let repo = Sandbox::new();
    repo.write("a", "a by the user\n").write("u", "u\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    let (head, status) = (repo.head(), repo.status());
    repo.write("agent", "work\n").commit_all("everything");
    tree.shelve(&story("S"), 1, &base, &[]).unwrap().unwrap();
    assert_eq!((repo.head(), repo.status()), (head, status));
    assert_eq!((repo.read("a"), repo.read("u")), ("a by the user\n".into(), "u\n".into()));
}

#[test]
fn what_the_user_staged_stays_staged_when_the_agent_edits_it() {
    let repo = Sandbox::new();
    repo.write("s", "staged\n");
    repo.git(["add", "s"]);
    let tree = repo.open();
    let base = tree.base().unwrap();
    let status = repo.status();
    repo.write("s", "edited\n");
    tree.shelve(&story("S"), 1, &base, &[]).unwrap().unwrap();
    assert_eq!(repo.status(), status);
}

#[test]
fn the_humans_files_stay_as_they_are() {
    let repo = Sandbox::new();
    repo.write("PRD.json", "before").commit_all("plan");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("PRD.json", "agent").commit_all("by the agent");
    repo.write("PRD.json", "now").write("PROMPT.md", "new").write("a", "a1\n");
    let except = [PathBuf::from("PRD.json"), PathBuf::from("PROMPT.md")];
    let kept = tree.shelve(&story("S"), 1, &base, &except).unwrap().unwrap();
    assert_eq!((repo.read("PRD.json"), repo.read("PROMPT.md")), ("now".into(), "new".into()));
    assert_eq!(repo.status(), " M PRD.json\n?? PROMPT.md\n");
    repo.write("PRD.json", "later").delete("PROMPT.md");
    assert_eq!(tree.unshelve(&kept, &except).unwrap(), Unshelved::Clean);
    assert_eq!((repo.read("PRD.json"), repo.read("a")), ("later".into(), "a1\n".into()));
    assert!(!repo.exists("PROMPT.md"));
}

#[test]
fn a_branch_without_commits_has_none_again() {
    let repo = Sandbox::unborn();
    repo.write("mine", "m\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("x", "x\n").commit_all("by the agent");
    repo.write("y", "y\n");
    let kept = tree.shelve(&story("S"), 1, &base, &[]).unwrap().unwrap();
    assert_eq!(tree.branch().unwrap(), Head::Branch { name: "main".into(), unborn: true });
    assert_eq!(repo.status(), "?? mine\n");
    assert_eq!(tree.unshelve(&kept, &[]).unwrap(), Unshelved::Clean);
    assert_eq!(repo.status(), "?? mine\n?? x\n?? y\n");
    tree.shelve(&story("S"), 2, &base, &[]).unwrap().unwrap();
    assert_eq!(repo.status(), "?? mine\n");
}

#[test]
fn files_that_only_a_changed_ignore_rule_made_known_are_not_deleted() {
    let repo = Sandbox::new();
    repo.write(".gitignore", "secret\ncache/\n").commit_all("rules");
    repo.write("secret", "s\n").write("cache/x", "x\n").write("forced.log", "f\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write(".gitignore", "# nothing\n").write("agent", "work\n");
    tree.shelve(&story("S"), 1, &base, &[]).unwrap().unwrap();
    assert_eq!((repo.read("secret"), repo.read("cache/x")), ("s\n".into(), "x\n".into()));
    repo.git(["add", "-f", "secret"]);
    tree.shelve(&story("S"), 2, &base, &[]).unwrap().unwrap();
    assert_eq!(repo.read("secret"), "s\n");
    assert_eq!(repo.status(), "?? forced.log\n");
}

#[test]
fn a_merge_left_half_done_is_called_off() {
    let repo = Sandbox::new();
    repo.git(["switch", "-q", "-c", "other"]);
    repo.write("a", "theirs\n").commit_all("theirs");
    repo.git(["switch", "-q", "main"]);
    repo.write("a", "ours\n").commit_all("ours");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.git_fails(["merge", "other"]);
    // The file is as at the base, and still unmerged in the index.
    repo.write("a", "ours\n");
    tree.shelve(&story("S"), 1, &base, &[]).unwrap().unwrap();
    assert_eq!((repo.status(), repo.read("a")), (String::new(), "ours\n".into()));
    repo.open();
    repo.git_fails(["rebase", "other"]);
    tree.shelve(&story("S"), 2, &base, &[]).unwrap().unwrap();
    assert_eq!(repo.status(), "");
    assert_eq!(repo.open().branch().unwrap(), Head::Branch { name: "main".into(), unborn: false });
}

#[test]
fn other_branches_stay_where_the_agent_left_them() {
    let repo = Sandbox::new();
    repo.git(["branch", "old"]);
    let head = repo.write("a", "a1\n").commit_all("second");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.git(["switch", "-q", "old"]);
    let own = repo.write("b", "b1\n").commit_all("elsewhere");
    tree.shelve(&story("S"), 1, &base, &[]).unwrap().unwrap();
    assert_eq!(tree.branch().unwrap(), Head::Branch { name: "main".into(), unborn: false });
    assert_eq!((repo.head(), repo.status()), (head, String::new()));
    assert_eq!(repo.git(["rev-parse", "old"]).trim(), own);
}

#[test]
fn a_detached_head_goes_back_too() {
    let repo = Sandbox::new();
    repo.git(["switch", "-q", "--detach"]);
    let tree = repo.open();
    let base = tree.base().unwrap();
    let head = repo.head();
    repo.write("a", "a1\n").commit_all("by the agent");
    tree.shelve(&story("S"), 1, &base, &[]).unwrap().unwrap();
    assert_eq!((repo.head(), repo.status()), (head, String::new()));
    assert_eq!(tree.branch().unwrap(), Head::Detached);
}

#[test]
fn an_interrupted_call_is_finished_by_the_next() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let head = repo.head();
    repo.write("a", "a1\n").write("b", "b1\n").commit_all("by the agent");
    let own = repo.head();
    let kept = tree.shelve(&story("S"), 1, &base, &[]).unwrap();
    repo.git(["reset", "-q", "--hard", &own]);
    repo.write("b", "b0\n");
    assert_eq!(tree.shelve(&story("S"), 1, &base, &[]).unwrap(), kept);
    assert_eq!((repo.head(), repo.status()), (head, String::new()));
    repo.write("a", "edited by the human\n");
    let refused = tree.shelve(&story("S"), 1, &base, &[]);
    assert!(matches!(refused, Err(GitError::RefTaken(_))));
    assert_eq!(repo.read("a"), "edited by the human\n");
}

#[test]
fn a_call_that_was_interrupted_at_its_very_end_still_knows_its_ref() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a1\n");
    let kept = tree.shelve(&story("S"), 1, &base, &[]).unwrap();
    assert!(kept.is_some());
    assert_eq!(tree.shelve(&story("S"), 1, &base, &[]).unwrap(), kept);
}

#[test]
fn the_same_work_from_another_base_is_not_the_kept_one() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a1\n");
    tree.shelve(&story("S"), 1, &base, &[]).unwrap();
    repo.write("mine", "by the user\n");
    let base = tree.base().unwrap();
    repo.write("a", "a1\n");
    let refused = tree.shelve(&story("S"), 1, &base, &[]);
    assert!(matches!(refused, Err(GitError::RefTaken(_))), "{refused:?}");
    assert_eq!(repo.read("a"), "a1\n");
}

#[test]
fn a_commit_of_nothing_but_the_users_edits_is_kept_too() {
    let repo = Sandbox::new();
    repo.write("a", "a by the user\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    assert!(tree.keep_attempt(&story("S"), 1, 1, &base).unwrap().is_none());
    let own = repo.commit_all("by the agent");
    let (kept, _) = tree.keep_attempt(&story("S"), 1, 1, &base).unwrap().unwrap();
    assert_eq!(repo.git(["rev-parse", &format!("{}^1", kept.reference)]).trim(), own);
}

/// Without its filter it would be another file.
#[test]
fn a_file_that_needs_a_filter_stays_where_it_is() {
    let repo = Sandbox::new();
    let (tree, kept) = shelved_edit(&repo);
    let base = tree.base().unwrap();
    repo.write("a", "a1\n").write(".git/info/attributes", "a filter=lfs\nnew filter=lfs\n");
    let refused = tree.shelve(&story("S"), 2, &base, &[]);
    assert!(matches!(refused, Err(GitError::ForeignFilter { .. })), "{refused:?}");
    assert_eq!(
        (repo.read("a"), repo.git(["for-each-ref", "refs/ralph/attempts/S/2"])),
        ("a1\n".into(), String::new())
    );
    repo.git(["checkout", "-q", "a"]);
    let refused = tree.unshelve(&kept, &[]);
    assert!(matches!(refused, Err(GitError::ForeignFilter { .. })), "{refused:?}");
    assert!(!repo.exists("new"));
}

/// `a` with an edit of the agent in its first line, set aside.
fn shelved_edit(repo: &Sandbox) -> (WorkTree, String) {
    let lines: String = (0..20).map(|n| format!("line {n}\n")).collect();
    repo.write("a", &lines).commit_all("lines");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", lines.replacen("line 0", "line zero", 1)).write("new", "n\n");
    let kept = tree.shelve(&story("S"), 1, &base, &[]).unwrap().unwrap();
    (tree, kept)
}

#[test]
fn merges_with_what_was_committed_meanwhile() {
    let repo = Sandbox::new();
    let (tree, kept) = shelved_edit(&repo);
    let base = tree.base().unwrap();
    repo.write("a", repo.read("a").replace("line 19", "line nineteen")).write("b", "b1\n");
    close(&tree, &base);
    let head = repo.head();
    assert_eq!(tree.unshelve(&kept, &[]).unwrap(), Unshelved::Clean);
    let text = repo.read("a");
    assert!(text.starts_with("line zero\n") && text.ends_with("line nineteen\n"), "{text}");
    assert_eq!((repo.head(), repo.status()), (head, " M a\n?? new\n".into()));
    assert_ne!(repo.git(["for-each-ref", &kept]), "");
}

#[test]
fn with_conflicts_nothing_is_touched() {
    let repo = Sandbox::new();
    let (tree, kept) = shelved_edit(&repo);
    repo.write("a", repo.read("a").replacen("line 0", "line null", 1));
    let status = repo.status();
    let result = tree.unshelve(&kept, &[]).unwrap();
    assert_eq!(result, Unshelved::Conflicts(vec!["a".into()]));
    assert_eq!(repo.status(), status);
    assert!(repo.read("a").starts_with("line null\n") && !repo.exists("new"));
}

#[test]
fn an_ignored_file_is_not_overwritten() {
    let repo = Sandbox::new();
    let (tree, kept) = shelved_edit(&repo);
    repo.write(".git/info/exclude", "new\n").write("new", "precious\n");
    let result = tree.unshelve(&kept, &[]).unwrap();
    assert_eq!(result, Unshelved::Conflicts(vec!["new".into()]));
    assert_eq!(repo.read("new"), "precious\n");
}

#[test]
fn refuses_what_was_not_shelved() {
    let repo = Sandbox::new();
    for name in ["refs/ralph/attempts/S/1", "refs/heads/main"] {
        let result = repo.open().unshelve(name, &[]);
        assert!(matches!(result, Err(GitError::NotShelved(_))), "{name}");
    }
}
