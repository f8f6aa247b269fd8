//! The work tree as a snapshot, beside a libgit2 status of the same tree.

use std::fs;
use std::path::Path;
use std::time::Duration;

use git2::{Repository, StatusOptions};
use ralph::model::StoryId;
use ralph::workspace::WorkTree;

use crate::measure::{Times, commit_all, ms, repository, tell};

const FILES: usize = 20_000;
/// Files that are in no commit: some of a user's own, some of an agent's.
const UNTRACKED: usize = 2_000;
const PER_FOLDER: usize = 50;
const ROUNDS: usize = 15;

pub fn bench() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("repo");
    let repo = repository(&root, 10);
    files(&root, "tracked", FILES);
    commit_all(&repo, "many");
    compare("all committed", &root);
    files(&root, "untracked", UNTRACKED);
    compare("2,000 of them untracked", &root);
    keep(&root, &repo);
}

/// Between two stories the tree is known already: then only the ref is new.
fn keep(root: &Path, repo: &Repository) {
    let mut tree = WorkTree::open(root).unwrap();
    tree.serve("0199a8b0-5c1d-7000-8000-000000000000", "PRD.json");
    let (base, story) = (tree.base().unwrap(), StoryId::try_from("US-001").unwrap());
    let mut number = 0;
    let kept = Times::of(ROUNDS, || {
        number += 1;
        let name = tree.snapshot_name(number).unwrap();
        tree.keep_snapshot(&name, &story, number, &base).unwrap();
    });
    tell("a known tree kept at a ref", &kept);
    let who = git2::Signature::now("Bench", "bench@example.org").unwrap();
    let head = repo.head().unwrap().peel_to_commit().unwrap();
    let empty = Times::of(ROUNDS, || {
        let tree = head.tree().unwrap();
        repo.commit(Some("refs/heads/floor"), &who, &who, "x", &tree, &[]).unwrap();
        repo.find_reference("refs/heads/floor").unwrap().delete().unwrap();
    });
    tell("floor: a libgit2 commit of a known tree", &empty);
}

fn compare(what: &str, root: &Path) {
    let tree = WorkTree::open(root).unwrap();
    let repo = Repository::open(root).unwrap();
    // What was never seen has to be read once, and what is younger than a moment is not trusted.
    std::thread::sleep(Duration::from_secs(3));
    tree.base().unwrap();
    let (mut snapshots, mut statuses) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        snapshots.push(Times::of(1, || drop(tree.base().unwrap().tree)).min());
        statuses.push(Times::of(1, || status(&repo)).min());
    }
    tell(&format!("snapshot, {what}"), &snapshots);
    tell("floor: a libgit2 status", &statuses);
    for (name, of) in [("min", Times::min as fn(&Times) -> Duration), ("median", Times::median)] {
        let ratio = of(&snapshots).as_secs_f64() / of(&statuses).as_secs_f64();
        println!("  {name}: {:.3} ms is {ratio:.2} x its floor (at most 1.2)", ms(of(&snapshots)));
    }
}

fn status(repo: &Repository) {
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true);
    repo.index().unwrap().read(true).unwrap();
    assert!(repo.statuses(Some(&mut options)).unwrap().len() <= UNTRACKED);
}

fn files(root: &Path, name: &str, count: usize) {
    for number in 0..count {
        let folder = root.join(name).join((number / PER_FOLDER).to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{number}.rs")), format!("fn f{number}() {{}}\n")).unwrap();
    }
}
