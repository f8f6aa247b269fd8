//! A run's start beside snapshots of earlier runs: it must not grow with their number.

use std::collections::BTreeSet;

use git2::Repository;
use ralph::model::StoryId;
use ralph::workspace::{Keeping, WorkTree};

use crate::measure::{Times, commit_all, repository, tell};

const COUNTS: [u32; 3] = [1_000, 3_000, 10_000];
const ROUNDS: usize = 5;
const ALL: Keeping = Keeping { count: None, days: None };

pub fn bench() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("repo");
    let repo = repository(&root, 10);
    commit_all(&repo, "first");
    let story = StoryId::try_from("US-001").unwrap();
    let mut made = 0;
    for count in COUNTS {
        let mut tree = WorkTree::open(&root).unwrap();
        tree.serve("0199a8b0-5c1d-7000-8000-000000000000", "PRD.json");
        let base = tree.base().unwrap();
        while made < count {
            made += 1;
            let name = tree.snapshot_name(made).unwrap();
            tree.keep_snapshot(&name, &story, made, &base).unwrap();
        }
        let prune = |tree: &WorkTree| assert!(tree.prune(ALL, &BTreeSet::new(), 0).is_ok());
        tell(
            &format!("{count} refs: the first start after them, which packs them"),
            &Times::of(1, || prune(&tree)),
        );
        let start = Times::of(ROUNDS, || {
            let mut tree = WorkTree::open(&root).unwrap();
            tree.serve("0199a8b0-5c1d-7000-8000-000000000001", "PRD.json");
            prune(&tree);
            made += 1;
            let name = tree.snapshot_name(made).unwrap();
            tree.keep_snapshot(&name, &story, made, &base).unwrap();
        });
        tell(&format!("{count} refs: open, prune and keep one more"), &start);
        tell("floor: a libgit2 listing of the refs", &Times::of(ROUNDS, || list(&repo)));
    }
}

fn list(repo: &Repository) {
    assert!(repo.references_glob("refs/ralph/*").unwrap().flatten().count() > 0);
}
