//! What is done to the work trees of lanes, each at its own time.

use ralph::decide::select::is_ready;
use ralph::decide::situation::LaneJob;
use ralph::model::{Backlog, Cause, Event, LaneId, OnEscalation, StoryChange, StoryId};
use ralph::runner::RunnerError;
use ralph::runner::effects::{GatesOf, Happened, Integration, JobResult, KeptWork};
use ralph::runner::log::RunLog;
use ralph::state::{Acceptance, Stage};

use super::branch::{Commit, Origin};
use super::world::{Planned, SECOND, World};

pub struct RunningJob {
    job: LaneJob,
    story: StoryId,
    /// The backlog's file when it began.
    file: Backlog,
}

impl World {
    pub fn begin_job(
        &mut self,
        log: &mut RunLog,
        job: LaneJob,
        story: &StoryId,
        lane: LaneId,
    ) -> Result<(), RunnerError> {
        self.step()?;
        assert!(!self.jobs.contains_key(&lane), "the tree of lane {lane} is in use");
        assert!(log.state.attempts.is_free(lane), "an agent works in lane {lane}");
        assert!(!self.gates_run_in(lane), "gates run in lane {lane}");
        match job {
            LaneJob::Prepare => self.check_start(log, story, lane),
            LaneJob::Integrate => self.check_close(log, story),
            LaneJob::Shelve => self.check_shelve(log, story),
            LaneJob::Skip => self.check_skip(story),
            LaneJob::Land => self.check_landing(log, story),
            LaneJob::Keep | LaneJob::RollBack => {}
        }
        let takes = i64::from(self.dice.count(0, 3)) * SECOND;
        self.plan(self.now() + takes, Planned::JobEnds(lane));
        let file = self.file.clone();
        self.jobs.insert(lane, RunningJob { job, story: story.clone(), file });
        Ok(())
    }

    /// The file is written by a job.
    pub fn is_writing_marks(&self) -> bool {
        let writes = |job: &RunningJob| matches!(job.job, LaneJob::Integrate | LaneJob::Skip);
        self.jobs.values().any(writes)
    }

    pub fn gates_run_in(&self, lane: LaneId) -> bool {
        self.gates.iter().any(|gates| match &gates.of {
            GatesOf::Baseline | GatesOf::FirstLook { .. } => true,
            GatesOf::Claim { story, .. } => self.lane_of(story) == Some(lane),
        })
    }

    /// What the job does happens now, and ralph may die in the middle of it.
    pub fn end_job(&mut self, log: &mut RunLog, lane: LaneId) -> Result<Happened, RunnerError> {
        let RunningJob { job, story, file } = self.jobs.remove(&lane).unwrap();
        self.step()?;
        let result = match job {
            LaneJob::Prepare => {
                self.unshelve(log, &story, lane)?;
                JobResult::Ready
            }
            LaneJob::Keep => JobResult::Kept(self.changed.contains(&story).then(|| KeptWork {
                reference: format!("refs/kept/{story}"),
                changes: "1 file".to_owned(),
            })),
            LaneJob::Land => {
                if log.state.story(&story).is_some_and(|known| known.work.shelved().is_some()) {
                    self.unshelve(log, &story, LaneId::HOME)?;
                } else {
                    let (lane, base) = (LaneId::HOME, super::effects::base());
                    self.record(log, Event::BaseSet { story: story.clone(), base, lane })?;
                    self.trees.insert(lane, story.clone());
                }
                let known = log.state.story(&story);
                let clean = known.is_some_and(|known| known.work.conflicting().is_none());
                JobResult::Landed { clean }
            }
            LaneJob::Integrate | LaneJob::Skip if self.broken || self.file != file => {
                JobResult::BacklogChanged
            }
            LaneJob::Integrate => JobResult::Integrated(self.integrate(log, &story)?),
            LaneJob::Skip => JobResult::Skipped(self.skip(&story)?),
            LaneJob::Shelve => {
                self.step()?;
                JobResult::Shelved(self.take_out(&story))
            }
            LaneJob::RollBack => JobResult::RolledBack(self.roll_back(log, &story)?),
        };
        self.step()?;
        Ok(Happened::JobEnded { lane, story, result })
    }

    pub fn check_start(&self, log: &RunLog, story: &StoryId, lane: LaneId) {
        let other = self.trees.get(&lane).filter(|other| *other != story);
        assert_eq!(other, None, "{story} would start in another's wreckage");
        assert!(self.lane_of(story).is_none_or(|its| its == lane), "{story} is in another lane");
        assert!(!log.state.is_asking(story), "the question of {story} is open");
        let only = self.config.policy.only.as_ref();
        assert!(only.is_none_or(|only| only == story), "{story} is not wanted");
        let known = self.current.story(story).unwrap();
        assert!(is_ready(known, &self.current, &|_| false), "{story} cannot be started");
        assert!(!self.gates_run_in(lane), "gates run in the lane of {story}");
    }

    /// Nothing is closed without evidence, or the human's word.
    fn check_close(&self, log: &RunLog, story: &StoryId) {
        let stage = &log.state.story(story).unwrap().stage;
        let Stage::Accepted { claim, by } = stage else { unreachable!("{story} is {stage:?}") };
        match by {
            Acceptance::Human { .. } => {
                assert!(self.accepted.contains(story), "nobody accepted {story}");
            }
            Acceptance::Evidence if self.scene.has_gates => {
                let proven = self.proven.get(&claim.attempt);
                let Some(proof) = proven else { unreachable!("{story} has no evidence") };
                // Unless a process before this one died before it could confirm its commit.
                let is_there = self.prepared(log, story).is_some();
                let is_same = proof.on.tip == self.tip();
                assert!(is_there || is_same, "{story} was checked elsewhere");
            }
            Acceptance::Evidence => {}
        }
    }

    /// A claim may only leave an agent's lane, to be checked where it lands.
    fn check_shelve(&self, log: &RunLog, story: &StoryId) {
        assert!(log.state.attempts.at(story).is_none(), "an agent works on {story}");
        let stage = log.state.story(story).map(|known| &known.stage);
        let is_claimed = matches!(stage, Some(Stage::Claimed(_) | Stage::Accepted { .. }));
        let is_open = self.current.story(story).is_some_and(|known| !known.is_settled());
        let is_home = self.lane_of(story) == Some(LaneId::HOME);
        assert!(!(is_claimed && is_open && is_home), "the claim of {story} is lost");
    }

    fn check_landing(&self, log: &RunLog, story: &StoryId) {
        let stage = log.state.story(story).map(|known| &known.stage);
        assert!(matches!(stage, Some(Stage::Claimed(_))), "{story} is {stage:?}");
        let other = self.trees.get(&LaneId::HOME).filter(|other| *other != story);
        assert_eq!(other, None, "{story} would land on another's work");
    }

    fn check_skip(&self, story: &StoryId) {
        let is_decided =
            self.config.policy.on_escalation == OnEscalation::Skip || self.settled.contains(story);
        assert!(is_decided, "nobody wanted {story} skipped");
        assert_eq!(self.lane_of(story), None, "the work of {story} is in a lane");
    }

    fn integrate(&mut self, log: &mut RunLog, story: &StoryId) -> Result<Integration, RunnerError> {
        if log.state.story(story).is_some_and(|known| known.base().is_none()) {
            let other = self.trees.get(&LaneId::HOME).filter(|other| *other != story);
            assert_eq!(other, None, "{story} would be closed with another's work");
            self.unshelve(log, story, LaneId::HOME)?;
            if log.state.story(story).is_some_and(|known| known.work.conflicting().is_some()) {
                return Ok(Integration::Conflicting);
            }
            let claim = log.state.story(story).and_then(|known| known.stage.claim());
            if claim.is_some_and(|claim| !claim.evidence.is_empty()) {
                return Ok(Integration::Outdated);
            }
        }
        let commit = match self.prepared(log, story) {
            // A process before this one died before it could confirm it.
            Some(commit) => commit,
            None => match self.objection(log, story) {
                Some(objection) => return Ok(objection),
                None => self.make_commit(log, story)?,
            },
        };
        self.commits.insert(story.clone(), commit.clone());
        self.changed.remove(story);
        self.step()?;
        for backlog in [&mut self.file, &mut self.current] {
            let known = backlog.stories.iter_mut().find(|known| known.id == *story);
            known.unwrap().passes = true;
        }
        self.step()?;
        self.trees.retain(|_, occupant| occupant != story);
        Ok(Integration::Done { commit, change: StoryChange::default() })
    }

    /// The commit of the story's close, if it is on the branch, whatever other commits say.
    fn prepared(&self, log: &RunLog, story: &StoryId) -> Option<String> {
        let prepared = log.state.story(story)?.prepared.clone();
        prepared.filter(|commit| self.is_on_branch(commit))
    }

    fn make_commit(&mut self, log: &mut RunLog, story: &StoryId) -> Result<String, RunnerError> {
        let stage = &log.state.story(story).unwrap().stage;
        let Stage::Accepted { claim, by } = stage else { unreachable!("{story} is {stage:?}") };
        let (attempt, by, of) = (claim.attempt.clone(), *by, self.checkout(story));
        let id = self.next_commit();
        self.record(log, Event::CommitPrepared { story: story.clone(), commit: id.clone() })?;
        self.step()?;
        let origin = Origin::Close { attempt, by, of };
        self.branch.push(Commit { id: id.clone(), marks: Some(story.clone()), origin });
        self.work.remove(story);
        Ok(id)
    }

    /// What speaks against a commit.
    fn objection(&mut self, log: &RunLog, story: &StoryId) -> Option<Integration> {
        let by_evidence = log.state.story(story).is_some_and(|known| {
            matches!(known.stage, Stage::Accepted { by: Acceptance::Evidence, .. })
        });
        if by_evidence && !self.changed.contains(story) {
            return Some(Integration::NothingChanged);
        }
        if self.scene.others_are_easy || !by_evidence {
            return None;
        }
        let error = "a key is in it".to_owned();
        match self.dice.count(1, 40) {
            1 => Some(Integration::Unfit { error, beyond_agent: false }),
            2 => Some(Integration::Unfit { error, beyond_agent: true }),
            3 => Some(Integration::Refused { error }),
            4 if self.config.policy.lanes.get() > 1 => Some(Integration::Conflicting),
            5 if self.scene.has_gates => Some(Integration::Outdated),
            _ => None,
        }
    }

    fn skip(&mut self, story: &StoryId) -> Result<Option<String>, RunnerError> {
        self.step()?;
        for backlog in [&mut self.file, &mut self.current] {
            let known = backlog.stories.iter_mut().find(|known| known.id == *story).unwrap();
            known.skipped = true;
        }
        self.shelved.remove(story);
        let is_its = |commit: &Commit| commit.marks.as_ref() == Some(story);
        if !self.branch.iter().any(is_its) {
            self.commit(Some(story.clone()), Origin::Skip);
        }
        Ok(None)
    }

    fn roll_back(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
    ) -> Result<Option<String>, RunnerError> {
        self.step()?;
        let planned = log.state.story(story).and_then(|known| known.work.roll_back()).unwrap();
        // Back to the story's base, or to where its last attempt began.
        self.change_work(story);
        let is_kept = planned.why == Cause::FreshStart && self.changed.remove(story);
        Ok(is_kept.then(|| format!("refs/kept/{story}")))
    }
}
