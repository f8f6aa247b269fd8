use std::fs;
use std::path::Path;
use std::process::Command;

use super::*;
use crate::decide::samples::{id, policy};
use crate::model::Event;
use crate::runner::task::shelve::{Landing, StoryWork};
use crate::runner::tests::fake::{Heard, config};

/// A repository with a file of the user's.
fn repository() -> (tempfile::TempDir, WorkTree) {
    let folder = tempfile::tempdir().unwrap();
    git2::Repository::init(folder.path()).unwrap();
    fs::write(folder.path().join("mine"), "untracked").unwrap();
    let tree = WorkTree::open(folder.path()).unwrap();
    (folder, tree)
}

fn work(base: &Base) -> StoryWork {
    let config = Arc::new(config(policy()));
    let head = base.commit.clone();
    let occupant =
        Occupant { story: id("A"), lane: LaneId::HOME, base: base.clone(), rest: None, head };
    StoryWork { story: id("A"), iteration: 1, occupant: Some(occupant), number: 1, config }
}

fn prepare(shelved: Option<String>) -> Prepare {
    Prepare {
        story: id("A"),
        lane: LaneId::HOME,
        attempt: "A1".into(),
        iteration: 1,
        known: None,
        occupant: None,
        shelved,
        accepted: Vec::new(),
        snapshot: 1,
        is_watched: false,
        config: Arc::new(config(policy())),
    }
}

fn write(folder: &Path, text: &str) {
    fs::write(folder.join("work"), text).unwrap();
}

#[test]
fn shelved_work_is_there_before_the_attempt_and_not_in_its_base() {
    let (folder, tree) = repository();
    let base = tree.base().unwrap();
    write(folder.path(), "by the agent");
    let shelved = work(&base).shelve(&tree, &mut Heard::default()).unwrap();
    // The base is recorded first: a crash may leave half of the work.
    let mut deaf = Heard { is_deaf: true, ..Heard::default() };
    assert!(prepare(shelved.clone()).run(&tree, &mut deaf).is_err());
    assert_eq!(tree.base().unwrap(), base);
    let mut heard = Heard::default();
    let ready = prepare(shelved).run(&tree, &mut heard).unwrap();
    assert_eq!((&ready.base, ready.before), (&base, tree.base().unwrap()));
    assert_eq!(fs::read_to_string(folder.path().join("work")).unwrap(), "by the agent");
    let [Event::BaseSet { base: recorded, .. }, Event::WorkBroughtBack { conflicts, .. }] =
        &heard.events[..]
    else {
        panic!("{:?}", heard.events)
    };
    assert_eq!((recorded, conflicts.len()), (&base, 0));
}

/// Ralph died in the middle of unshelving.
#[test]
fn half_landed_work_is_no_part_of_its_base() {
    let (folder, tree) = repository();
    let base = tree.base().unwrap();
    write(folder.path(), "by the agent");
    let StoryWork { occupant, story, config, .. } = work(&base);
    let shelved = work(&base).shelve(&tree, &mut Heard::default()).unwrap();
    write(folder.path(), "by the agent");
    let landing = Landing { story, occupant, shelved, config };
    assert_eq!(landing.run(&tree, &mut Heard::default()).unwrap(), Some(base.clone()));
    assert_ne!(tree.base().unwrap(), base);
}

#[test]
fn a_base_outlives_a_garbage_collection() {
    let (folder, tree) = repository();
    let ready = prepare(None).run(&tree, &mut Heard::default()).unwrap();
    let mut gc = Command::new("git");
    gc.args(["gc", "-q", "--prune=now"]).current_dir(folder.path());
    assert!(gc.status().unwrap().success());
    write(folder.path(), "by the agent");
    assert!(work(&ready.base).shelve(&tree, &mut Heard::default()).unwrap().is_some());
    assert_eq!(tree.base().unwrap(), ready.base);
}

#[test]
fn kept_work_and_shelved_work_get_refs_of_their_own() {
    let (folder, tree) = repository();
    let base = tree.base().unwrap();
    write(folder.path(), "by the agent");
    let kept = work(&base).keep(&tree).unwrap().unwrap();
    let shelved = work(&base).shelve(&tree, &mut Heard::default()).unwrap().unwrap();
    assert_ne!(kept.reference, shelved);
}
