use std::fs;
use std::path::PathBuf;

use crate::model::BranchLoss;
use crate::workspace::{BranchState, GitError, Losses};

use super::sandbox::Sandbox;

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

#[test]
fn what_was_uncommitted_and_is_deleted_or_reset_is_lost_and_comes_back() {
    let repo = Sandbox::new();
    repo.write("a", "a by the user\n").write("u", "u\n").write("deep/u", "d\n").write("s", "s\n");
    repo.delete("b").link("l", "a").make_executable("docs/c");
    repo.git(["add", "s"]);
    let tree = repo.open();
    let base = tree.base().unwrap();
    let files = repo.status();
    assert_eq!(tree.losses(&base, &base).unwrap(), Losses::default());
    repo.git(["reset", "-q", "--hard"]);
    repo.git(["clean", "-fdxq"]);
    let losses = tree.losses(&base, &base).unwrap();
    assert_eq!(losses.lost, paths(&["a", "b", "deep/u", "docs/c", "l", "s", "u"]));
    assert_eq!(losses.blocked, paths(&[]));
    tree.repair_user_files(&base, &losses.lost).unwrap();
    assert_eq!(tree.base().unwrap().tree, base.tree);
    assert_eq!(
        repo.status(),
        format!("{}?? s\n?? u\n", files.replace("A  s\n", "").replace("?? u\n", ""))
    );
}

#[test]
fn what_is_edited_or_was_committed_before_is_not_lost() {
    let repo = Sandbox::new();
    repo.write("a", "a by the user\n").write("u", "u\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a by the agent\n").write("u", "u by the agent\n");
    repo.delete("b").write("new", "n\n");
    let changed = Losses { changed: paths(&["u"]), ..Losses::default() };
    assert_eq!(tree.losses(&base, &base).unwrap(), changed, "no commit has it");
    // A later attempt deletes what an earlier one edited: the newest bytes come back.
    let before = tree.base().unwrap();
    repo.delete("u");
    let losses = tree.losses(&base, &before).unwrap();
    assert_eq!(losses.lost, paths(&["u"]));
    tree.repair_user_files(&before, &losses.lost).unwrap();
    assert_eq!(repo.read("u"), "u by the agent\n");
    // Committed by the agent: still there.
    repo.commit_all("all of it");
    assert_eq!(tree.losses(&base, &before).unwrap(), Losses::default());
}

#[test]
fn what_is_in_the_place_of_a_file_or_its_folder_moves_away() {
    let repo = Sandbox::new();
    repo.write("deep/u", "u\n").write("v", "v\n").write("w", "w\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    fs::create_dir(repo.beside("outside")).unwrap();
    repo.delete("deep").delete("v").write("v/in", "i\n").delete("w").link("w", "a");
    std::os::unix::fs::symlink(repo.beside("outside"), repo.path("deep")).unwrap();
    let losses = tree.losses(&base, &base).unwrap();
    assert_eq!(losses, Losses { lost: paths(&["deep/u", "v", "w"]), ..Losses::default() });
    tree.repair_user_files(&base, &losses.lost).unwrap();
    assert_eq!(fs::read_dir(repo.beside("outside")).unwrap().count(), 0);
    assert_eq!([repo.read("deep/u"), repo.read("v"), repo.read("w")], ["u\n", "v\n", "w\n"]);
    let kept = repo.path(".git/ralph/changed/replaced");
    assert_eq!(fs::read_to_string(kept.join("v/in")).unwrap(), "i\n");
    for link in ["deep", "w"] {
        assert!(kept.join(link).is_symlink(), "{link}");
    }
}

#[test]
fn what_the_user_gave_up_before_the_attempt_is_the_agents_to_change() {
    let repo = Sandbox::new();
    repo.write("a", "a by the user\n").delete("b");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a0\n");
    let before = tree.base().unwrap();
    repo.delete("a").write("b/in", "a folder in its place\n");
    assert_eq!(tree.losses(&base, &before).unwrap(), Losses::default());
}

#[test]
fn a_branch_that_head_does_not_contain_stays_where_it_is() {
    let repo = Sandbox::new();
    repo.git(["branch", "old"]);
    let tip = repo.write("a", "a1\n").commit_all("second");
    let tree = repo.open();
    repo.git(["switch", "-q", "old"]);
    let refused = tree.reattach();
    assert!(matches!(refused, Err(GitError::BranchChanged { .. })), "{refused:?}");
    assert_eq!(repo.git(["rev-parse", "main"]).trim(), tip);
}

#[test]
fn where_head_is_decides_what_has_to_happen() {
    let repo = Sandbox::new();
    repo.git(["branch", "old"]);
    repo.write("a", "a1\n").commit_all("second");
    let tree = repo.open();
    let base = tree.base().unwrap();
    let home = repo.head();
    let ahead = |on: &str| BranchState::Ahead { on: on.into() };
    let elsewhere = BranchState::Lost(BranchLoss::Elsewhere);
    let rewritten = BranchState::Lost(BranchLoss::Rewritten);
    for (commands, expected) in [
        (vec![], BranchState::OnBranch),
        (vec!["commit -q --allow-empty -m own"], BranchState::OnBranch),
        (
            vec!["commit -q --allow-empty -m own", "commit -q --amend --allow-empty -m better"],
            BranchState::OnBranch,
        ),
        (vec!["switch -q -c own"], ahead("own")),
        (vec!["switch -q -c own", "commit -q --allow-empty -m own"], ahead("own")),
        (vec!["switch -q --detach"], ahead("a detached HEAD")),
        (vec!["switch -q old"], elsewhere.clone()),
        (vec!["switch -q --detach HEAD~1"], elsewhere.clone()),
        (vec!["switch -q old", "branch -q -D main"], elsewhere.clone()),
        (vec!["commit -q --allow-empty -m own", "switch -q --detach HEAD~1"], elsewhere),
        (vec!["reset -q --hard HEAD~1"], rewritten.clone()),
        (vec!["commit -q --amend --allow-empty -m other"], rewritten.clone()),
        (vec!["update-ref -d HEAD"], rewritten),
    ] {
        for command in &commands {
            repo.git(command.split(' '));
        }
        assert_eq!(tree.branch_state(&base).unwrap(), expected, "{commands:?}");
        if matches!(expected, BranchState::Ahead { .. }) {
            let tip = repo.head();
            tree.reattach().unwrap();
            assert_eq!(repo.git(["branch", "--show-current"]), "main\n");
            assert_eq!(repo.head(), tip, "{commands:?}");
        }
        repo.git(["checkout", "-q", "-B", "main", &home]);
        let _ = std::process::Command::new("git")
            .args(["branch", "-q", "-D", "own"])
            .current_dir(repo.root())
            .output();
    }
}
