//! What is in the stories' work and on the branch, and how attacks on it are taken back.

use ralph::model::{ChangeKind, Event, HeldChange, LaneId, StoryId};
use ralph::runner::RunnerError;
use ralph::runner::log::RunLog;
use ralph::state::Acceptance;

use super::world::World;

/// What a story changed and did not commit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Another one after each change.
    pub version: u64,
    /// An attack changed the gate's script: it passes whatever it sees.
    pub is_weak: bool,
}

/// What gates see, and what is committed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checkout {
    /// How many commits of the run are below the work.
    pub tip: usize,
    pub work: Work,
}

/// Gates passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proof {
    pub on: Checkout,
    /// The claim is true, and the gates could have said otherwise.
    pub is_honest: bool,
}

#[derive(Clone, Debug)]
pub struct Commit {
    pub id: String,
    /// The story that it marks.
    pub marks: Option<StoryId>,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    Attack,
    Skip,
    Close { attempt: String, by: Acceptance, of: Checkout },
}

/// What an agent changed that decides what counts as done.
pub fn held(of: ChangeKind, path: &str, what: String) -> HeldChange {
    let (before, changed, hash) = (None, None, None);
    HeldChange { of, path: path.into(), what, diff: String::new(), before, changed, hash }
}

pub fn changed_script() -> HeldChange {
    held(ChangeKind::File, "check.sh", "`check.sh` changed".into())
}

impl World {
    /// Commits of attacks are no state that anything was ever checked on.
    pub fn tip(&self) -> usize {
        self.branch.iter().filter(|commit| commit.origin != Origin::Attack).count()
    }

    pub fn checkout(&self, story: &StoryId) -> Checkout {
        Checkout { tip: self.tip(), work: self.work.get(story).copied().unwrap_or_default() }
    }

    pub fn change_work(&mut self, story: &StoryId) {
        self.versions += 1;
        self.work.entry(story.clone()).or_default().version = self.versions;
    }

    pub fn commit(&mut self, marks: Option<StoryId>, origin: Origin) -> String {
        let id = self.next_commit();
        self.branch.push(Commit { id: id.clone(), marks, origin });
        id
    }

    pub fn next_commit(&mut self) -> String {
        self.versions += 1;
        format!("commit {}", self.versions)
    }

    pub fn is_on_branch(&self, id: &str) -> bool {
        self.branch.iter().any(|commit| commit.id == id)
    }

    /// An attempt is over: neither its commits nor the gate that it changed stay.
    pub fn inspect(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        is_doubtful: bool,
    ) -> Result<(), RunnerError> {
        self.branch.retain(|commit| commit.origin != Origin::Attack);
        let is_weak = self.checkout(story).work.is_weak;
        if is_weak || is_doubtful {
            let changes = vec![changed_script()];
            self.record(log, Event::ChangesHeld { story: story.clone(), changes })?;
        }
        if let Some(work) = self.work.get_mut(story) {
            work.is_weak = false;
        }
        Ok(())
    }

    /// Gates are over: everything is as it was before. Returns whose they were.
    pub fn undo_gates(&mut self) -> Option<StoryId> {
        self.branch.retain(|commit| commit.origin != Origin::Attack);
        let (story, work) = self.before_gates.take()?;
        self.work.insert(story.clone(), work);
        Some(story)
    }

    /// What a process that died left behind.
    pub fn clean_up(&mut self, log: &mut RunLog) -> Result<(), RunnerError> {
        self.undo_gates();
        self.put_back_stories();
        let lost = log.state.attempts.iter().map(|flight| flight.start.story.clone());
        for story in lost.collect::<Vec<_>>() {
            self.inspect(log, &story, false)?;
        }
        Ok(())
    }

    /// The human decides whether stories may go.
    pub fn hold_removal(
        &mut self,
        log: &mut RunLog,
        story: Option<&StoryId>,
    ) -> Result<(), RunnerError> {
        if let Some(story) = story.filter(|_| !self.taken_out.is_empty()) {
            let gone: Vec<&str> = self.taken_out.iter().map(|(_, one)| one.id.as_str()).collect();
            let changes = vec![held(ChangeKind::Backlog, "PRD.json", gone.join(" "))];
            self.record(log, Event::ChangesHeld { story: story.clone(), changes })?;
        }
        self.put_back_stories();
        Ok(())
    }

    fn put_back_stories(&mut self) {
        for (place, story) in std::mem::take(&mut self.taken_out).into_iter().rev() {
            for backlog in [&mut self.file, &mut self.current] {
                if backlog.story(&story.id).is_none() {
                    let mut stories = backlog.stories.clone();
                    stories.insert(place.min(stories.len()), story.clone());
                    *backlog = super::human::with_stories(backlog, stories);
                }
            }
        }
    }

    /// Stories that the human let go.
    pub fn apply_removals(&mut self, log: &mut RunLog) -> Result<(), RunnerError> {
        if self.problem.is_some() || !self.running.is_empty() || !self.gates.is_empty() {
            return Ok(());
        }
        let wanted = log.state.unfinished().flat_map(|(id, known)| {
            let changes = known.accepted.iter().filter(|one| one.of == ChangeKind::Backlog);
            changes.map(|one| (id.clone(), one.clone()))
        });
        for (story, change) in wanted.collect::<Vec<_>>() {
            let gone = change.what.split(' ').map(|id| StoryId::try_from(id).unwrap());
            gone.for_each(|id| self.remove_story(&id));
            let (applied, refused) = (vec![change.path], vec![]);
            self.record(log, Event::ChangesApplied { story, applied, refused })?;
            self.current = self.file.clone();
            self.show_marks(&log.state.marks.clone());
        }
        Ok(())
    }

    /// Who attacks the branch and the human's tree, and not a lane of its own.
    pub fn is_at_home(&self, story: &StoryId) -> bool {
        self.lane_of(story) == Some(LaneId::HOME)
    }
}
