//! What stays out of a commit, and what keeps it from being made.

use std::sync::Arc;

use crate::decide::staging::{Objection, Rules};
use crate::model::{Base, LeftOut, WhyLeftOut};
use crate::text::redact;
use crate::workspace::{Committed, GitError, Staging, WorkTree};

use super::sandbox::{CommitRequest, Sandbox};

/// The known kinds, and one value of the environment.
fn secrets() -> Arc<redact::SecretRules> {
    let variable = ("TEST_API_KEY".to_owned(), "correct-horse-battery".to_owned());
    Arc::new(redact::SecretRules::new([variable]))
}

fn commit(tree: &WorkTree, base: &Base, as_it_is: bool) -> Result<Committed, GitError> {
    commit_with(tree, base, as_it_is, &Rules::default())
}

fn commit_with(
    tree: &WorkTree,
    base: &Base,
    as_it_is: bool,
    rules: &Rules,
) -> Result<Committed, GitError> {
    let secrets = secrets();
    let staging = Some(Staging { rules, secrets: &secrets });
    let request = CommitRequest { base: Some(base), staging, as_it_is, ..CommitRequest::default() };
    request.commit(tree)
}

fn objections(result: Result<Committed, GitError>) -> Vec<Objection> {
    match result {
        Err(GitError::Unfit(objections)) => objections,
        other => panic!("{other:?}"),
    }
}

#[test]
fn new_files_are_left_out_by_name_and_known_ones_are_not() {
    let repo = Sandbox::new();
    repo.write(".env", "A=1\n").write("src/target/mod.rs", "m\n").commit_all("known");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write(".env", "A=2\n").write(".env.example", "A=\n").write("src/target/new.rs", "n\n");
    repo.write("target/debug/x", "x").write("target/debug/y", "y").write("web/.env", "B=1\n");
    repo.git(["add", "web/.env"]);
    let closed = commit(&tree, &base, false).unwrap();
    assert_eq!(repo.last_changes(), "M\t.env\nA\t.env.example\nA\tsrc/target/new.rs\n");
    let left_out = |path: &str, files| LeftOut { path: path.into(), files, why: WhyLeftOut::Name };
    assert_eq!(closed.left_out, [left_out("target", 2), left_out("web/.env", 1)]);
    assert_eq!(repo.status(), "?? target/debug/x\n?? target/debug/y\n?? web/.env\n");
    assert_eq!(closed.next_base.unwrap(), tree.base().unwrap());
    repo.assert_sound();
}

#[test]
fn litter_alone_is_nothing_to_show() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write(".env", "A=1\n");
    let (rules, secrets) = (Rules::default(), secrets());
    let staging = Some(Staging { rules: &rules, secrets: &secrets });
    let request =
        CommitRequest { base: Some(&base), must_change: true, staging, ..CommitRequest::default() };
    assert!(matches!(request.commit(&tree), Err(GitError::NothingChanged)));
}

#[test]
fn a_file_that_is_too_large_is_refused_until_the_human_wants_it() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let rules = Rules { max_file_size: Some(1000), ..Rules::default() };
    repo.write("fits", "x".repeat(1000)).write("large", "x".repeat(1001));
    let head = repo.head();
    let refused = commit_with(&tree, &base, false, &rules);
    let large = Objection::TooLarge { path: "large".into(), size: 1001, limit: 1000 };
    assert_eq!(objections(refused), [large]);
    assert_eq!((repo.head(), repo.status()), (head, "?? fits\n?? large\n".to_owned()));
    commit_with(&tree, &base, true, &rules).unwrap();
    assert_eq!(repo.last_changes(), "A\tfits\nA\tlarge\n");
}

#[test]
fn too_many_new_files_are_refused() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let rules = Rules { max_new_files: Some(2), ..Rules::default() };
    repo.write("x", "x").write("y", "y").write("z", "z").write("a", "a1\n");
    let refused = commit_with(&tree, &base, false, &rules);
    assert_eq!(objections(refused), [Objection::TooMany { count: 3, limit: 2 }]);
    repo.delete("z");
    commit_with(&tree, &base, false, &rules).unwrap();
}

#[test]
fn a_value_that_its_name_shows_to_be_secret_keeps_the_commit_from_being_made() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let value = ["tR9!", "vm4#", "Lw2z"].concat();
    repo.write("app.yaml", format!("db:\n  password: {value}\n"));
    repo.write("app.ini", "[db]\npassword = changeme\n");
    let secret = Objection::Secret { path: "app.yaml".into(), kind: "password".into() };
    assert_eq!(objections(commit(&tree, &base, false)), [secret]);
}

#[test]
fn only_a_secret_that_was_added_counts() {
    let repo = Sandbox::new();
    repo.write("old", "key = correct-horse-battery\nmore\n").commit_all("with one");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("old", "key = correct-horse-battery\nmore, and more\n");
    commit(&tree, &base, false).unwrap();
    let base = tree.base().unwrap();
    repo.write("new", "another = correct-horse-battery\n");
    let secret = Objection::Secret { path: "new".into(), kind: "TEST_API_KEY".into() };
    assert_eq!(objections(commit(&tree, &base, false)), [secret]);
    repo.delete("new").write("old", "another = correct-horse-battery\n");
    let secret = Objection::Secret { path: "old".into(), kind: "TEST_API_KEY".into() };
    assert_eq!(objections(commit(&tree, &base, false)), [secret]);
    commit(&tree, &base, true).unwrap();
}

#[test]
fn the_agents_own_commits_are_measured_too() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let rules = Rules { max_file_size: Some(10), ..Rules::default() };
    repo.write(".env", "A=1\n").write("large", "x".repeat(11)).commit_all("by the agent");
    let refused = objections(commit_with(&tree, &base, false, &rules));
    assert_eq!(
        refused,
        [
            Objection::Private { path: ".env".into() },
            Objection::TooLarge { path: "large".into(), size: 11, limit: 10 }
        ]
    );
}

#[test]
fn all_that_speaks_against_it_is_said_at_once() {
    let repo = Sandbox::new();
    repo.write(".gitattributes", "*.bin filter=lfs\n").commit_all("attributes");
    repo.git(["config", "filter.lfs.clean", "cat"]);
    repo.write("a", "a by the user\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a by both\n").write("x.bin", "raw").write("k", "correct-horse-battery\n");
    let said = commit(&tree, &base, false).unwrap_err().to_string();
    for told in ["`a` had uncommitted edits", "`x.bin` needs", "`k` seems to contain"] {
        assert!(said.contains(told), "{told}: {said}");
    }
    let many: Vec<_> = (0..9).map(|n| Objection::Private { path: n.to_string().into() }).collect();
    let said = GitError::Unfit(many).to_string();
    assert_eq!(said.matches("must not be committed").count(), 5, "{said}");
    assert!(said.ends_with("; and 4 more like these"), "{said}");
}

#[test]
fn the_backlog_itself_is_the_humans() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("PRD.json", [b'x'; 100]).commit_all("by the agent");
    repo.write("a", "a1\n");
    let rules = Rules { max_file_size: Some(10), ..Rules::default() };
    let secrets = secrets();
    let replaced = [("PRD.json".into(), vec![b'y'; 100])];
    let staging = Some(Staging { rules: &rules, secrets: &secrets });
    let request = CommitRequest {
        base: Some(&base),
        replaced: &replaced,
        staging,
        ..CommitRequest::default()
    };
    request.commit(&tree).unwrap();
    assert_eq!(repo.last_changes(), "M\tPRD.json\nM\ta\n");
}

#[test]
fn what_goes_through_a_filter_is_left_out_when_the_human_wants_the_rest() {
    let repo = Sandbox::new();
    repo.write(".gitattributes", "*.bin filter=lfs\n").commit_all("attributes");
    repo.git(["config", "filter.lfs.clean", "cat"]);
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("x.bin", "raw").write("a", "a1\n");
    let filtered = Objection::Filtered { path: "x.bin".into(), filter: "lfs".into() };
    assert_eq!(objections(commit(&tree, &base, false)), [filtered]);
    let closed = commit(&tree, &base, true).unwrap();
    assert_eq!(repo.last_changes(), "M\ta\n");
    assert_eq!(closed.left_out[0].why, WhyLeftOut::Filter);
    assert_eq!(repo.read("x.bin"), "raw");
}
