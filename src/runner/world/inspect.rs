//! What an attempt did to the branch, to the user's own files and to the work, once it is over.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{
    AttemptStarted, Base, BranchLoss, Event, Footprint, Outcome, ServiceFault, Violation,
    visible_line,
};
use crate::ports::{Notice, TreeNotice};
use crate::runner::effects::{EndedAttempt, Inspection};
use crate::runner::error::RunnerError;
use crate::runner::log::RunLog;
use crate::text::similarity::{most_alike, normalised};
use crate::text::test_paths::is_test;
use crate::workspace::{Difference, Guard, GuardPart, GuardedAttempt, Place};

use super::World;
use super::attempt::Held;

impl World {
    pub(super) fn inspect_lane(
        &mut self,
        log: &mut RunLog,
        start: &AttemptStarted,
        ended: &EndedAttempt,
    ) -> Result<Inspection, RunnerError> {
        let held = self.held(&start.attempt);
        let cut_short = ended.ended_by.is_some() || !ended.processes.leftovers.is_empty();
        let parts = GuardPart::after_attempt(cut_short);
        let Repaired { branch_loss, ticked } = match &held {
            Some(held) => self.repair(log, start, &held.guard, parts)?,
            None => Repaired::default(),
        };
        if branch_loss.is_none() {
            self.refresh_backlog(log);
        }
        self.marks_are_suspect = true;
        self.tell_removed_stories(log, held.as_deref());
        let claims =
            ended.report.signals.claims_story || (ticked && !ended.report.signals.stages_left);
        let looked = self.look_at_changes(log, ended, claims, held.as_deref());
        let (difference, problem) = match looked {
            Ok(difference) => (difference, None),
            Err(error) => (None, Some(error)),
        };
        let footprint = match branch_loss {
            // Branch and tree go back to where they were.
            Some(_) => Footprint { changed: Some(false), ..Footprint::default() },
            None => self.footprint(log, start, ended, difference.as_ref()),
        };
        Ok(Inspection {
            branch_loss: branch_loss.filter(|_| problem.is_none()),
            ticked,
            changed: difference.is_none_or(|difference| !difference.is_empty()),
            footprint,
            head: self.tree(start.lane).head_commit().unwrap_or_default(),
            problem,
        })
    }

    pub(super) fn held(&self, attempt: &str) -> Option<Arc<Held>> {
        self.running.get(attempt).map(|running| Arc::clone(&running.held))
    }

    /// Repairs what the attempt must not have changed, part by part. What was lost with the branch
    /// says nothing about the rest: then branch and tree have to go back first.
    fn repair(
        &mut self,
        log: &mut RunLog,
        start: &AttemptStarted,
        guard: &Guard,
        parts: &[GuardPart],
    ) -> Result<Repaired, RunnerError> {
        let mut repaired = Repaired::default();
        for part in parts {
            let violation = match guard.check(self.tree(start.lane), *part) {
                Ok(violation) => violation,
                Err(error) if *part == GuardPart::Locks => {
                    let problem = error.to_string();
                    log.notice(Notice::Tree(TreeNotice::CleanUpFailed { problem }));
                    None
                }
                Err(error) => return Err(error.into()),
            };
            let Some(violation) = violation else { continue };
            if let Violation::BranchLost { how } = violation {
                repaired.branch_loss = Some(how);
                break;
            }
            repaired.ticked |= matches!(violation, Violation::Instructions { claims: true, .. });
            self.tell_violation(log, start, &violation)?;
            match guard.repair(self.tree(start.lane), &violation) {
                Err(error) if is_not_worth_stopping(&violation) => {
                    let problem = error.to_string();
                    log.notice(Notice::Tree(TreeNotice::CleanUpFailed { problem }));
                }
                done => done?,
            }
        }
        if let Err(error) = guard.disarm(self.tree(start.lane)) {
            log.notice(Notice::Tree(TreeNotice::CleanUpFailed { problem: error.to_string() }));
        }
        Ok(repaired)
    }

    /// Before it is repaired: a repair that is cut off is made again.
    fn tell_violation(
        &self,
        log: &mut RunLog,
        start: &AttemptStarted,
        violation: &Violation,
    ) -> Result<(), RunnerError> {
        let story = start.story.clone();
        let tree = |log: &mut RunLog, notice| log.notice(Notice::Tree(notice));
        match violation.clone() {
            Violation::Locks { paths } => {
                for path in paths.into_iter().map(PathBuf::from) {
                    tree(log, TreeNotice::AgentLockRemoved { path });
                }
            }
            Violation::Setup { names, kept } => {
                self.record(log, Event::SetupPutBack { story, names, kept })?;
            }
            Violation::Stashes { messages } => {
                for message in messages {
                    tree(log, TreeNotice::StashRestored { message });
                }
            }
            Violation::OtherBranch { on } => tree(log, TreeNotice::CommitsTakenFrom { branch: on }),
            Violation::UserFiles { lost, blocked, kept } => {
                if !blocked.is_empty() {
                    let at = kept.clone().unwrap_or_else(|| "refs/ralph/snapshots".to_owned());
                    let paths = blocked.into_iter().map(PathBuf::from).collect();
                    tree(log, TreeNotice::CannotRestore { paths, kept: at });
                }
                if !lost.is_empty() {
                    let event = Event::FilesPutBack { story, paths: lost, snapshot: kept };
                    self.record(log, event)?;
                }
            }
            Violation::Instructions { path, kept, .. } => {
                self.record(log, Event::InstructionsPutBack { story, path, kept })?;
            }
            Violation::BranchLost { .. } => {}
        }
        Ok(())
    }

    /// What an attempt did whose driver died.
    pub(super) fn repair_after_crash(
        &mut self,
        log: &mut RunLog,
        start: &AttemptStarted,
    ) -> Result<(), RunnerError> {
        let guard = Guard::recovered(self.tree(start.lane), self.guarded(log, start)?);
        self.repair(log, start, &guard, GuardPart::after_crash())?;
        self.tell_changed_prompt(log, start);
        Ok(())
    }

    pub(super) fn guarded(
        &self,
        log: &RunLog,
        start: &AttemptStarted,
    ) -> Result<GuardedAttempt, RunnerError> {
        let base = log.state.story(&start.story).and_then(|known| known.base());
        Ok(GuardedAttempt {
            attempt: start.attempt.clone(),
            story: start.story.clone(),
            iteration: start.iteration,
            base: base.unwrap_or(&start.base).clone(),
            before: start.before().clone(),
            snapshot: start.snapshot.clone(),
            number: Self::next_number(log, &start.story),
            spare: self.env.ralph_dir.instructions(&log.run, start.iteration, &start.story)?,
        })
    }

    /// What an agent committed of the instructions by itself is not committed with the story.
    pub(super) fn prompt_for_commit(
        &self,
        base: Option<&Base>,
    ) -> Result<Option<(PathBuf, Vec<u8>)>, RunnerError> {
        let (Some(base), Some(path)) = (base, self.prompt_in_tree()) else { return Ok(None) };
        let before = self.env.home.committed_before(base, &path)?;
        Ok(before.map(|bytes| (path, bytes)))
    }

    /// After a crash the agent's change cannot be told from the human's.
    pub(super) fn tell_changed_prompt(&mut self, log: &mut RunLog, cut_short: &AttemptStarted) {
        let Some(path) = self.prompt_in_tree() else { return };
        let tree = self.tree(cut_short.lane);
        let altered = tree.altered(cut_short.before(), std::slice::from_ref(&path), &[]);
        if altered.is_ok_and(|altered| !altered.is_empty()) {
            let path = visible_line(&path.to_string_lossy());
            log.notice(Notice::Tree(TreeNotice::InstructionsDiffer { path }));
        }
    }

    fn prompt_in_tree(&self) -> Option<PathBuf> {
        let path = self.config.instructions_file.as_deref()?;
        match self.env.home.place_of(path) {
            Ok(Place::Inside(path)) => Some(path),
            _ => None,
        }
    }

    /// What differs from before the attempt. Looking at a large tree takes its time: not for what
    /// says nothing about the story, and not for a claim that is decided by its own commit.
    fn look_at_changes(
        &self,
        log: &RunLog,
        ended: &EndedAttempt,
        claims: bool,
        held: Option<&Held>,
    ) -> Result<Option<Difference>, RunnerError> {
        let Some(held) = held else { return Ok(None) };
        let outcome = &ended.report.outcome;
        let says_nothing = matches!(outcome, Outcome::EndedByUs | Outcome::PromptTooLong { .. })
            || ServiceFault::of(outcome).is_some();
        let backlog = self.env.backlog.current();
        let plain = *outcome == Outcome::Completed
            && claims
            && self.config.is_plain_claim(&held.story.id, backlog, &log.state);
        if says_nothing || plain || ended.report.signals.escalation.is_some() {
            return Ok(None);
        }
        let lane = self.lane_of(log, &held.story.id);
        Ok(Some(self.tree(lane).difference_since(&held.before)?))
    }

    fn footprint(
        &self,
        log: &RunLog,
        start: &AttemptStarted,
        ended: &EndedAttempt,
        difference: Option<&Difference>,
    ) -> Footprint {
        let said = match ended.report.outcome {
            Outcome::Completed => normalised(&ended.report.final_text),
            _ => String::new(),
        };
        let known = log.state.story(&start.story);
        let before = known.map(|known| &known.stagnation.said).into_iter().flatten();
        let likeness = most_alike(&said, before);
        let Some(difference) = difference else {
            return Footprint { said, likeness, ..Footprint::default() };
        };
        // What an agent does to its own marks is put back: that is no work.
        let backlog = self.config.backlog_in_tree.as_ref();
        let work = || difference.paths.iter().filter(|path| Some(*path) != backlog);
        let held = self.held(&start.attempt);
        let story_changed = held.is_some_and(|held| self.is_other_story(&held));
        let has_work = difference.committed || work().next().is_some();
        let only_tests =
            work().next().is_some() && work().all(|path| is_test(&path.to_string_lossy()));
        Footprint {
            changed: Some(has_work || story_changed),
            committed: difference.committed,
            only_tests,
            said,
            likeness,
        }
    }

    fn is_other_story(&self, held: &Held) -> bool {
        let before = &held.story;
        let Some(now) = self.env.backlog.current().story(&before.id) else { return true };
        (&now.title, &now.description, &now.criteria)
            != (&before.title, &before.description, &before.criteria)
    }
}

/// What the guard found that the rest of the inspection has to know.
#[derive(Default)]
struct Repaired {
    branch_loss: Option<BranchLoss>,
    /// The agent ticked the story off in the human's instructions.
    ticked: bool,
}

/// Its work is safe all the same.
fn is_not_worth_stopping(violation: &Violation) -> bool {
    matches!(violation, Violation::Locks { .. } | Violation::Instructions { .. })
}
