use std::path::PathBuf;

use crate::decide::staging::Objection;
use crate::workspace::{GitError, Head};

use super::sandbox::{CommitRequest, Sandbox, close, try_close};

#[test]
fn commits_what_changed_since_the_base() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let before = repo.head();
    let base = tree.base().unwrap();
    assert_eq!(tree.base().unwrap(), base);
    repo.write("a", "a1\n").write("new/file", "n\n").delete("b");
    assert_ne!(tree.base().unwrap(), base);
    let closed = close(&tree, &base);
    assert_eq!(closed.commit, repo.head());
    assert_eq!(repo.git(["rev-parse", "HEAD^"]).trim(), before);
    assert_eq!(repo.last_changes(), "M\ta\nD\tb\nA\tnew/file\n");
    assert_eq!(repo.status(), "");
    let author = repo.git(["log", "-1", "--format=%an <%ae> %cn <%ce> %s"]);
    assert_eq!(author, "Tess Ter <tess@example.com> Tess Ter <tess@example.com> close\n");
    repo.assert_sound();
}

#[test]
fn writes_the_reflog_of_branch_and_head() {
    let repo = Sandbox::new();
    let tree = repo.open();
    close(&tree, &tree.base().unwrap());
    for name in ["HEAD", "main"] {
        let log = repo.git(["reflog", "-1", "--format=%gs %gn", name]);
        assert_eq!(log, "commit: close Tess Ter\n", "{name}");
    }
}

#[test]
fn an_empty_diff_still_makes_a_commit() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let before = repo.head();
    close(&tree, &tree.base().unwrap());
    assert_eq!(repo.git(["rev-parse", "HEAD^"]).trim(), before);
    assert_eq!(repo.last_changes(), "");
}

#[test]
fn what_was_uncommitted_before_stays_out_and_as_it_was() {
    let repo = Sandbox::new();
    repo.write("a", "a by the user\n").write("old-untracked", "u\n");
    repo.write("staged-new", "s\n").write("b", "b staged\n");
    repo.git(["add", "staged-new", "b"]);
    repo.write("b", "b staged, then edited\n").delete("docs/c");
    let before = repo.status();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("agent", "work\n");
    close(&tree, &base);
    assert_eq!(repo.last_changes(), "A\tagent\n");
    assert_eq!(repo.status(), before);
    assert_eq!(repo.read("a"), "a by the user\n");
    assert_eq!(repo.git(["show", ":b"]), "b staged\n");
    assert_eq!(repo.read("b"), "b staged, then edited\n");
    repo.assert_sound();
}

#[test]
fn the_agents_own_commits_stay_below() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let own = repo.write("a", "a1\n").commit_all("by the agent");
    repo.write("b", "b1\n");
    close(&tree, &base);
    assert_eq!(repo.git(["rev-parse", "HEAD^"]).trim(), own);
    assert_eq!(repo.last_changes(), "M\tb\n");
    assert_eq!(repo.status(), "");
}

#[test]
fn what_the_agent_committed_and_reverted_is_reverted() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a1\n").write("extra", "x\n").commit_all("by the agent");
    repo.write("a", "a0\n").delete("extra");
    close(&tree, &base);
    assert_eq!(repo.last_changes(), "M\ta\nD\textra\n");
    assert_eq!(repo.status(), "");
}

#[test]
fn a_part_of_the_users_edit_that_the_agent_committed_takes_no_more_along() {
    let repo = Sandbox::new();
    repo.write("a", "by the user\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a part\n").commit_all("by the agent");
    repo.write("a", "by the user\n").write("b", "b1\n");
    close(&tree, &base);
    assert_eq!(repo.last_changes(), "M\tb\n");
    assert_eq!((repo.status(), repo.read("a")), (" M a\n".into(), "by the user\n".into()));
}

#[test]
fn the_first_commit_of_a_branch() {
    let repo = Sandbox::unborn();
    repo.write("mine", "m\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("agent", "work\n");
    let closed = close(&tree, &base);
    assert_eq!(repo.head(), closed.commit);
    assert_eq!(repo.git(["ls-tree", "-r", "--name-only", "HEAD"]), "agent\n");
    assert_eq!(repo.status(), "?? mine\n");
    repo.assert_sound();
}

#[test]
fn replaced_files_are_committed_before_they_are_on_disk() {
    let repo = Sandbox::new();
    repo.write("PRD.json", "open").commit_all("plan");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a1\n").write("PRD.json", "edited by the agent");
    let replaced = [(PathBuf::from("PRD.json"), b"done".to_vec())];
    let request = CommitRequest {
        base: Some(&base),
        replaced: &replaced,
        message: "close\n",
        ..CommitRequest::default()
    };
    let closed = request.commit(&tree).unwrap();
    assert_eq!(repo.committed("PRD.json").unwrap(), "done");
    repo.write("PRD.json", "done");
    assert_eq!(repo.status(), "");
    assert_eq!(closed.next_base.unwrap(), tree.base().unwrap());
}

#[test]
fn without_a_base_only_the_replaced_files_are_committed() {
    let repo = Sandbox::new();
    let tree = repo.open();
    repo.write("a", "unfinished\n");
    let replaced = [(PathBuf::from("plans/PRD.json"), b"skipped".to_vec())];
    let request =
        CommitRequest { replaced: &replaced, message: "skip\n", ..CommitRequest::default() };
    let closed = request.commit(&tree).unwrap();
    assert_eq!(closed.next_base, None);
    assert_eq!(repo.last_changes(), "A\tplans/PRD.json\n");
    repo.write("plans/PRD.json", "skipped");
    assert_eq!(repo.status(), " M a\n");
}

#[test]
fn a_merge_that_the_agent_left_half_done_is_not_committed() {
    let repo = Sandbox::new();
    repo.git(["switch", "-q", "-c", "other"]);
    repo.write("a", "theirs\n").commit_all("theirs");
    repo.git(["switch", "-q", "main"]);
    repo.write("a", "ours\n").commit_all("ours");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.git_fails(["merge", "other"]);
    assert!(matches!(try_close(&tree, &base), Err(GitError::InProgress { what: "merge" })));
}

#[test]
fn a_branch_that_the_agent_made_ends_up_on_the_runs_branch() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.git(["switch", "-q", "-c", "feature"]);
    let own = repo.write("a", "a1\n").commit_all("by the agent");
    repo.write("b", "b1\n");
    close(&tree, &base);
    assert_eq!(tree.branch().unwrap(), Head::Branch { name: "main".into(), unborn: false });
    assert_eq!(repo.git(["rev-parse", "main^"]).trim(), own);
    assert_eq!(repo.git(["rev-parse", "feature"]).trim(), own);
    assert_eq!(repo.status(), "");
}

#[test]
fn a_branch_without_the_runs_commits_is_refused() {
    let repo = Sandbox::new();
    repo.git(["branch", "old"]);
    repo.write("a", "a1\n").commit_all("second");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.git(["switch", "-q", "old"]);
    repo.write("b", "b1\n");
    assert!(matches!(try_close(&tree, &base), Err(GitError::BranchChanged { .. })));
}

#[test]
fn files_of_an_external_filter_are_refused() {
    let repo = Sandbox::new();
    repo.write(
        ".gitattributes",
        "*.bin filter=strip\n*.lfs filter=lfs\n*.u16 working-tree-encoding=UTF-16\n",
    );
    repo.commit_all("attributes");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("x.bin", "raw");
    close(&tree, &base);
    repo.git(["config", "filter.strip.clean", "cat"]);
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("y.bin", "raw");
    let refused = |path: &str, filter: &str| match try_close(&tree, &base) {
        Err(GitError::Unfit(why)) => {
            let filtered = Objection::Filtered { path: path.into(), filter: filter.into() };
            assert_eq!(why, [filtered]);
        }
        other => panic!("{other:?}"),
    };
    refused("y.bin", "strip");
    // Nobody said what this one does, and everybody knows.
    repo.delete("y.bin").write("y.lfs", "raw");
    refused("y.lfs", "lfs");
    repo.delete("y.lfs").write("y.u16", "raw");
    refused("y.u16", "UTF-16");
}

#[test]
fn a_commit_is_on_the_branch_if_head_has_it() {
    let repo = Sandbox::new();
    let (tree, first) = (repo.open(), repo.head());
    let closed = CommitRequest::default().commit(&tree).unwrap().commit;
    assert!(tree.is_on_branch(&first).unwrap() && tree.is_on_branch(&closed).unwrap());
    repo.git(["reset", "-q", "--hard", &first]);
    assert!(!tree.is_on_branch(&closed).unwrap());
    assert!(!tree.is_on_branch("no id").unwrap());
    assert!(!Sandbox::unborn().open().is_on_branch(&first).unwrap());
}
