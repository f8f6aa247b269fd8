//! How a process of the run ends: what still runs, open menus, and what is recorded last.

use crate::decide::situation::LaneJob;
use crate::model::{AgentNotice, Cause, EndCause, Event, LaneId, Notice};
use crate::process::Order;
use crate::runner::dispatcher::{Dispatcher, Ending, Turn};
use crate::runner::effects::{Effects, Happened};
use crate::runner::error::Result;

/// This many interrupts end the process at once; the supervisors end the agents.
const IMPATIENT: u32 = 3;
/// How long what was killed may take to end.
const KILL_PATIENCE: i64 = 1000;
/// How often the loop looks for the end of a menu that must close, which takes a second at most.
const LAST_LOOKS: u32 = 8;
/// How long what runs may take to end, and what it changed to be put back, once the journal is lost.
const PUT_BACK_PATIENCE: i64 = 60_000;

impl<E: Effects> Dispatcher<E> {
    /// The journal is lost, and with it all that the next process would need to put back what runs
    /// now has changed.
    pub(super) async fn put_back_unrecorded(&mut self) {
        self.log.cut_off();
        if self.is_unrecorded {
            // Its guard is through; only the backlog is left.
            drop(self.effects.gates_are_over(&mut self.log));
            return;
        }
        let end = self.log.now().saturating_add(PUT_BACK_PATIENCE);
        self.settle_until(end).await;
        if self.is_idle() && self.plan_way_back().is_ok() {
            self.settle_until(end).await;
        }
    }

    /// The next process cannot know what of the tree and the branch is a story's unfinished work.
    fn plan_way_back(&mut self) -> Result<()> {
        let state = &self.log.state;
        let work = state.lanes.occupant(LaneId::HOME).and_then(|story| {
            let work = state.story(story)?.work.in_lane()?;
            Some((story.clone(), work.base.clone()))
        });
        let Some((story, to)) = work else { return Ok(()) };
        self.record(vec![Event::ReturnPlanned { story, to, why: Cause::FreshStart }])
    }

    async fn settle_until(&mut self, end: i64) {
        loop {
            let is_over = self.is_idle() && !self.start_roll_back().unwrap_or_default();
            if is_over || self.must_leave() || self.log.now() >= end {
                return;
            }
            let Ok(happened) = self.effects.next(&mut self.log, None).await else { return };
            if self.conclude(happened).is_err() {
                return;
            }
        }
    }

    /// With the tree that this process leaves, unless something still runs.
    pub(super) async fn record_end(&mut self, end: Option<Event>) -> Result<()> {
        let left = self.effects.leave(&self.log, self.is_idle(), end.as_ref()).await?;
        self.record(left.into_iter().chain(end).collect())?;
        self.log.sync()
    }

    /// After an error or several interrupts, a menu may be open, and must not keep the terminal. A human
    /// who writes in an editor has time until the next interrupt.
    pub(super) async fn close_menus(&mut self) {
        self.is_stopping = true;
        self.close_all();
        let mut looks = if self.must_leave() { LAST_LOOKS } else { u32::MAX };
        while !self.questions.is_empty() && looks > 0 {
            looks -= 1;
            match self.effects.next(&mut self.log, None).await {
                // The journal may have failed.
                Ok(Happened::Answered { about, asked }) => drop(self.answered(about, asked)),
                Ok(Happened::Interrupt(_)) => looks = looks.min(LAST_LOOKS),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// The first interrupt stops everything cleanly, the second kills it.
    pub(super) fn take_interrupt(&mut self, signal: i32) {
        let is_first = self.interrupted.is_none();
        if is_first && !self.is_idle() {
            self.log.notice(Notice::Agent(AgentNotice::Ended(EndCause::Interrupt)));
        }
        let order = if is_first { Order::Stop } else { Order::Kill };
        self.interrupted.get_or_insert(signal);
        self.interrupts += 1;
        if !is_first {
            self.killed_at.get_or_insert(self.log.now());
        }
        self.close_all();
        self.effects.order(order);
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.is_some()
    }

    /// Work on the repository cannot be killed: the process leaves it, and soon if that only reads.
    fn must_leave(&self) -> bool {
        let is_over = |at| self.log.now().saturating_sub(at) >= KILL_PATIENCE;
        let only_reads = self.interrupted.is_some() && self.effects.has_read_for_long();
        only_reads || self.interrupts >= IMPATIENT || self.killed_at.is_some_and(is_over)
    }

    /// Waits for everything that runs, unless there were too many interrupts.
    pub(super) fn interrupt(&mut self, signal: i32) -> Result<Turn> {
        let waits = !self.is_idle() || !self.questions.is_empty();
        if waits && !self.must_leave() {
            return Ok(Turn::Wait(None));
        }
        // The branch is put back before anybody looks at it.
        if !self.must_leave() && self.start_roll_back()? {
            return Ok(Turn::Wait(None));
        }
        // Otherwise the next process would take an agent's marks for the human's.
        self.effects.refresh(&mut self.log)?;
        Ok(Turn::End(Ending::Interrupted { signal }, Event::RunInterrupted { signal }))
    }

    /// Of what an attempt left. Returns whether there is something to put back.
    fn start_roll_back(&mut self) -> Result<bool> {
        let mut unfinished = self.log.state.unfinished();
        let due = unfinished.find(|(_, known)| known.work.roll_back().is_some());
        let Some(story) = due.map(|(story, _)| story.clone()) else { return Ok(false) };
        drop(unfinished);
        let lane = self.lane_of(&story);
        self.start_job(LaneJob::RollBack, &story, lane)?;
        Ok(true)
    }
}
