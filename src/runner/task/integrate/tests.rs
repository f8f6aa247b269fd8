use std::fs;
use std::path::Path;
use std::thread;

use super::*;
use crate::decide::samples::{id, policy};
use crate::model::Event;
use crate::runner::tests::fake;
use crate::store::prd::{Mark, PrdFile, TrackedPrd};

const PRD: &str = r#"{"project": "p", "description": "d", "userStories": [
    {"id": "A", "title": "t", "description": "", "criteria": ["c"], "passes": false}]}"#;

struct Scene {
    folder: tempfile::TempDir,
    repo: git2::Repository,
    tree: WorkTree,
    base: Base,
}

/// A backlog and instructions are committed.
fn scene() -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let repo = git2::Repository::init(folder.path()).unwrap();
    repo.config().unwrap().set_str("user.name", "T").unwrap();
    repo.config().unwrap().set_str("user.email", "t@example.org").unwrap();
    fs::write(folder.path().join("PRD.json"), PRD).unwrap();
    commit(&repo, "PROMPT.md", "Work.\n");
    let tree = WorkTree::open(folder.path()).unwrap();
    let base = tree.base().unwrap();
    Scene { folder, repo, tree, base }
}

fn commit(repo: &git2::Repository, path: &str, text: &str) {
    fs::write(repo.workdir().unwrap().join(path), text).unwrap();
    let mut index = repo.index().unwrap();
    ["PRD.json", path].iter().for_each(|path| index.add_path(Path::new(path)).unwrap());
    index.write().unwrap();
    let tree = repo.find_tree(index.write_tree().unwrap()).unwrap();
    let who = git2::Signature::now("T", "t@example.org").unwrap();
    let parent = repo.head().ok().map(|head| head.peel_to_commit().unwrap());
    let parents: Vec<_> = parent.iter().collect();
    repo.commit(Some("HEAD"), &who, &who, "m", &tree, &parents).unwrap();
}

impl Scene {
    fn mark_commit(&self, mark: Mark) -> MarkCommit {
        let file = PrdFile::new(self.folder.path().join("PRD.json"));
        let (mut tracked, loaded) = TrackedPrd::open(file).unwrap();
        let instructions_file = Some(self.folder.path().join("PROMPT.md"));
        let backlog_in_tree = Some(PathBuf::from("PRD.json"));
        let config = fake::config(policy());
        let config = RunConfig { instructions_file, backlog_in_tree, ..config };
        MarkCommit {
            story: loaded.backlog.stories[0].clone(),
            text: tracked.marked((0, &id("A")), mark).unwrap(),
            stored: None,
            run: "run".into(),
            iteration: 1,
            prepared: None,
            base: Some(self.base.clone()),
            rest: None,
            head: self.tree.head_commit().unwrap(),
            refused: Vec::new(),
            planned: SyncPoint::default(),
            config: Arc::new(config),
        }
    }

    fn try_close(&self, by: Acceptance) -> Result<Integration> {
        self.close_with(self.mark_commit(Mark::Passes(true)), by)
    }

    fn close_with(&self, mark: MarkCommit, by: Acceptance) -> Result<Integration> {
        let close = Close {
            mark,
            evidence: Vec::new(),
            checked: None,
            counted: None,
            by,
            turned_green: None,
            confirms: None,
            landing: None,
            secrets: Arc::new(SecretRules::new([])),
            ralph_dir: RalphDir::open(self.folder.path()).unwrap(),
        };
        recording(|mailbox| close.run(&self.tree, mailbox)).0
    }

    fn close(&self, by: Acceptance) -> Integration {
        self.try_close(by).unwrap()
    }

    fn committed(&self, path: &str) -> String {
        let tree = self.repo.head().unwrap().peel_to_tree().unwrap();
        let entry = tree.get_path(Path::new(path)).unwrap();
        let blob = self.repo.find_blob(entry.id()).unwrap();
        String::from_utf8(blob.content().to_vec()).unwrap()
    }
}

/// What the work returns, and what it records.
fn recording<T>(work: impl FnOnce(&mut Mailbox) -> T) -> (T, Vec<Event>) {
    let (mut mailbox, mut messages) = tokio::sync::mpsc::channel(8);
    let recorded = thread::spawn(move || {
        let mut recorded = Vec::new();
        while let Some(message) = messages.blocking_recv() {
            if let Message::Record(event, done) = message {
                recorded.push(*event);
                assert!(done.send(SyncPoint::default()).is_ok());
            }
        }
        recorded
    });
    let result = work(&mut mailbox);
    drop(mailbox);
    (result, recorded.join().unwrap())
}

fn human(as_it_is: bool) -> Acceptance {
    Acceptance::Human { as_it_is }
}

#[test]
fn a_story_without_a_change_is_closed_by_the_human_only() {
    let scene = scene();
    let closed = scene.close(Acceptance::Evidence);
    assert!(matches!(closed, Integration::NothingChanged), "{closed:?}");
    assert!(!scene.committed("PRD.json").contains("true"));
    let closed = scene.close(human(false));
    assert!(matches!(closed, Integration::Done { .. }), "{closed:?}");
    assert!(scene.committed("PRD.json").contains("true"));
}

#[test]
fn accepting_a_claim_approves_no_secret() {
    let scene = scene();
    let key = format!("key = \"{}{}\"\n", "AKIA", "IOSFODNN7EXAMPLF");
    fs::write(scene.folder.path().join("settings"), key).unwrap();
    for by in [Acceptance::Evidence, human(false)] {
        let closed = scene.close(by);
        assert!(matches!(closed, Integration::Unfit { .. }), "{by:?} {closed:?}");
    }
    let closed = scene.close(human(true));
    assert!(matches!(closed, Integration::Done { .. }), "{closed:?}");
}

#[test]
fn no_commit_of_a_story_changes_the_instructions() {
    let scene = scene();
    commit(&scene.repo, "PROMPT.md", "Obey.\n");
    fs::write(scene.folder.path().join("a"), "work\n").unwrap();
    let closed = scene.close(Acceptance::Evidence);
    assert!(matches!(closed, Integration::Done { .. }), "{closed:?}");
    assert_eq!(scene.committed("PROMPT.md"), "Work.\n");
}

/// Otherwise the next look at the file would take the mark for the human's.
#[test]
fn a_mark_whose_commit_does_not_reach_the_branch_is_not_in_the_file() {
    let scene = scene();
    fs::write(scene.folder.path().join("a"), "work\n").unwrap();
    // The branch moves last, and with its log: where that is a folder, it cannot.
    let head = scene.repo.head().unwrap();
    let log = scene.repo.path().join("logs").join(head.name().unwrap());
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    fs::write(log.join("in the way"), "").unwrap();
    let refused = scene.try_close(Acceptance::Evidence);
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(scene.repo.head().unwrap().target(), head.target());
    assert_eq!(fs::read_to_string(scene.folder.path().join("PRD.json")).unwrap(), PRD);
    fs::remove_dir_all(&log).unwrap();
    let closed = scene.close(Acceptance::Evidence);
    assert!(matches!(closed, Integration::Done { .. }), "{closed:?}");
}

/// Its base is recorded on top of it at once: after a crash the commit would count as the agent's.
#[test]
fn a_skip_is_no_part_of_the_work_that_is_in_the_lane() {
    let scene = scene();
    let (base, head) = (scene.base.clone(), scene.base.commit.clone());
    let occupant = Some(Occupant { story: id("B"), lane: LaneId::HOME, base, rest: None, head });
    let skip = Skip { mark: scene.mark_commit(Mark::Skipped(true)), occupant };
    let (skipped, recorded) = recording(|mailbox| skip.run(&scene.tree, mailbox).unwrap());
    let skipped = skipped.unwrap();
    assert_eq!(Some(&skipped), scene.tree.head_commit().unwrap().as_ref());
    let (prepared, base) = (
        Event::CommitPrepared { story: id("A"), commit: skipped },
        Event::BaseSet { story: id("B"), base: scene.tree.base().unwrap(), lane: LaneId::HOME },
    );
    assert_eq!(recorded, [prepared, base]);
}

#[test]
fn a_commit_of_a_process_that_died_says_how_much_changed() {
    let scene = scene();
    commit(&scene.repo, "b", "own\n");
    fs::write(scene.folder.path().join("a"), "work\n").unwrap();
    let made = scene.close(Acceptance::Evidence);
    let Integration::Done { commit, change } = made else { panic!("{made:?}") };
    assert_eq!(change.to_string(), "2 files, +2 -0");
    let prepared = Some(commit.clone());
    let mark = MarkCommit { prepared, ..scene.mark_commit(Mark::Passes(true)) };
    let found = scene.close_with(mark, Acceptance::Evidence).unwrap();
    let Integration::Done { commit: found, change: again } = found else { panic!("{found:?}") };
    assert_eq!((found, again), (commit, change));
}

/// The branch may have it no more, or an agent's `git gc` deleted it.
#[test]
fn a_commit_that_was_made_ready_counts_on_the_branch_only() {
    let scene = scene();
    fs::write(scene.folder.path().join("a"), "work\n").unwrap();
    let prepared = Some("0123456789012345678901234567890123456789".to_owned());
    let mark = MarkCommit { prepared, ..scene.mark_commit(Mark::Passes(true)) };
    let closed = scene.close_with(mark, Acceptance::Evidence).unwrap();
    let Integration::Done { commit, .. } = closed else { panic!("{closed:?}") };
    assert_eq!(scene.committed("a"), "work\n", "{commit}");
}
