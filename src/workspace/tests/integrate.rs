use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::model::Base;
use crate::workspace::{
    ClosedStory, CollectRequest, Committed, GitError, Replacement, UndoRequest, Undone, WorkTree,
};

use super::sandbox::{CommitRequest, Sandbox, story};

/// A linked work tree with a detached HEAD, and where its story begins.
fn lane(repo: &Sandbox, name: &str) -> (PathBuf, WorkTree, Base) {
    let folder = repo.beside(name);
    repo.git(["worktree", "add", "-q", "--detach", folder.to_str().unwrap()]);
    let tree = WorkTree::open(&folder).unwrap();
    let base = tree.base().unwrap();
    (folder, tree, base)
}

fn integrate(home: &WorkTree, lane: &WorkTree, base: &Base) -> Result<Committed, GitError> {
    let (must_change, except) = (true, [PathBuf::from("PRD.json")]);
    let request = CollectRequest {
        base,
        checked: None,
        refused: &[],
        counted: None,
        must_change,
        except: &except,
        staging: None,
        as_it_is: false,
    };
    let all = lane.collect(&request)?;
    let replaced = [Replacement::new(Path::new("PRD.json"), b"marked\n")];
    home.advance(home.prepare_commit(all, &replaced, "S: done\n")?, None)
}

#[test]
fn two_lanes_land_one_after_the_other_and_the_checkout_follows() {
    let repo = Sandbox::new();
    let long: String = (0..20).map(|n| format!("line {n}\n")).collect();
    repo.write("PRD.json", "open\n").write("long", &long).commit_all("plan");
    repo.write("mine", "untracked\n").write("docs/c", "edited by the user\n");
    let home = repo.open();
    let (one, first, first_base) = lane(&repo, "one");
    let (two, second, second_base) = lane(&repo, "two");
    fs::write(one.join("a"), "a1\n").unwrap();
    fs::write(one.join("long"), long.replace("line 0\n", "line zero\n")).unwrap();
    fs::write(one.join("PRD.json"), "marked by the agent\n").unwrap();
    fs::write(two.join("new"), "n\n").unwrap();
    fs::remove_file(two.join("b")).unwrap();
    // The second story's agent commits by itself, and changes a file that the first one changes.
    fs::write(two.join("long"), long.replace("line 19\n", "line nineteen\n")).unwrap();
    let git = |args: &[&str]| repo.git([&["-C", two.to_str().unwrap()], args].concat());
    git(&["commit", "-qam", "by the agent"]);

    let began = repo.head();
    let done = integrate(&home, &first, &first_base).unwrap();
    assert_eq!(
        (repo.head(), repo.last_changes()),
        (done.commit, "M\tPRD.json\nM\ta\nM\tlong\n".into())
    );
    let tip = repo.head();
    integrate(&home, &second, &second_base).unwrap();
    assert_eq!(repo.git(["rev-parse", "HEAD^", "HEAD~2"]), format!("{tip}\n{began}\n"));
    assert_eq!(repo.last_changes(), "D\tb\nM\tlong\nA\tnew\n");
    let both = long.replace("line 0\n", "line zero\n").replace("line 19\n", "line nineteen\n");
    assert_eq!((repo.read("long"), repo.read("a"), repo.exists("b")), (both, "a1\n".into(), false));
    repo.write("PRD.json", "marked\n");
    assert_eq!(repo.status(), " M docs/c\n?? mine\n");
    repo.assert_sound();
}

#[test]
fn what_cannot_land_changes_nothing() {
    let repo = Sandbox::new();
    let home = repo.open();
    let (folder, lane, base) = lane(&repo, "lane");
    fs::write(folder.join("a"), "by the story\n").unwrap();
    repo.write("a", "edited by the user\n");
    let refused = integrate(&home, &lane, &base);
    assert!(matches!(refused, Err(GitError::UncommittedInTheWay(_))), "{refused:?}");
    let head = repo.commit_all("by somebody else");
    let refused = integrate(&home, &lane, &base);
    assert!(matches!(&refused, Err(GitError::Conflicts(paths)) if paths == &["a"]), "{refused:?}");
    assert_eq!((repo.head(), repo.status()), (head, String::new()));
}

/// Git takes no snapshot of it.
#[test]
fn an_ignored_file_is_not_overwritten() {
    let repo = Sandbox::new();
    let home = repo.open();
    let (folder, lane, base) = lane(&repo, "lane");
    fs::write(folder.join("new"), "by the story\n").unwrap();
    let head = repo.write(".gitignore", "new\n").commit_all("by somebody else");
    repo.write("new", "precious\n");
    let refused = integrate(&home, &lane, &base);
    assert!(matches!(&refused, Err(GitError::UncommittedInTheWay(_))), "{refused:?}");
    assert_eq!((repo.head(), repo.read("new")), (head, "precious\n".into()));
}

#[test]
fn a_file_that_needs_a_filter_is_not_written_without_it() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a1\n");
    close(&tree, &base, "S-1", "");
    let head = repo.write(".gitattributes", "a filter=lfs\n").commit_all("by somebody else");
    let refused = undo(&tree, "S-1", &[]).unwrap_err();
    assert!(matches!(refused, GitError::ForeignFilter { .. }), "{refused}");
    assert_eq!((repo.head(), repo.read("a")), (head, "a1\n".into()));
}

#[test]
fn a_file_and_a_folder_of_one_name_are_a_conflict() {
    let repo = Sandbox::new();
    let home = repo.open();
    let (folder, lane, base) = lane(&repo, "lane");
    fs::write(folder.join("x"), "a file\n").unwrap();
    let head = repo.write("x/y", "in a folder\n").commit_all("by somebody else");
    let refused = integrate(&home, &lane, &base);
    assert!(matches!(refused, Err(GitError::Conflicts(_))), "{refused:?}");
    assert_eq!((repo.head(), repo.status()), (head, String::new()));
}

#[test]
fn a_commit_on_head_since_the_work_was_collected_is_not_lost() {
    let repo = Sandbox::new();
    let home = repo.open();
    let base = home.base().unwrap();
    repo.write("a", "a1\n");
    let request = CollectRequest {
        checked: None,
        refused: &[],
        counted: None,
        base: &base,
        must_change: true,
        except: &[],
        staging: None,
        as_it_is: false,
    };
    let all = home.collect(&request).unwrap();
    let head = repo.write("b", "b1\n").commit_all("by somebody else");
    let refused = home.prepare_commit(all, &[], "S: done\n").err();
    assert!(matches!(refused, Some(GitError::HeadMoved(_))), "{refused:?}");
    assert_eq!(repo.head(), head);
}

#[test]
fn a_commit_on_head_since_the_commit_was_prepared_is_not_lost() {
    let repo = Sandbox::new();
    let home = repo.open();
    let nothing = home.collect_nothing().unwrap();
    let ready = home.prepare_commit(nothing, &[], "S: done\n").unwrap();
    let head = repo.write("b", "b1\n").commit_all("by somebody else");
    let refused = home.advance(ready, None);
    assert!(matches!(refused, Err(GitError::HeadMoved(_))), "{refused:?}");
    assert_eq!(repo.head(), head);
}

#[test]
fn a_file_that_is_written_before_the_index_need_not_be_read_again() {
    let repo = Sandbox::new();
    repo.write("PRD.json", "open\n").commit_all("plan");
    let home = repo.open();
    let bytes = b"done\n";
    let stored = home.store_ahead(bytes);
    let replaced = [Replacement { stored, ..Replacement::new(Path::new("PRD.json"), bytes) }];
    let nothing = home.collect_nothing().unwrap();
    let ready = home.prepare_commit(nothing, &replaced, "m\n").unwrap();
    assert_eq!(repo.committed("PRD.json").unwrap(), "open\n");
    repo.write("PRD.json", bytes);
    // As a file that was prepared while the agent worked.
    let file = fs::File::options().write(true).open(repo.path("PRD.json")).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    let found = repo.path("PRD.json").metadata().unwrap();
    home.advance(ready, Some((Path::new("PRD.json"), &found))).unwrap();
    assert_eq!(repo.committed("PRD.json").unwrap(), "done\n");
    // git compares times and sizes only; a second read of the file would be its own.
    assert_eq!(repo.git(["diff-files", "--name-only"]), "");
}

#[test]
fn what_was_stored_ahead_and_collected_as_garbage_is_stored_again() {
    let repo = Sandbox::new();
    let home = repo.open();
    let stored = home.store_ahead(b"done\n");
    assert!(stored.is_some());
    repo.git(["gc", "-q", "--prune=now"]);
    let replaced = [Replacement { stored, ..Replacement::new(Path::new("PRD.json"), b"done\n") }];
    let nothing = home.collect_nothing().unwrap();
    home.advance(home.prepare_commit(nothing, &replaced, "m\n").unwrap(), None).unwrap();
    assert_eq!(repo.committed("PRD.json").unwrap(), "done\n");
    repo.assert_sound();
}

#[test]
fn what_git_may_change_is_not_stored_ahead() {
    let repo = Sandbox::new();
    let tree = repo.open();
    for (bytes, is_stored) in [("plain\n", true), ("from Windows\r\n", false), ("$Id$\n", false)] {
        assert_eq!(tree.store_ahead(bytes.as_bytes()).is_some(), is_stored, "{bytes:?}");
    }
}

fn close(tree: &WorkTree, base: &Base, name: &str, more: &str) {
    let message = format!("{name}: x\n\nRalph-Story: {name}\nRalph-Backlog: PRD.json\n{more}");
    let request = CommitRequest { base: Some(base), message: &message, ..CommitRequest::default() };
    request.commit(tree).unwrap();
}

fn closing(tree: &WorkTree, name: &str) -> ClosedStory {
    tree.newest_closing(&story(name), "PRD.json").unwrap().unwrap()
}

fn undo(tree: &WorkTree, name: &str, replaced: &[(PathBuf, Vec<u8>)]) -> Result<Undone, GitError> {
    let closing = closing(tree, name);
    let message = format!("undo\n\nRalph-Undone: {}\n", closing.commit);
    let replaced = replaced.iter().map(|(path, bytes)| Replacement::new(path, bytes));
    let replaced: Vec<_> = replaced.collect();
    let request = UndoRequest { closing: &closing, replaced: &replaced, message: &message };
    let except: Vec<PathBuf> = replaced.iter().map(|one| one.path.to_owned()).collect();
    Ok(tree.carry_out_undo(&tree.prepare_undo(&request)?, &except)?.unwrap())
}

#[test]
fn a_storys_changes_go_and_all_others_stay() {
    let repo = Sandbox::new();
    repo.write("PRD.json", "0\n").write("mine", "uncommitted\n");
    repo.git(["add", "PRD.json"]);
    repo.git(["commit", "-qm", "plan"]);
    let tree = repo.open();
    let base = tree.base().unwrap();
    let began = repo.head();
    repo.write("a", "a1\n").git(["commit", "-qam", "by the agent itself"]);
    repo.write("new/x", "x\n").delete("b").write("PRD.json", "1\n");
    close(&tree, &base, "S-1", &format!("Ralph-Base: {began}\n"));
    let base = tree.base().unwrap();
    repo.write("docs/c", "c2\n").write("PRD.json", "2\n");
    close(&tree, &base, "S-2", "");

    let replaced = [(PathBuf::from("PRD.json"), b"2, but S-1 is open\n".to_vec())];
    let done = undo(&tree, "S-1", &replaced).unwrap();
    assert_eq!((done.commit, done.files), (repo.head(), 3));
    assert_eq!(repo.last_changes(), "M\tPRD.json\nM\ta\nA\tb\nD\tnew/x\n");
    assert_eq!(
        (repo.read("a"), repo.read("b"), repo.read("docs/c")),
        ("a0\n".into(), "b0\n".into(), "c2\n".into())
    );
    assert!(!repo.exists("new") && repo.read("mine") == "uncommitted\n");
    repo.write("PRD.json", "2, but S-1 is open\n");
    assert_eq!(repo.status(), "?? mine\n");
    assert!(closing(&tree, "S-1").is_undone && !closing(&tree, "S-2").is_undone);
    repo.assert_sound();
}

#[test]
fn conflicts_and_uncommitted_work_change_nothing() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("a", "a1\n").write("b", "b1\n");
    close(&tree, &base, "S-1", "");
    repo.write("a", "a2\n").commit_all("builds on it");
    let (head, status) = (repo.head(), repo.status());
    let refused = undo(&tree, "S-1", &[]).unwrap_err();
    assert!(matches!(&refused, GitError::UndoConflicts(paths) if paths == &["a"]), "{refused}");
    assert_eq!((repo.head(), repo.status(), repo.read("b")), (head, status, "b1\n".into()));

    repo.write("a", "a1\n").commit_all("and back");
    repo.write("b", "mine\n");
    let head = repo.head();
    let refused = undo(&tree, "S-1", &[]).unwrap_err();
    assert!(matches!(&refused, GitError::UncommittedInTheWay(p) if p == &["b"]), "{refused}");
    assert_eq!(
        (repo.head(), repo.read("b"), repo.read("a")),
        (head, "mine\n".into(), "a1\n".into())
    );
}

#[test]
fn the_first_commit_of_all_can_be_undone() {
    let repo = Sandbox::unborn();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("x", "x\n");
    close(&tree, &base, "S-1", "");
    undo(&tree, "S-1", &[]).unwrap();
    assert_eq!((repo.git(["ls-files"]), repo.status()), (String::new(), String::new()));
    assert!(!repo.exists("x"));
}
