//! An agent's work in files that the user had edited before.

use std::path::PathBuf;

use crate::decide::staging::Objection;
use crate::model::{LeftOut, WhyLeftOut};
use crate::workspace::GitError;

use super::sandbox::{CommitRequest, Sandbox, close, try_close};

const LINES: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

fn with_lines() -> Sandbox {
    let repo = Sandbox::new();
    repo.write("lines", LINES).commit_all("lines");
    repo
}

#[test]
fn only_the_agents_part_of_a_shared_file_is_committed() {
    let repo = with_lines();
    repo.write("lines", LINES.replace("one", "one, the user"));
    let tree = repo.open();
    let base = tree.base().unwrap();
    assert_eq!(tree.edited_before(&base).unwrap(), [PathBuf::from("lines")]);
    let both = LINES.replace("one", "one, the user").replace("seven", "seven, the agent");
    repo.write("lines", &both).write("new", "n\n");
    let closed = close(&tree, &base);
    assert_eq!(repo.last_changes(), "M\tlines\nA\tnew\n");
    assert_eq!(repo.committed("lines").unwrap(), LINES.replace("seven", "seven, the agent"));
    assert_eq!(repo.read("lines"), both);
    assert_eq!(repo.status(), " M lines\n");
    assert_eq!(closed.next_base.unwrap(), tree.base().unwrap());
    repo.assert_sound();
}

#[test]
fn what_the_user_staged_stays_staged() {
    let repo = with_lines();
    let staged = LINES.replace("one", "one, staged");
    repo.write("lines", &staged).git(["add", "lines"]);
    let edited = staged.replace("three", "three, edited");
    repo.write("lines", &edited);
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("lines", edited.replace("seven", "seven, the agent"));
    close(&tree, &base);
    let agents = |text: &str| text.replace("seven", "seven, the agent");
    assert_eq!(repo.committed("lines").unwrap(), agents(LINES));
    assert_eq!(repo.git(["show", ":lines"]), agents(&staged));
    assert_eq!(repo.read("lines"), agents(&edited));
}

#[test]
fn the_same_lines_are_for_the_human_and_nothing_is_touched() {
    let repo = with_lines();
    repo.write("lines", LINES.replace("one", "one, the user"));
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("lines", LINES.replace("one", "one, the user and the agent"));
    let (head, status) = (repo.head(), repo.status());
    match try_close(&tree, &base) {
        Err(GitError::Unfit(why)) => {
            assert_eq!(why, [Objection::OverAnEdit { path: "lines".into() }]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((repo.head(), repo.status()), (head, status));
    let as_it_is = CommitRequest { base: Some(&base), as_it_is: true, ..CommitRequest::default() };
    as_it_is.commit(&tree).unwrap();
    assert_eq!(repo.committed("lines").unwrap(), repo.read("lines"));
    assert_eq!(repo.status(), "");
}

#[test]
fn files_that_were_untracked_before_are_never_committed() {
    let repo = Sandbox::new();
    repo.write("u", "u\n").write("gone", "g\n").write("as-it-was", "w\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("u", "u, and the agent\n").delete("gone").write("new", "n\n");
    let closed = close(&tree, &base);
    assert_eq!(repo.last_changes(), "A\tnew\n");
    let left_out = LeftOut { path: "u".into(), files: 1, why: WhyLeftOut::Users };
    assert_eq!(closed.left_out, [left_out]);
    assert_eq!(repo.status(), "?? as-it-was\n?? u\n");
    assert_eq!(repo.read("u"), "u, and the agent\n");
}

#[test]
fn a_change_in_the_users_untracked_file_alone_is_nothing_to_show() {
    let repo = Sandbox::new();
    repo.write("u", "u\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("u", "u too\n");
    let request =
        CommitRequest { base: Some(&base), must_change: true, ..CommitRequest::default() };
    assert!(matches!(request.commit(&tree), Err(GitError::NothingChanged)));
}

#[test]
fn what_the_agent_reset_or_committed_by_itself_is_in_no_commit() {
    let repo = with_lines();
    repo.write("lines", LINES.replace("one", "one, the user")).write("b", "b by the user\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.git(["checkout", "lines"]);
    repo.git(["commit", "-qam", "by the agent"]);
    close(&tree, &base);
    assert_eq!(repo.last_changes(), "");
    assert_eq!(repo.committed("lines").unwrap(), LINES);
    assert_eq!(repo.committed("b").unwrap(), "b0\n");
    assert_eq!((repo.status(), repo.read("b")), (" M b\n".into(), "b by the user\n".into()));
}

#[test]
fn a_part_that_the_agent_committed_itself_leaves_the_users_part_out() {
    let repo = with_lines();
    repo.write("lines", LINES.replace("one", "one, the user"));
    let tree = repo.open();
    let base = tree.base().unwrap();
    let agents = LINES.replace("seven", "seven, the agent");
    repo.write("lines", &agents).git(["commit", "-qam", "by the agent"]);
    repo.write("lines", agents.replace("one", "one, the user"));
    close(&tree, &base);
    assert_eq!(repo.committed("lines").unwrap(), agents);
    assert_eq!(repo.status(), " M lines\n");
}

#[test]
fn the_same_lines_as_a_staged_edit_are_for_the_human_too() {
    let repo = with_lines();
    let staged = LINES.replace("one", "one, staged");
    repo.write("lines", &staged).git(["add", "lines"]);
    let edited = LINES.replace("four", "four, edited");
    repo.write("lines", &edited);
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("lines", edited.replace("one", "one, the agent"));
    let refused = try_close(&tree, &base);
    assert!(matches!(refused, Err(GitError::Unfit(_))), "{refused:?}");
    assert_eq!(repo.git(["show", ":lines"]), staged);
}

#[test]
fn kinds_and_modes_go_the_same_way() {
    let repo = Sandbox::new();
    repo.write("a", "a by the user\n").delete("b");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.make_executable("a");
    close(&tree, &base);
    assert_eq!(repo.git(["ls-tree", "HEAD", "a"]).get(..6), Some("100755"));
    assert_eq!(repo.committed("a").unwrap(), "a0\n");
    assert_eq!(repo.status(), " M a\n D b\n");
    let base = tree.base().unwrap();
    repo.write("b", "b by the agent\n");
    assert!(matches!(try_close(&tree, &base), Err(GitError::Unfit(_))));
}
