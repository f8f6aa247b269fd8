//! An agent's own commits that cannot stay on the branch.

use std::sync::Arc;

use crate::decide::staging::{Objection, Rules};
use crate::model::{Base, Unclean, WhyUnclean};
use crate::text::redact::SecretRules;
use crate::workspace::{CollectRequest, Contribution, GitError, Staging, WorkTree};

use super::sandbox::{Sandbox, story};

const LARGEST: u64 = 1000;

/// Put together here, so that this file has none.
fn a_key() -> String {
    format!("id = {}\n", ["AKIA", "Q7RTWXKP4ZSLD2VF"].concat())
}

fn collect(tree: &WorkTree, base: &Base) -> Result<Contribution, GitError> {
    let rules = Rules { max_file_size: Some(LARGEST), ..Rules::default() };
    let secrets = Arc::new(SecretRules::new([]));
    let staging = Some(Staging { rules: &rules, secrets: &secrets });
    let (counted, checked, except) = (None, None, [].as_slice());
    let (must_change, as_it_is) = (false, false);
    tree.collect(&CollectRequest {
        base,
        counted,
        checked,
        must_change,
        except,
        refused: &[],
        staging,
        as_it_is,
    })
}

/// Closes the story. Returns why commits were replaced, and where they are kept.
fn close(tree: &WorkTree, base: &Base) -> (Vec<Unclean>, Option<String>) {
    let work = collect(tree, base).unwrap();
    let replaced = tree.keep_replaced(&work, &story("A"), 1, base).unwrap();
    tree.advance(tree.prepare_commit(work, &[], "close\n").unwrap(), None).unwrap();
    replaced.map(|one| (one.unclean, one.kept)).unwrap_or_default()
}

fn unclean(why: WhyUnclean, path: &str) -> Vec<Unclean> {
    vec![Unclean { why, path: path.to_owned(), files: 1 }]
}

fn parent(repo: &Sandbox) -> String {
    repo.git(["rev-parse", "HEAD^"]).trim().to_owned()
}

#[test]
fn what_the_user_had_is_again_as_it_was() {
    let repo = Sandbox::new();
    let began = repo.head();
    repo.write("a", "by the user\n").write("notes", "n\n").delete("docs/c");
    let (tree, before) = (repo.open(), repo.status());
    let base = tree.base().unwrap();
    let own = repo.write("work", "w\n").commit_all("everything");
    let (why, kept) = close(&tree, &base);
    assert_eq!(why, [Unclean { why: WhyUnclean::Users, path: "a".into(), files: 3 }]);
    assert_eq!((parent(&repo), repo.last_changes()), (began, "A\twork\n".into()));
    assert_eq!((repo.status(), repo.read("notes")), (before, "n\n".into()));
    let kept = kept.unwrap();
    assert_eq!(repo.git(["rev-parse", &format!("{kept}^")]).trim(), own);
    assert!(!repo.git(["rev-list", "HEAD"]).contains(&own));
    repo.assert_sound();
}

#[test]
fn the_agents_part_of_an_edited_file_alone_is_clean() {
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n{last}\n");
    let repo = Sandbox::new();
    repo.write("lines", lines("1", "7")).commit_all("lines");
    repo.write("lines", lines("user", "7"));
    let tree = repo.open();
    let base = tree.base().unwrap();
    let own = repo.write("lines", lines("1", "agent")).commit_all("the agent's part");
    repo.write("lines", lines("user", "agent")).write("b", "b1\n");
    assert_eq!(close(&tree, &base), Default::default());
    assert_eq!((parent(&repo), repo.last_changes()), (own, "M\tb\n".into()));
    let base = tree.base().unwrap();
    repo.write("lines", lines("user", "agent again")).commit_all("with the user's");
    assert_eq!(close(&tree, &base).0, unclean(WhyUnclean::Users, "lines"));
    assert_eq!(repo.committed("lines").unwrap(), lines("1", "agent again"));
    assert_eq!(
        (repo.status(), repo.read("lines")),
        (" M lines\n".into(), lines("user", "agent again"))
    );
}

#[test]
fn a_secret_in_any_commit_is_in_no_history() {
    for in_message in [false, true] {
        let repo = Sandbox::new();
        let tree = repo.open();
        let base = tree.base().unwrap();
        let first = repo.write("one", "1\n").commit_all("one");
        if in_message {
            repo.write("two", "2\n").commit_all(&a_key());
        } else {
            repo.write("key", a_key()).commit_all("a key");
            repo.delete("key").write("two", "2\n").commit_all("without");
        }
        let (why, kept) = close(&tree, &base);
        assert_eq!(why, unclean(WhyUnclean::Secret, if in_message { "" } else { "key" }));
        assert_eq!(repo.last_changes(), "A\tone\nA\ttwo\n");
        let kept = kept.unwrap();
        assert_eq!(repo.git(["rev-parse", &format!("{kept}^")]).trim(), first);
        let all = repo.git(["log", "--all", "-p", "--format=%B"]);
        assert!(!all.contains(a_key().trim()), "{all}");
    }
}

#[test]
fn a_secret_in_the_first_commit_leaves_nothing_to_keep() {
    let repo = Sandbox::unborn();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("key", a_key()).commit_all("a key");
    repo.write("key", "id = from env\n").commit_all("without");
    assert_eq!(close(&tree, &base), (unclean(WhyUnclean::Secret, "key"), None));
    assert_eq!(repo.git(["log", "--all", "--format=%s"]), "close\n");
    assert_eq!(
        (repo.committed("key").unwrap(), repo.status()),
        ("id = from env\n".into(), String::new())
    );
}

#[test]
fn large_files_private_names_and_repositories_leave_the_history() {
    let large = "x".repeat(1001);
    for (path, why) in [("large", WhyUnclean::TooLarge), (".env", WhyUnclean::Name)] {
        let repo = Sandbox::new();
        let tree = repo.open();
        let base = tree.base().unwrap();
        repo.write(path, if path == "large" { &large } else { "A=1\n" }).commit_all("with it");
        repo.delete(path).write("b", "b1\n").commit_all("without");
        assert_eq!(close(&tree, &base).0, unclean(why, path));
        assert_eq!((parent(&repo), repo.last_changes()), (base.commit.unwrap(), "M\tb\n".into()));
    }
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("inner/x", "x\n").git(["init", "-q", "inner"]);
    repo.git(["-C", "inner", "-c", "user.name=a", "-c", "user.email=a@a", "add", "."]);
    repo.git(["-C", "inner", "-c", "user.name=a", "-c", "user.email=a@a", "commit", "-qm", "x"]);
    repo.write("b", "b1\n").commit_all("with a repository");
    assert_eq!(close(&tree, &base).0, unclean(WhyUnclean::Repository, "inner"));
    assert_eq!((repo.last_changes(), repo.status()), ("M\tb\n".into(), "?? inner/\n".into()));
}

#[test]
fn a_submodule_that_the_project_names_stays() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let url = repo.root().to_string_lossy();
    let allowed = ["-c", "protocol.file.allow=always"];
    repo.git(allowed.into_iter().chain(["submodule", "--quiet", "add", &url, "vendor/own"]));
    let own = repo.commit_all("with a submodule");
    assert_eq!(close(&tree, &base), Default::default());
    assert_eq!(parent(&repo), own);
}

#[test]
fn what_is_still_there_is_refused_as_without_commits() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let own = repo.write("key", a_key()).write(".env", "A=1\n").commit_all("a key");
    match collect(&tree, &base).err() {
        Some(GitError::Unfit(why)) => {
            assert_eq!(why[0], Objection::Private { path: ".env".into() });
            assert!(matches!(&why[1], Objection::Secret { path, .. } if path.as_os_str() == "key"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(repo.head(), own);
}

#[test]
fn repeated_after_an_interruption_it_keeps_them_once() {
    let repo = Sandbox::new();
    repo.write("notes", "n\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("work", "w\n").commit_all("everything");
    let work = collect(&tree, &base).unwrap();
    let first = tree.keep_replaced(&work, &story("A"), 1, &base).unwrap();
    assert_eq!(close(&tree, &base).1, first.unwrap().kept);
    assert_eq!(repo.git(["for-each-ref", "refs/ralph/attempts"]).lines().count(), 1);
}

#[test]
fn commits_that_were_fetched_are_not_the_agents() {
    let repo = Sandbox::new();
    repo.write("notes", "n\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.git(["checkout", "-qb", "elsewhere"]);
    repo.write("key", a_key()).git(["add", "key"]);
    repo.git(["commit", "-qm", "a key, and gone"]);
    repo.git(["rm", "-qf", "key"]);
    repo.git(["commit", "-qm", "without"]);
    repo.git(["update-ref", "refs/remotes/origin/elsewhere", "HEAD"]);
    repo.git(["checkout", "-q", "main"]);
    tree.know_fetched(Some(&base)).unwrap();
    repo.git(["merge", "-q", "--no-ff", "-m", "merged", "elsewhere"]);
    assert_eq!(close(&tree, &base), Default::default());
}

#[test]
fn commits_that_an_agent_pushed_are_its_own() {
    for is_continued in [false, true] {
        let repo = Sandbox::new();
        repo.write("notes", "n\n");
        let tree = repo.open();
        let base = tree.base().unwrap();
        tree.know_fetched(None).unwrap();
        repo.write("work", "w\n").commit_all("everything");
        repo.git(["update-ref", "refs/remotes/origin/main", "HEAD"]);
        if is_continued {
            tree.know_fetched(Some(&base)).unwrap();
        }
        let replaced = collect(&tree, &base).unwrap().replaces;
        assert!(replaced.is_some(), "the user's notes were committed ({is_continued})");
    }
}

#[test]
fn what_a_run_left_at_refs_of_other_repositories_is_its_own_for_the_next_process_too() {
    for is_deleted in [false, true] {
        let repo = Sandbox::new();
        repo.write("notes", "n\n");
        repo.git(["update-ref", "refs/remotes/origin/main", "HEAD"]);
        repo.open().know_fetched_by("run", true, None).unwrap();
        let base = repo.open().base().unwrap();
        repo.git(["checkout", "-qb", "elsewhere"]);
        repo.write("key", a_key()).git(["add", "key"]);
        repo.git(["commit", "-qm", "a key, and gone"]);
        repo.git(["rm", "-qf", "key"]);
        repo.git(["commit", "-qm", "without"]);
        repo.git(["update-ref", "refs/remotes/origin/planted", "HEAD"]);
        repo.git(["checkout", "-q", "main"]);
        if is_deleted {
            repo.delete(".git/ralph/fetched");
        }
        let tree = repo.open();
        tree.know_fetched_by("run", false, Some(&base)).unwrap();
        repo.git(["merge", "-q", "--no-ff", "-m", "merged", "elsewhere"]);
        let replaced = collect(&tree, &base).unwrap().replaces;
        assert!(replaced.is_some(), "the key was committed ({is_deleted})");
    }
}
