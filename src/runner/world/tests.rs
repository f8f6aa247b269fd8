//! The real effects in a real repository, without a loop.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::agent::Plain;
use crate::decide::samples::{History, id, policy};
use crate::model::Policy;
use crate::ports::Asked;
use crate::runner::tests::fake::{Kept, Silent, config};
use crate::state::Marks;
use crate::store::prd::PrdFile;
use crate::store::{Store, StorePlace};
use crate::workspace::WorkTree;

const PRD: &str = r#"{"project": "p", "description": "d", "userStories": [
    {"id": "A", "title": "t", "description": "", "criteria": ["c"], "passes": false}]}"#;

struct Nobody;

impl Human for Nobody {
    fn ask(&self, _: &Ask) -> Asked {
        Asked::NoAnswer
    }
}

struct Scene {
    folder: TempDir,
    world: World,
    log: RunLog,
    kept: Kept,
}

impl Scene {
    fn new(policy: Policy) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git2::Repository::init(root).unwrap();
        fs::write(root.join("PRD.json"), PRD).unwrap();
        let store = Store::new(StorePlace::in_folder(&root.join(".git/ralph")));
        let (clock, kept) = (Clock::system(), Kept::default());
        let env = Env {
            backlog: BacklogFile::open(PrdFile::new(root.join("PRD.json"))).unwrap(),
            home: Lane::new(WorkTree::open(root).unwrap()),
            ralph_dir: RalphDir::open(root).unwrap(),
            requests: store.requests().unwrap(),
            answers: store.answers().unwrap(),
            agent: Arc::new(Plain { words: vec![] }),
            supervisor: Supervisor::new(PathBuf::new(), vec![], String::new()),
            secrets: Arc::new(SecretRules::new([])),
            human: Arc::new(Nobody),
            costs: CostStores { repository: store.costs().unwrap(), user: None },
            clock: clock.clone(),
            new_id: String::new,
        };
        let log = RunLog::new(Box::new(kept.clone()), Box::new(Silent), clock);
        let interrupts = Interrupts::listen().unwrap();
        Self { world: World::new(env, Arc::new(config(policy)), interrupts), folder, log, kept }
    }

    fn write(&self, text: &str) {
        fs::write(self.folder.path().join("PRD.json"), text).unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(self.folder.path().join("PRD.json")).unwrap()
    }

    /// Without the texts of the backlog.
    fn recorded(&self) -> Vec<Event> {
        let events = self.kept.events.borrow();
        let events = events.iter().map(|recorded| recorded.event.clone());
        events.filter(|event| !matches!(event, Event::BacklogTaken(_))).collect()
    }
}

/// Somebody writes the file right before ralph does: the marks that it has then are no human's.
#[tokio::test]
async fn marks_that_cannot_be_restored_at_once_are_restored_later() {
    let (edited, passes) = (PRD.replace("\"t\"", "\"edited\""), PRD.replace("false", "true"));
    let mut scene = Scene::new(policy());
    scene.write(&passes);
    scene.world.refresh_backlog(&mut scene.log).unwrap();
    scene.write(&edited.replace("false", "true"));
    scene.world.repair_marks(&mut scene.log).unwrap();
    scene.world.refresh(&mut scene.log).unwrap();
    assert_eq!(scene.recorded(), [Event::MarksPutBack { stories: vec![id("A")] }]);
    assert_eq!(scene.text(), edited);
}

#[tokio::test]
async fn a_humans_order_counts_more_than_a_file_that_is_edited_at_the_same_moment() {
    let edited = PRD.replace("\"t\"", "\"edited\"");
    let mut scene = Scene::new(policy());
    scene.write(&edited);
    let wanted = Marks { passing: [id("A")].into(), ..Marks::default() };
    scene.world.set_marks(&mut scene.log, &wanted).unwrap();
    scene.world.refresh(&mut scene.log).unwrap();
    assert_eq!(scene.recorded()[0], wanted.seen());
    assert_eq!(scene.log.state.marks, wanted);
    assert_eq!(scene.text(), edited.replace("false", "true"));
}

/// Its agent may have set them, wherever it works.
#[tokio::test]
async fn marks_in_the_file_during_an_attempt_are_not_the_humans() {
    let passes = PRD.replace("false", "true");
    let put_back = Event::MarksPutBack { stories: vec![id("A")] };
    for (lane, recorded, text) in
        [(LaneId::HOME, vec![], &*passes), (LaneId(1), vec![put_back], PRD)]
    {
        let mut scene = Scene::new(policy());
        scene.log.state = History::new().started_in("A", lane).state;
        scene.write(&passes);
        scene.world.refresh(&mut scene.log).unwrap();
        assert_eq!((scene.recorded(), &*scene.text()), (recorded, text), "{lane}");
    }
}

/// Otherwise nothing was ended because of it, and room may be made.
#[tokio::test]
async fn a_disk_that_was_low_stays_low_only_if_something_ran() {
    let mut scene = Scene::new(Policy { min_free_disk: Some(u64::MAX), ..policy() });
    scene.world.look_around(&mut scene.log).unwrap();
    assert_eq!(scene.world.disk_was_low, None);
    let gate = (GatesOf::Baseline, watch::channel(None).0, Instant::now());
    scene.world.gates.push(gate);
    let seen = scene.world.look_around(&mut scene.log).unwrap().disk;
    scene.world.gates.clear();
    fs::write(scene.folder.path().join("large"), vec![0; 1 << 22]).unwrap();
    assert_eq!(scene.world.look_around(&mut scene.log).unwrap().disk, seen);
}

/// Nobody mended it in time.
#[tokio::test]
async fn a_broken_backlog_is_replaced_and_the_humans_version_stays_beside_it() {
    let mut scene = Scene::new(policy());
    scene.write("{ half");
    scene.world.refresh(&mut scene.log).unwrap();
    assert!(scene.world.backlog_problem().is_some());
    scene.world.restore_backlog(&mut scene.log).unwrap();
    assert_eq!((scene.text().as_str(), scene.world.backlog_problem()), (PRD, None));
    let [Event::BacklogPutBack { kept: Some(kept), .. }] = &scene.recorded()[..] else {
        panic!("{:?}", scene.recorded());
    };
    let time = kept.rsplit_once("PRD.json.broken-").unwrap().1;
    assert!(time.parse::<i64>().is_ok_and(|time| time > 0), "{kept}");
    assert_eq!(fs::read_to_string(kept).unwrap(), "{ half");
}
