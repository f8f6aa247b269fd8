//! Git's index, removed, broken or emptied by an attempt, and put back.

use crate::model::Violation;
use crate::workspace::{Guard, GuardPart, WorkTree};

use super::guard::{armed, repair};
use super::sandbox::Sandbox;

/// With a staged edit that was edited on, a staged file, an unstaged edit and an untracked file.
fn staged(repo: &Sandbox) -> String {
    repo.write("PROMPT.md", "p\n").commit_all("instructions");
    repo.write("a", "staged\n").write("new", "staged\n").git(["add", "a", "new"]);
    repo.write("a", "edited\n").write("b", "edited\n").write("mine", "untracked\n");
    repo.status()
}

fn repaired(guard: &Guard, tree: &WorkTree) -> Vec<Violation> {
    let found = repair(guard, tree, GuardPart::after_attempt());
    assert_eq!(repair(guard, tree, GuardPart::after_attempt()), [], "it is all as it was");
    found
}

fn index(paths: &[&str]) -> Violation {
    Violation::Index { paths: paths.iter().map(ToString::to_string).collect() }
}

#[test]
fn an_index_that_is_gone_or_broken_is_put_back() {
    let breaks: [fn(&Sandbox) -> &Sandbox; 5] = [
        |repo| repo.delete(".git/index"),
        |repo| repo.write(".git/index", "garbage"),
        |repo| repo.write(".git/index", ""),
        |repo| repo.delete(".git/index").fifo(".git/index"),
        |repo| repo.delete(".git/index").write(".git/index/folder", "x"),
    ];
    for breaks in breaks {
        let repo = Sandbox::new();
        let before = staged(&repo);
        let tree = repo.open();
        let guard = armed(&repo, &tree);
        breaks(&repo);
        assert_eq!(repaired(&guard, &tree), [index(&[])]);
        assert_eq!((repo.status(), repo.git(["show", ":a"])), (before, "staged\n".into()));
    }
}

#[test]
fn it_has_what_was_committed_meanwhile() {
    let repo = Sandbox::new();
    staged(&repo);
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.write("docs/c", "c1\n").git(["commit", "-qm", "own", "docs/c"]);
    repo.delete(".git/index");
    assert_eq!(repaired(&guard, &tree), [index(&[])]);
    assert_eq!(repo.status(), "MM a\n M b\nA  new\n?? mine\n");
}

#[test]
fn what_was_taken_out_of_it_or_staged_over_is_back() {
    for (command, paths) in [
        (&["rm", "-rq", "--cached", "-f", "."][..], &["PROMPT.md", "a", "b", "docs/c", "new"][..]),
        (&["read-tree", "--empty"], &["PROMPT.md", "a", "b", "docs/c", "new"]),
        (&["rm", "-q", "--cached", "docs/c"], &["docs/c"]),
        (&["reset", "-q"], &["a", "new"]),
        (&["add", "-A"], &["a", "b", "mine"]),
    ] {
        let repo = Sandbox::new();
        let before = staged(&repo);
        let tree = repo.open();
        let guard = armed(&repo, &tree);
        repo.git(command);
        assert_eq!(repaired(&guard, &tree), [index(paths)], "{command:?}");
        assert_eq!((repo.status(), repo.git(["show", ":a"])), (before, "staged\n".into()));
    }
}

#[test]
fn the_agents_own_staging_is_its_own() {
    let repo = Sandbox::new();
    staged(&repo);
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.write("work", "w\n").write(".gitignore", "docs\n").git(["add", "work", ".gitignore"]);
    repo.git(["rm", "-q", "--cached", "docs/c"]);
    assert_eq!(repaired(&guard, &tree), []);
    assert_eq!(repo.git(["ls-files", "docs"]), "", "git forgets what is ignored now");
    repo.git(["commit", "-qm", "own", "work", ".gitignore"]);
    assert_eq!(repaired(&guard, &tree), []);
}

#[test]
fn after_a_crash_it_is_back_before_anything_reads_it() {
    let repo = Sandbox::new();
    let before = staged(&repo);
    drop(armed(&repo, &repo.open()));
    repo.delete(".git/index").fifo(".git/index");
    let tree = WorkTree::look_for_run(repo.root()).unwrap();
    assert_eq!(Guard::restore_index(&tree).unwrap(), Some(index(&[])));
    assert_eq!(repo.status(), before);
    assert_eq!(Guard::restore_index(&tree).unwrap(), None);
}

/// Git looks at no file of an entry that is marked so: the work would be in no commit.
#[test]
fn files_that_git_was_told_not_to_look_at_are_looked_at() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let repo = Sandbox::new();
        repo.git(["update-index", flag, "docs/c"]);
        let before = repo.git(["ls-files", "-v"]);
        let tree = repo.open();
        let guard = armed(&repo, &tree);
        repo.git(["update-index", flag, "b"]);
        repo.write("b", "hidden\n");
        assert_eq!(repaired(&guard, &tree), [index(&["b"])], "{flag}");
        assert_eq!(repo.git(["ls-files", "-v"]), before, "the user's stay: {flag}");
        assert_eq!(repo.status(), " M b\n", "{flag}");
    }
}
