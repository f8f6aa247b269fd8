//! Makes a lane ready for an attempt: its work tree is scanned, shelved work is back, the guard is
//! armed.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{Base, Changes, LaneId, StoryId};
use crate::runner::config::RunConfig;
use crate::runner::error::Result;
use crate::runner::task::EventSink;
use crate::runner::task::occupant::Occupant;
use crate::runner::task::shelve::ShelvedWork;
use crate::workspace::{Guard, GuardedAttempt, WorkTree};

pub struct Prepare {
    pub story: StoryId,
    pub lane: LaneId,
    /// The id that the attempt will have, and its iteration.
    pub attempt: String,
    pub iteration: u32,
    /// The tree after a close is known without a scan.
    pub known: Option<Base>,
    /// If its work is in the lane.
    pub occupant: Option<Occupant>,
    /// The ref of its shelved work.
    pub shelved: Option<String>,
    /// From here on numbers of snapshots, and of kept attempts, may be free.
    pub snapshot: u32,
    pub number: u32,
    /// The file for the attempt's version of the instructions, if git does not track them.
    pub spare: PathBuf,
    pub config: Arc<RunConfig>,
}

/// A lane that is ready.
pub struct Prepared {
    pub story: StoryId,
    pub lane: LaneId,
    pub attempt: String,
    pub iteration: u32,
    pub base: Base,
    pub before: Base,
    /// The ref that `before` will be kept at.
    pub snapshot: String,
    pub guard: Guard,
    /// What the story changed so far.
    pub changes: Changes,
}

impl Prepare {
    pub fn run(self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<Prepared> {
        let mut before = match self.known {
            Some(known) => known,
            None => tree.base()?,
        };
        let base = match self.occupant {
            Some(occupant) => occupant.follow_branch(tree, log)?,
            None => {
                tree.hold(&before)?;
                before.clone()
            }
        };
        if let Some(reference) = self.shelved {
            let (story, lane, except) = (&self.story, self.lane, &self.config.human_files);
            ShelvedWork { story, lane, reference, base: &base, except }.unshelve(tree, log)?;
            before = tree.base()?;
        }
        let snapshot = tree.snapshot_name(self.snapshot)?;
        let guarded = GuardedAttempt {
            attempt: self.attempt.clone(),
            story: self.story.clone(),
            iteration: self.iteration,
            base: base.clone(),
            before: before.clone(),
            snapshot: Some(snapshot.clone()),
            number: self.number,
            spare: self.spare,
        };
        let guard = Guard::arm(tree, guarded, self.config.instructions_file.as_deref())?;
        // A failed summary is no reason to stop.
        let changes = tree.summary(&base, &before).unwrap_or_default();
        let Self { story, lane, attempt, iteration, .. } = self;
        Ok(Prepared { story, lane, attempt, iteration, base, before, snapshot, guard, changes })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::decide::samples::{id, policy};
    use crate::model::Event;
    use crate::runner::task::shelve::{HomeComing, StoryWork};
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
        let occupant = Occupant { story: id("A"), lane: LaneId::HOME, base: base.clone(), head };
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
            snapshot: 1,
            number: 1,
            spare: PathBuf::new(),
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
    fn work_that_came_home_by_half_is_no_part_of_its_base() {
        let (folder, tree) = repository();
        let base = tree.base().unwrap();
        write(folder.path(), "by the agent");
        let StoryWork { occupant, story, config, .. } = work(&base);
        let shelved = work(&base).shelve(&tree, &mut Heard::default()).unwrap();
        write(folder.path(), "by the agent");
        let coming = HomeComing { story, occupant, shelved, config };
        assert_eq!(coming.run(&tree, &mut Heard::default()).unwrap(), Some(base.clone()));
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
}
