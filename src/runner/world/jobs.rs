//! Starts jobs at a lane's work tree, and takes what tasks tell the loop.

use std::path::PathBuf;
use std::sync::Arc;

use crate::decide::situation::LaneJob;
use crate::model::{Event, EvidenceItem, LaneId, LeftOut, StoryId, StuckEvent};
use crate::runner::effects::{About, Effects, Happened, JobResult};
use crate::runner::error::{Result, RunnerError};
use crate::runner::log::RunLog;
use crate::runner::task::integrate::{Close, MarkCommit, MarkWritten, Skip};
use crate::runner::task::occupant::Occupant;
use crate::runner::task::prepare::Prepare;
use crate::runner::task::shelve::{Landing, StoryWork};
use crate::runner::task::{self, Mailbox, Message};
use crate::state::{Acceptance, Stage, StoryState};
use crate::store::prd::{EditError, Mark, WriteError};
use crate::workspace::WorkTree;

use super::World;
use super::between_runs::TreeLook;

/// What a job does on its thread.
type Work = Box<dyn FnOnce(&WorkTree, &mut Mailbox) -> Result<JobResult> + Send + 'static>;

impl World {
    pub(super) fn begin_job(
        &mut self,
        log: &mut RunLog,
        job: LaneJob,
        story: &StoryId,
        lane: LaneId,
    ) -> Result<()> {
        if lane == LaneId::HOME {
            (self.has_home_job, self.look) = (true, TreeLook::Due);
            if !matches!(job, LaneJob::Prepare | LaneJob::Keep) {
                self.take_tree(log, story)?;
            }
        }
        let work: Work = match job {
            LaneJob::Prepare => self.prepare(log, story, lane)?,
            LaneJob::Keep => {
                let work = self.work_of(log, story);
                Box::new(|tree, _| Ok(JobResult::Kept(work.keep(tree)?)))
            }
            LaneJob::Land => self.land(log, story),
            LaneJob::Integrate => self.close(log, story)?,
            LaneJob::Skip => self.skip(log, story)?,
            LaneJob::Shelve => {
                self.known_bases.remove(&lane);
                self.with_scratchpad(log, |dir| dir.shelve_scratchpad(story));
                let work = self.work_of(log, story);
                Box::new(|tree, mailbox| Ok(JobResult::Shelved(work.shelve(tree, mailbox)?)))
            }
            LaneJob::RollBack => self.roll_back(log, story, lane),
        };
        let (tree, mut mailbox, story) =
            (self.lane(lane)?.clone(), self.mailbox.clone(), story.clone());
        let task = async move {
            let run = move |tree: &WorkTree| {
                if job != LaneJob::RollBack {
                    tree.require_own_branch()?;
                }
                work(tree, &mut mailbox)
            };
            let result = match tree.with(run).await? {
                Err(RunnerError::Write(WriteError::Changed { .. })) => JobResult::BacklogChanged,
                result => result?,
            };
            Ok(Happened::JobEnded { lane, story, result })
        };
        task::spawn(&self.mailbox, task);
        Ok(())
    }

    fn prepare(&mut self, log: &mut RunLog, id: &StoryId, lane: LaneId) -> Result<Work> {
        self.with_scratchpad(log, |dir| dir.unshelve_scratchpad(id));
        if log.state.story(id).is_some_and(|known| !known.accepted_files().is_empty()) {
            self.take_tree(log, id)?;
        }
        let known = log.state.story(id);
        let iteration = log.state.attempts.next_iteration();
        let prepare = Prepare {
            story: id.clone(),
            lane,
            attempt: (self.env.new_id)(),
            iteration,
            known: self.known_bases.remove(&lane),
            occupant: Occupant::of(&log.state, id),
            shelved: known.and_then(|known| known.work.shelved().cloned()),
            accepted: known.map(StoryState::accepted_files).unwrap_or_default(),
            snapshot: log.state.attempts.started + 1,
            is_watched: self.has_kept,
            config: Arc::clone(&self.config),
        };
        Ok(Box::new(|tree, mailbox| {
            let prepared = prepare.run(tree, mailbox)?;
            // The loop may have ended.
            let _ = mailbox.blocking_send(Message::Prepared(Box::new(prepared)));
            Ok(JobResult::Ready)
        }))
    }

    pub(super) fn work_of(&self, log: &RunLog, id: &StoryId) -> StoryWork {
        let known = log.state.story(id);
        StoryWork {
            story: id.clone(),
            iteration: known.map_or(0, |known| known.iteration),
            occupant: Occupant::of(&log.state, id),
            number: next_number(log, id),
            config: Arc::clone(&self.config),
        }
    }

    fn roll_back(&mut self, log: &RunLog, id: &StoryId, lane: LaneId) -> Work {
        self.known_bases.remove(&lane);
        let work = self.work_of(log, id);
        let planned = log.state.story(id).and_then(|known| known.work.roll_back().cloned());
        Box::new(move |tree, log| {
            let rolled = planned.map(|planned| work.roll_back(tree, &planned.to, planned.why, log));
            Ok(JobResult::RolledBack(rolled.transpose()?.flatten()))
        })
    }

    fn land(&mut self, log: &RunLog, id: &StoryId) -> Work {
        self.known_bases.remove(&LaneId::HOME);
        let landing = self.landing(log, id);
        Box::new(move |tree, mailbox| {
            Ok(JobResult::Landed { clean: landing.run(tree, mailbox)?.is_some() })
        })
    }

    fn landing(&self, log: &RunLog, id: &StoryId) -> Landing {
        Landing {
            story: id.clone(),
            occupant: Occupant::of(&log.state, id),
            shelved: log.state.story(id).and_then(|known| known.work.shelved().cloned()),
            config: Arc::clone(&self.config),
        }
    }

    fn close(&mut self, log: &RunLog, id: &StoryId) -> Result<Work> {
        let mark = self.mark_commit(log, id, Mark::Passes(true))?;
        let known = log.state.story(id);
        let stage = known.map(|known| &known.stage);
        let claim = stage.and_then(|stage| stage.claim());
        let evidence: Vec<EvidenceItem> =
            claim.map(|claim| claim.evidence.clone()).unwrap_or_default();
        let by = match stage {
            Some(Stage::Accepted { by, .. }) => *by,
            _ => Acceptance::Evidence,
        };
        let is_why = !evidence.is_empty() && by == Acceptance::Evidence;
        let turned_green = claim.and_then(|claim| claim.turned_green.clone());
        let close = Close {
            mark,
            evidence,
            turned_green,
            confirms: claim.and_then(|claim| claim.confirms.clone()),
            checked: claim.and_then(|claim| claim.checked.clone()).filter(|_| is_why),
            counted: claim.and_then(|claim| claim.counted.clone()),
            by,
            landing: Some(self.landing(log, id)).filter(|landing| landing.shelved.is_some()),
            secrets: Arc::clone(&self.env.secrets),
            ralph_dir: self.env.ralph_dir.clone(),
        };
        Ok(Box::new(|tree, mailbox| Ok(JobResult::Integrated(close.run(tree, mailbox)?))))
    }

    fn skip(&mut self, log: &RunLog, id: &StoryId) -> Result<Work> {
        let mark = self.mark_commit(log, id, Mark::Skipped(true))?;
        let occupant = log.state.lanes.occupant(LaneId::HOME);
        let occupant = occupant.and_then(|story| Occupant::of(&log.state, story));
        let skip = Skip { mark, occupant };
        Ok(Box::new(|tree, mailbox| Ok(JobResult::Skipped(skip.run(tree, mailbox)?))))
    }

    /// From here on the job has the backlog file, until it ends.
    fn mark_commit(&mut self, log: &RunLog, id: &StoryId, mark: Mark) -> Result<MarkCommit> {
        let Some(story) = self.env.backlog.current().story(id).cloned() else {
            return Err(EditError::NoSuchStory(id.clone()).into());
        };
        self.known_bases.remove(&LaneId::HOME);
        let text = self.env.backlog.marked(id, mark)?;
        let ahead = self.stored_ahead.take().filter(|(ahead, _)| text.is(ahead));
        let stored = ahead.map(|(_, blob)| blob);
        self.is_writing_marks = true;
        let known = log.state.story(id);
        let claimed = known.and_then(|known| known.stage.claim()).map(|claim| claim.iteration);
        Ok(MarkCommit {
            story,
            text,
            stored,
            run: log.run.clone(),
            iteration: claimed.or(known.map(|known| known.iteration)).unwrap_or_default(),
            prepared: known.and_then(|known| known.prepared.clone()),
            base: known.and_then(|known| known.base().cloned()),
            rest: known.and_then(|known| known.work.in_lane()?.rest.clone()),
            head: known.and_then(|known| known.head.clone()),
            refused: known.into_iter().flat_map(|one| &one.refused).map(PathBuf::from).collect(),
            planned: log.sync_point(),
            config: Arc::clone(&self.config),
        })
    }

    pub(super) fn marked(&mut self, log: &mut RunLog, done: MarkWritten) -> Result<()> {
        self.env.backlog.take_written(done.written);
        match done.next_base {
            Some(base) => self.known_bases.insert(LaneId::HOME, base),
            None => self.known_bases.remove(&LaneId::HOME),
        };
        if let Some(replaced) = done.replaced {
            self.record(log, Event::CommitsReplaced(replaced))?;
        }
        // Each once.
        let is_new = |one: &LeftOut| self.told_left_out.insert(one.path.clone());
        let files: Vec<LeftOut> = done.left_out.into_iter().filter(is_new).collect();
        if files.is_empty() { Ok(()) } else { self.record(log, Event::FilesLeftOut { files }) }
    }

    /// None: it was not the end of a task.
    pub(super) fn take(&mut self, log: &mut RunLog, message: Message) -> Result<Option<Happened>> {
        match message {
            Message::Activity(activity) => log.reporter.on_activity(&activity),
            Message::Notice(notice) => log.notice(notice),
            Message::Record(event, recorded) => {
                let event = self.redacted(*event);
                let done = self.record(log, event.clone());
                let lost = done.as_ref().is_err_and(RunnerError::is_lost_journal);
                if lost {
                    // The task goes on: it is putting something back.
                    log.cut_off();
                    self.record(log, event)?;
                }
                if lost || done.is_ok() {
                    // The task may have been given up.
                    let _ = recorded.send(log.sync_point());
                }
                done?;
            }
            Message::Scanned { attempt, changed } => self.scanned(log, attempt, changed)?,
            Message::Prepared(prepared) => {
                self.prepared.insert(prepared.lane, *prepared);
            }
            Message::Marked(written) => self.marked(log, *written)?,
            Message::Started { story } => self.prepare_close(&story),
            Message::StoredAhead { text, blob } => {
                self.stored_ahead = blob;
                self.env.backlog.take_prepared(text);
            }
            Message::GateOver(looked) => {
                self.look_after_gate(log)?;
                // The task may have been given up.
                let _ = looked.send(());
            }
            Message::Left { story, left } => self.take_look(log, story, left)?,
            Message::Kept => self.has_kept = true,
            Message::Ended(happened) => {
                let happened = happened?;
                self.forget(&happened);
                return Ok(Some(happened));
            }
        }
        Ok(None)
    }

    /// A task's event: agents wrote what held changes show.
    fn redacted(&self, mut event: Event) -> Event {
        if let Event::ChangesHeld { changes, .. } = &mut event {
            for change in changes {
                change.what = self.redact(&change.what);
                change.diff = self.redact(&change.diff);
            }
        }
        event
    }

    fn forget(&mut self, happened: &Happened) {
        match happened {
            Happened::GatesEnded { of, .. } => self.gates.retain(|(running, ..)| running != of),
            Happened::Answered { asked, .. } => self.questions.ended(asked),
            Happened::JobEnded { lane: LaneId::HOME, .. } => {
                (self.is_writing_marks, self.has_home_job) = (false, false);
            }
            _ => {}
        }
    }

    /// A running attempt's tree was scanned.
    fn scanned(&mut self, log: &mut RunLog, attempt: String, changed: bool) -> Result<()> {
        let running = self.running.get_mut(&attempt);
        let recovered = running.is_some_and(|running| running.scanned(changed));
        let flight = log.state.attempts.get(&attempt).filter(|_| recovered);
        let Some(story) = flight.map(|flight| flight.start.story.clone()) else { return Ok(()) };
        self.withdraw(&About::Attempt { attempt, story: story.clone() }, false);
        self.record(log, Event::Stuck { story, step: StuckEvent::Recovered })
    }
}

fn next_number(log: &RunLog, story: &StoryId) -> u32 {
    log.state.story(story).map_or(0, |known| known.kept_count) + 1
}
